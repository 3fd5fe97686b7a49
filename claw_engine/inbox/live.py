"""The trace so far of every run that is going on, compact: for a console that attaches mid-run.

Deltas of one call or tool are merged as they come; tool output keeps its newest part, and only the
newest call its list of parts. A run is dropped some seconds after its end: by then its transcript
tells the story.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from claw_engine.protocol.trace import DELTA_OWNER, TraceEvent, TraceKind
from claw_engine.world import Clock

LINGER_SECONDS = 5.0
OUTPUT_CHARS = 64 * 1024
"""Characters of output kept a tool call."""


class _Slot(Struct):
    """One event, or the merged deltas of one owner; `last` is the newest event of it."""

    last: TraceEvent
    deltas: list[str] | None = None
    chars: int = 0
    cut: int = 0

    def add(self, event: TraceEvent) -> None:
        assert self.deltas is not None
        delta = str(event.data.get("delta", ""))
        self.last = event
        self.deltas.append(delta)
        self.chars += len(delta)
        # Twice the limit before trimming: the cost per delta stays constant.
        if event.kind is TraceKind.TOOL_OUTPUT and self.chars > 2 * OUTPUT_CHARS:
            whole = "".join(self.deltas)
            kept = whole[-OUTPUT_CHARS:]
            self.cut += len(whole) - len(kept)
            self.deltas[:] = [kept]
            self.chars = len(kept)

    def event(self) -> TraceEvent:
        if self.deltas is None:
            return self.last
        text = "".join(self.deltas)
        if self.cut:
            text = f"[{self.cut} earlier characters left out]\n{text}"
        last = self.last
        return TraceEvent(
            last.run_id, last.session_key, last.seq, last.ts, last.kind,
            {**last.data, "delta": text},
        )  # fmt: skip


class _Live(Struct):
    session_key: str
    slots: list[_Slot] = field(default_factory=list)
    newest_call: _Slot | None = None
    open: dict[object, _Slot] = field(default_factory=dict)
    """Per call or tool call: the slot that further deltas of one kind join."""


def _forget_parts(slot: _Slot | None) -> None:
    # One row a message: only the newest call keeps them, or a long run would hold them n times.
    if slot is not None:
        last = slot.last
        slot.last = TraceEvent(
            last.run_id, last.session_key, last.seq, last.ts, last.kind, {**last.data, "parts": []}
        )


class LiveRuns:
    """Records trace events; loop thread only."""

    def __init__(self, clock: Clock, linger_s: float = LINGER_SECONDS) -> None:
        self._clock = clock
        self._linger_s = linger_s
        self._runs: dict[str, _Live] = {}

    def record(self, event: TraceEvent) -> None:
        """Take one event; O(1) in what came before."""
        run = self._runs.get(event.run_id)
        if run is None:
            run = self._runs[event.run_id] = _Live(event.session_key)
        owner = DELTA_OWNER.get(event.kind)
        if owner is None:
            whole = _Slot(event)
            run.slots.append(whole)
            if event.kind is TraceKind.CALL_STARTED:
                _forget_parts(run.newest_call)
                run.newest_call = whole
            if event.kind is TraceKind.RUN_ENDED:
                self._clock.call_later(self._linger_s, self._dropper(event.run_id))
            return
        key = event.data.get(owner)
        slot = run.open.get(key)
        # Text after reasoning of the same call opens a new slot, so the order stays visible.
        if slot is None or slot.last.kind is not event.kind:
            slot = run.open[key] = _Slot(event, [])
            run.slots.append(slot)
        slot.add(event)

    def snapshot(self, session_key: str | None = None) -> list[list[TraceEvent]]:
        """Merged events of each run, oldest run first; of one session if a key is given."""
        return [
            [slot.event() for slot in run.slots]
            for run in self._runs.values()
            if session_key is None or run.session_key == session_key
        ]

    def _dropper(self, run_id: str) -> Callable[[], None]:
        def drop() -> None:
            self._runs.pop(run_id, None)

        return drop
