"""A run's claim on its session's transcript: OpenClaw's write lock, given back while it waits.

async with await sessions.hold(key) as hold:
    ...
    hold.let_go()            # parked: a person decides
    await hold.acquire()     # goes on; what others wrote meanwhile is read
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from claw_engine.sessions.transcript import Transcript
from claw_engine.storage.foreign_lock import MAX_HOLD_S, FileLocks, Hold


class TranscriptHold:
    """Loop thread only. Releasing and acquiring again is allowed any number of times."""

    def __init__(
        self,
        locks: FileLocks,
        transcript: Transcript,
        *,
        max_hold_s: float = MAX_HOLD_S,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self._locks = locks
        self._max_hold_s = max_hold_s
        self._on_lost = on_lost
        self._hold: Hold | None = None
        self.transcript = transcript

    @property
    def held(self) -> bool:
        return self._hold is not None and not self._hold.lost

    async def acquire(self, timeout_s: float | None = None) -> bool:
        """Take the lock; whether another process had written to the transcript meanwhile.

        Raises LockHeld, StateDiskError.
        """
        if self.held:
            return False
        hold = self._hold = await self._locks.acquire(
            self.transcript.path,
            timeout_s=timeout_s,
            max_hold_s=self._max_hold_s,
            on_lost=self._on_lost,
            look=self.transcript.changed,
        )
        return hold.saw is not False and await self.transcript.refresh()

    def let_go(self) -> None:
        """`release` without waiting for the lock file to go."""
        hold, self._hold = self._hold, None
        if hold is not None:
            self._locks.let_go(hold)

    async def release(self) -> None:
        """Give the lock back, however the caller ends. Safe to call twice."""
        hold, self._hold = self._hold, None
        if hold is not None:
            await asyncio.shield(self._locks.release(hold))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.release()
