"""Tokens for many clients: the words of a run leave as one event in 75 ms, however fast they come.

Each `agent` delta repeats the text so far, so telling every token to every client costs the square
of the text (protocol digest §3.2: the newer gateway paces the same). The order within a run stays.
"""

from __future__ import annotations

from collections.abc import Callable

from claw_engine.gateway.wire_events import WireEvent
from claw_engine.world import Clock, Timer

PACE_S = 0.075


class Pacer:
    """In front of `send`. What is no delta of an `agent` stream is never held back."""

    def __init__(self, clock: Clock, send: Callable[[WireEvent], None]) -> None:
        self._clock = clock
        self._send = send
        self._waiting: dict[str, WireEvent] = {}
        self._spoke: set[str] = set()
        """Runs that told something since the last beat."""
        self._timer: Timer | None = None

    def put(self, event: WireEvent) -> None:
        if event.name != "agent" or event.merge_key is None:
            self._tell(event.run_id)
            self._send(event)
            return
        run = event.run_id
        held = self._waiting.get(run)
        if held is not None and held.merge_key == event.merge_key:
            self._waiting[run] = held.merged(event)
        elif held is None and run not in self._spoke:
            self._spoke.add(run)
            self._send(event)
        else:
            self._tell(run)
            self._waiting[run] = event
        if self._timer is None:
            self._timer = self._clock.call_later(PACE_S, self._beat)

    def forget(self) -> None:
        """Events were lost: what waits is of the past."""
        self._waiting.clear()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self, run: str) -> None:
        held = self._waiting.pop(run, None)
        if held is not None:
            self._send(held)

    def _beat(self) -> None:
        self._timer = None
        self._spoke = set(self._waiting)
        for run in list(self._waiting):
            self._tell(run)
        if self._spoke:
            self._timer = self._clock.call_later(PACE_S, self._beat)
