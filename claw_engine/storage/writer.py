"""One writer at a time: callers hand in items, whatever waits is written as one batch.

Giving up the wait never gives up the write. No timer: an idle writer starts at once, and what
arrives while it writes makes the next batch (this is the group commit of the journal).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")


class BatchWriter(Generic[Item]):
    """Writes items in order through `write(batch)`; a batch that raises fails all its waiters."""

    def __init__(self, write: Callable[[Sequence[Item]], Awaitable[None]], name: str) -> None:
        self._write = write
        self._name = name
        self._waiting: list[tuple[Item, asyncio.Future[None]]] = []
        self._busy = False  # not `task is None`: an eager task factory runs before it returns
        self._task: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is being written."""
        return not self._busy

    def submit(self, item: Item) -> asyncio.Future[None]:
        """Queue an item; the future ends when its batch was written, or with the batch's error.

        Await it only through `wait`: cancelling the future itself loses the outcome.
        """
        done = asyncio.get_running_loop().create_future()
        done.add_done_callback(_seen)
        self._waiting.append((item, done))
        if not self._busy:
            self._busy = True
            self._task = asyncio.create_task(self._run(), name=self._name)
        return done

    async def put(self, item: Item) -> None:
        """Queue an item and wait for its batch; cancelling abandons the wait only."""
        # The future is nobody else's: cancelling it gives up the wait and not the write.
        await self.submit(item)

    async def drain(self) -> None:
        """Wait until everything queued so far was tried."""
        while self._busy and self._task is not None:
            await asyncio.shield(self._task)

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    await self._write([item for item, _ in batch])
                except Exception as error:  # the outcome belongs to those who wait
                    _settle(batch, error)
                except BaseException:  # the loop is going down: nobody will ever know more
                    for _, future in (*batch, *self._waiting):
                        future.cancel()
                    raise
                else:
                    _settle(batch, None)
        finally:
            self._busy = False


def _settle(batch: list[tuple[Item, asyncio.Future[None]]], error: Exception | None) -> None:
    for _, future in batch:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)


def _seen(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()
