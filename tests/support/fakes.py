"""Fakes of the world: a clock that only moves when told, ids that count, a disk that fails."""

from __future__ import annotations

import asyncio
import errno
import heapq
import itertools
import os
from collections.abc import Callable
from pathlib import Path

from claw_engine.world import RealDisk, RealSpawn, World

START_MS = 1_796_028_000_000
"""2026-11-30 08:40:00 UTC: the morning the golden captures were made."""


class FakeTimer:
    def __init__(self, fn: Callable[[], None]) -> None:
        self.fn: Callable[[], None] | None = fn

    def cancel(self) -> None:
        self.fn = None


class FakeClock:
    """Time stands still until `advance`; sleepers and timers wake in order."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self._start_ms = start_ms
        self._now = 0.0
        self._counter = itertools.count()
        self._timers: list[tuple[float, int, FakeTimer]] = []

    def now_ms(self) -> int:
        return self._start_ms + round(self._now * 1000)

    def monotonic(self) -> float:
        return self._now

    def call_later(self, seconds: float, fn: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(fn)
        heapq.heappush(self._timers, (self._now + max(0.0, seconds), next(self._counter), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done = asyncio.Event()
        timer = self.call_later(seconds, done.set)
        try:
            await done.wait()
        finally:
            timer.cancel()

    @property
    def waiting(self) -> int:
        """How many timers are armed."""
        return sum(1 for _, _, timer in self._timers if timer.fn is not None)

    async def advance(self, seconds: float) -> None:
        """Move time forward, running what becomes due, letting tasks react in between."""
        target = self._now + seconds
        await settle()
        while self._timers and self._timers[0][0] <= target:
            due, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            if timer.fn is not None:
                fn, timer.fn = timer.fn, None
                fn()
                await settle()
        self._now = target
        await settle()


async def settle(rounds: int = 20) -> None:
    """Let every ready task run; for in-memory work only (real I/O is awaited by its event)."""
    for _ in range(rounds):
        await asyncio.sleep(0)


class FakeIds:
    """Counting ids in the right shapes."""

    def __init__(self) -> None:
        self._counter = itertools.count(1)

    def uuid(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._counter):012x}"

    def hex(self, length: int) -> str:
        return f"{next(self._counter):0{length}x}"[-length:]

    def token(self, nbytes: int) -> str:
        return f"token-{next(self._counter)}-{'x' * nbytes}"


class FaultyDisk(RealDisk):
    """A real disk whose nth write fails; `short` bytes may land before it does."""

    def __init__(self) -> None:
        super().__init__()
        self.fail_after: int | None = None
        self.error = errno.ENOSPC
        self.short = 0
        self.writes = 0

    def fail_next(self, *, after: int = 0, error: int = errno.ENOSPC, short: int = 0) -> None:
        """Fail the write that comes after `after` good ones, and all later ones, until `heal`."""
        self.fail_after, self.error, self.short = self.writes + after, error, short

    def heal(self) -> None:
        self.fail_after = None

    def _count(self) -> bool:
        self.writes += 1
        return self.fail_after is not None and self.writes > self.fail_after

    def append(self, path: Path, data: bytes, *, fsync: bool, mode: int = 0o600) -> None:
        if self._count():
            before = path.stat().st_size if path.exists() else 0
            if self.short:
                super().append(path, data[: self.short], fsync=False, mode=mode)
                os.truncate(path, before)
            raise OSError(self.error, os.strerror(self.error), str(path))
        super().append(path, data, fsync=fsync, mode=mode)

    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        if self._count():
            raise OSError(self.error, os.strerror(self.error), str(path))
        super().replace(path, data, mode=mode)


def fake_world(
    clock: FakeClock | None = None, disk: RealDisk | None = None, ids: FakeIds | None = None
) -> World:
    """A world with a fake clock and ids, a real (or faulty) disk and real processes."""
    return World(clock or FakeClock(), ids or FakeIds(), disk or RealDisk(), RealSpawn())
