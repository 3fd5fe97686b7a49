from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from claw_engine.storage.writer import BatchWriter


class Slow:
    """Records batches; each waits until the test lets it go."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, batch: Sequence[int]) -> None:
        self.batches.append(list(batch))
        self.started.set()
        await self.go.wait()
        if self.error is not None:
            raise self.error


async def test_an_idle_writer_starts_at_once_and_what_waits_shares_a_batch() -> None:
    slow = Slow()
    writer = BatchWriter(slow, "t")
    waits = [asyncio.create_task(writer.put(0))]
    await slow.started.wait()
    waits += [asyncio.create_task(writer.put(n)) for n in (1, 2, 3)]
    await asyncio.sleep(0)
    slow.go.set()
    await asyncio.gather(*waits)
    assert slow.batches == [[0], [1, 2, 3]]
    await writer.drain()
    assert writer.idle


async def test_giving_up_the_wait_does_not_give_up_the_write() -> None:
    slow = Slow()
    writer = BatchWriter(slow, "t")
    wait = asyncio.create_task(writer.put(1))
    await slow.started.wait()
    queued = asyncio.create_task(writer.put(2))
    await asyncio.sleep(0)
    wait.cancel()
    queued.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    slow.go.set()
    await writer.drain()
    assert slow.batches == [[1], [2]]


async def test_an_error_reaches_every_waiter_of_its_batch_and_only_those() -> None:
    slow = Slow()
    writer = BatchWriter(slow, "t")
    slow.error = ValueError("no")
    slow.go.set()
    results = await asyncio.gather(writer.put(1), writer.put(2), return_exceptions=True)
    assert [type(r) for r in results] == [ValueError, ValueError]
    slow.error = None
    await writer.put(3)


async def test_a_write_that_never_suspends_works_under_an_eager_task_factory() -> None:
    seen: list[int] = []

    async def write(batch: Sequence[int]) -> None:
        seen.extend(batch)

    loop = asyncio.get_running_loop()
    factory = getattr(asyncio, "eager_task_factory", None)
    loop.set_task_factory(factory)
    try:
        writer = BatchWriter(write, "t")
        for n in range(3):
            await writer.put(n)
        await writer.drain()
    finally:
        loop.set_task_factory(None)
    assert seen == [0, 1, 2]
    assert writer.idle


async def test_a_loop_that_goes_down_leaves_nobody_waiting() -> None:
    slow = Slow()
    writer = BatchWriter(slow, "t")
    first = asyncio.create_task(writer.put(1))
    await slow.started.wait()
    second = asyncio.create_task(writer.put(2))
    await asyncio.sleep(0)
    (running,) = [t for t in asyncio.all_tasks() if t.get_name() == "t"]
    running.cancel()
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(r) for r in results] == [asyncio.CancelledError] * 2
    assert writer.idle
