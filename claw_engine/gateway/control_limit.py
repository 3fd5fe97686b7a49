"""How often one client may change what the gateway itself is (gateway digest §1.7)."""

from __future__ import annotations

from collections import OrderedDict, deque

from claw_engine.errors import ClawError
from claw_engine.gateway.peer import Identity
from claw_engine.world import Clock

CALLS = 3
WINDOW_S = 60.0
MAX_KEYS = 1024


class TooManyChanges(ClawError):
    """Try again later; `retry_after_ms` says when."""

    retryable = True

    def __init__(self, method: str, retry_after_ms: int) -> None:
        super().__init__(
            f"rate limit exceeded for {method}; retry after {-(-retry_after_ms // 1000)}s",
            details={"method": method, "limit": f"{CALLS} per {WINDOW_S:g}s"},
        )
        self.retry_after_ms = retry_after_ms


class ControlLimit:
    """One for all methods that share the limit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: OrderedDict[str, deque[float]] = OrderedDict()

    def take(self, method: str, who: Identity) -> None:
        """Count a call. Raises TooManyChanges."""
        now = self._clock.monotonic()
        calls = self._calls.setdefault(f"{who.device_id}|{who.remote_ip}", deque())
        while calls and calls[0] <= now - WINDOW_S:
            calls.popleft()
        if len(calls) >= CALLS:
            raise TooManyChanges(method, max(1, round((calls[0] + WINDOW_S - now) * 1000)))
        calls.append(now)
        self._calls.move_to_end(f"{who.device_id}|{who.remote_ip}")
        while len(self._calls) > MAX_KEYS:
            self._calls.popitem(last=False)
