"""Tells what a run does: its state to `Runs`, its steps as trace events, numbered from 1.

Every step of a run goes through the one object of that run, so `seq` has no gaps.
"""

from __future__ import annotations

from collections.abc import Callable

from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.runs import Run, Runs, RunState
from claw_engine.world import Clock

Emit = Callable[[TraceEvent], None]


class Steps:
    """The voice of one run."""

    __slots__ = ("_clock", "_emit", "_run", "_runs", "_seq")

    def __init__(self, run: Run, runs: Runs, clock: Clock, emit: Emit) -> None:
        self._run = run
        self._runs = runs
        self._clock = clock
        self._emit = emit
        self._seq = 0

    def tell(self, kind: TraceKind, **data: object) -> None:
        """Emit one trace event; field names as in protocol/trace.py."""
        self._seq += 1
        run = self._run
        self._emit(TraceEvent(run.id, run.session_key, self._seq, self._clock.now_ms(), kind, data))

    def state(self, new: RunState, reason: str) -> None:
        """Change the run's state, if it is a change."""
        prev = self._run.state
        self._runs.set_state(self._run, new, reason)
        if self._run.state is not prev:
            self.tell(TraceKind.RUN_STATE, prev=prev.value, new=new.value, reason=reason)

    def notice(self, level: str, text: str) -> None:
        """Something the person should know that is no failure: level info or warn."""
        self.tell(TraceKind.NOTICE, level=level, text=text)
