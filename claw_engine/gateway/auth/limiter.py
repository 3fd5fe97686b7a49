"""How often one address may be wrong about one kind of credential."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Literal

from msgspec import Struct, field

from claw_engine.config.sections.gateway import RateLimit
from claw_engine.gateway.auth.place import is_loopback
from claw_engine.world import Clock

Kind = Literal["shared-secret", "device-token", "device-proof", "pairing"]

MAX_KEYS = 4096
"""Addresses remembered at once; the one that was quiet longest is forgotten first."""


class _Record(Struct):
    failures: deque[float] = field(default_factory=deque)
    locked_until: float = 0.0


class FailureLimiter:
    """In memory. Times are the clock's seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: OrderedDict[tuple[Kind, str], _Record] = OrderedDict()

    def locked_ms(self, kind: Kind, ip: str, limits: RateLimit) -> int:
        """How long this address has to wait; 0 when it may try."""
        record = self._records.get((kind, ip))
        if record is None or self._exempt(ip, limits):
            return 0
        return max(0, round((record.locked_until - self._clock.monotonic()) * 1000))

    def failed(self, kind: Kind, ip: str, limits: RateLimit) -> None:
        """A wrong credential was offered."""
        if self._exempt(ip, limits):
            return
        now = self._clock.monotonic()
        record = self._records.setdefault((kind, ip), _Record())
        self._records.move_to_end((kind, ip))
        record.failures.append(now)
        while record.failures and record.failures[0] <= now - limits.window_ms / 1000:
            record.failures.popleft()
        if len(record.failures) >= limits.max_attempts:
            record.locked_until = now + limits.lockout_ms / 1000
            record.failures.clear()
        while len(self._records) > MAX_KEYS:
            self._records.popitem(last=False)

    def succeeded(self, kind: Kind, ip: str) -> None:
        """A right one: what was wrong before is forgotten."""
        self._records.pop((kind, ip), None)

    @staticmethod
    def _exempt(ip: str, limits: RateLimit) -> bool:
        return limits.exempt_loopback and is_loopback(ip)
