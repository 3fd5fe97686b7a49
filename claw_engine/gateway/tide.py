"""Events for a crowd leave in tides: with many clients, one write for a few ms of events.

Every event to every client as a write of its own is what a busy gateway spends its time with. It
knows outboxes and how many there are, nothing of what is in them.
"""

from __future__ import annotations

from collections.abc import Callable

from claw_engine.gateway.outbox import Outbox
from claw_engine.world import Clock, Timer

EACH_S = 0.0004
"""Between two tides for each client: about ten times what a write to one costs (20 to 40 us)."""
MOST_S = 0.025
"""What nobody sees: deltas come every 75 ms (pace.py)."""
FEW = 8
"""Up to here every event leaves at once."""
TOGETHER = 25
"""Clients written to before other tasks get a turn: a long text takes about 40 us for each."""


class Tide:
    """`rouse(outbox)` wakes the writer of an outbox at once or with the next tide. Answers do not
    pass here: what waits leaves before them. `crowd` counts the clients."""

    def __init__(self, clock: Clock, crowd: Callable[[], int]) -> None:
        self._clock = clock
        self._crowd = crowd
        self._waiting: dict[Outbox, None] = {}
        self._timer: Timer | None = None
        self._last = -MOST_S

    def rouse(self, outbox: Outbox) -> None:
        if self._timer is not None:
            self._waiting[outbox] = None
            return
        crowd = self._crowd()
        if crowd <= FEW:
            outbox.wake()
            return
        # The first event of a quiet time goes now, but with all that this turn of the loop brings.
        rest = min(MOST_S, crowd * EACH_S)
        wait = max(0.0, self._last + rest - self._clock.monotonic())
        self._waiting[outbox] = None
        self._timer = self._clock.call_later(wait, self._rise)

    def cancel(self) -> None:
        """No more tides: what waits leaves now."""
        while self._timer is not None:
            self._timer.cancel()
            self._rise()

    def _rise(self) -> None:
        self._timer = None
        self._last = self._clock.monotonic()
        waiting, self._waiting = list(self._waiting), {}
        for outbox in waiting[:TOGETHER]:
            outbox.wake()
        if len(waiting) > TOGETHER:
            self._waiting = dict.fromkeys(waiting[TOGETHER:])
            self._timer = self._clock.call_later(0.0, self._rise)
