"""At most one call in a stretch of time: the first at once, the rest as one at its end."""

from __future__ import annotations

from collections.abc import Callable

from claw_engine.world import Clock, Timer


class Throttle:
    """Calls `fn` when poked, at most once every `interval_s` seconds."""

    def __init__(self, clock: Clock, interval_s: float, fn: Callable[[], None]) -> None:
        self._clock = clock
        self._interval = interval_s
        self._fn = fn
        self._timer: Timer | None = None
        self._again = False

    def poke(self) -> None:
        if self._timer is not None:
            self._again = True
            return
        self._fire()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        self._again = False
        self._timer = self._clock.call_later(self._interval, self._elapsed)
        self._fn()

    def _elapsed(self) -> None:
        self._timer = None
        if self._again:
            self._fire()
