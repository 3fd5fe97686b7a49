from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator

import pytest

from claw_engine.watchdog import LoopWatchdog

LIMIT_S = 20


class Warnings(logging.Handler):
    """Lets the loop wait for a log line of the watchdog's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.get_running_loop()
        self.lines: asyncio.Queue[str] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.loop.call_soon_threadsafe(self.lines.put_nowait, record.getMessage())

    async def next(self) -> str:
        return await asyncio.wait_for(self.lines.get(), LIMIT_S)


@pytest.fixture
async def warnings() -> AsyncIterator[Warnings]:
    handler = Warnings()
    logger = logging.getLogger("claw_engine.watchdog")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@pytest.fixture
async def watchdog() -> AsyncIterator[LoopWatchdog]:
    made = LoopWatchdog(threshold_ms=100)
    made.start()
    made.set_active(True)
    yield made
    made.close()


def hold_the_loop(seconds: float) -> None:
    """The culprit: blocks as a slow synchronous call would."""
    time.sleep(seconds)


async def test_a_stall_is_told_once_with_lag_and_culprit(
    watchdog: LoopWatchdog, warnings: Warnings
) -> None:
    hold_the_loop(1.0)
    line = await warnings.next()
    assert "event loop stalled: lagMs=" in line
    assert "hold_the_loop" in line
    seen = watchdog.snapshot()
    assert seen.stall_count == 1
    assert 100 <= seen.stalls[0].lag_ms <= seen.max_lag_ms
    assert warnings.lines.empty()


async def test_a_waiting_loop_is_no_stall(watchdog: LoopWatchdog) -> None:
    answered = asyncio.Event()
    answer = watchdog._answer

    def counted() -> None:
        answer()
        answered.set()

    watchdog._answer = counted  # type: ignore[method-assign]  # to wait for answers, not for time
    for _ in range(3):
        answered.clear()
        await asyncio.wait_for(answered.wait(), LIMIT_S)
    assert watchdog.snapshot().stalls == ()


async def test_close_ends_the_thread_at_once_even_during_a_stall() -> None:
    watchdog = LoopWatchdog(threshold_ms=10)
    watchdog.start()
    (thread,) = [t for t in threading.enumerate() if t.name == "loop-watchdog"]
    hold_the_loop(0.1)
    watchdog.close()
    assert not thread.is_alive()


def test_the_thread_ends_when_its_loop_is_gone() -> None:
    watchdog = LoopWatchdog()

    async def begin() -> None:
        watchdog.start()
        watchdog.set_active(True)

    asyncio.run(begin())
    assert watchdog._thread is not None
    watchdog._thread.join(LIMIT_S)
    assert not watchdog._thread.is_alive()
    watchdog.close()
