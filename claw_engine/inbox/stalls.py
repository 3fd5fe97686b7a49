"""Says when a run has been at one thing for long, by the age of what it is doing.

Messages that arrive meanwhile do not count as life (case QU-03). Waiting for the operator is no
stall. Knows no agent; reads a run's state and when it began.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from claw_engine.events import Event, Notice
from claw_engine.runs import ENDED, Run, RunState
from claw_engine.world import Clock, Timer

log = logging.getLogger("claw.inbox")

STALL_S = 120.0
"""Seconds in one state after which a run is reported; again after each further such time."""
_QUIET = ENDED | {RunState.QUEUED, RunState.PARKED}


class StallWatch:
    """Use: `watch` a run when it begins, call the result when it ends."""

    def __init__(self, clock: Clock, publish: Callable[[Event], None]) -> None:
        self._clock = clock
        self._publish = publish

    def watch(self, run: Run, behind: Callable[[], Sequence[str]]) -> Callable[[], None]:
        """`behind` gives the ids of what waits for this run."""
        watched = _Watched(self, run, behind)
        watched.arm(STALL_S)
        return watched.stop

    def tell(self, run: Run, seconds: float, behind: Sequence[str]) -> None:
        waiting = f" {len(behind)} message(s) wait behind it." if behind else ""
        log.warning(
            "stalled session: sessionKey=%s runId=%s state=%s age=%ds queueDepth=%d",
            run.session_key, run.id, run.state.value, seconds, len(behind),
        )  # fmt: skip
        self._publish(
            Notice(
                code=f"stalled:{run.id}",
                level="warn",
                title=f"{run.session_key} has been in state {run.state.value} for "
                f"{int(seconds // 60)} min.",
                hint="Stop it with /stop, X in the console, or chat.abort.",
                text=f"Run {run.id}.{waiting}",
                sticky=True,
                ts=self._clock.now_ms(),
            )
        )

    def clear(self, run: Run) -> None:
        self._publish(Notice(f"stalled:{run.id}", "clear", "", ts=self._clock.now_ms()))

    @property
    def clock(self) -> Clock:
        return self._clock


class _Watched:
    __slots__ = ("_behind", "_home", "_run", "_timer", "_told")

    def __init__(self, home: StallWatch, run: Run, behind: Callable[[], Sequence[str]]) -> None:
        self._home = home
        self._run = run
        self._behind = behind
        self._timer: Timer | None = None
        self._told = False

    def arm(self, seconds: float) -> None:
        self._timer = self._home.clock.call_later(seconds, self._look)

    def _look(self) -> None:
        run = self._run
        age = (self._home.clock.now_ms() - run.state_since_ms) / 1000
        if run.state in _QUIET or age < STALL_S:
            self._settle()
            self.arm(STALL_S if run.state in _QUIET else STALL_S - age)
            return
        self._told = True
        self._home.tell(run, age, self._behind())
        self.arm(STALL_S)

    def _settle(self) -> None:
        if self._told:
            self._told = False
            self._home.clear(self._run)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._settle()
