"""A run's time limit, which stands still while the run waits for a person."""

from __future__ import annotations

from collections.abc import Callable

from claw_engine.world import Clock, Timer


class Stopwatch:
    """Calls `fire` after `seconds` of counted time; 0 or less means no limit."""

    __slots__ = ("_clock", "_fire", "_left", "_limited", "_started", "_timer")

    def __init__(self, clock: Clock, seconds: float, fire: Callable[[], None]) -> None:
        self._clock = clock
        self._fire = fire
        self._limited = seconds > 0
        self._left = seconds
        self._started = 0.0
        self._timer: Timer | None = None

    @property
    def running(self) -> bool:
        return self._timer is not None

    def start(self) -> None:
        """Count on."""
        if self._limited and self._timer is None:
            self._started = self._clock.monotonic()
            self._timer = self._clock.call_later(max(0.0, self._left), self._fire)

    def stop(self) -> None:
        """Stand still; what was counted stays counted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left -= self._clock.monotonic() - self._started
