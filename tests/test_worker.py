"""The worker process: values there and back, failures told, idle end, a lost one is replaced."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import signal

import pytest

from claw_engine.config.redact import Redactor
from claw_engine.trace import shown
from claw_engine.trace.compare import line_diff
from claw_engine.worker import Worker, WorkerFailed
from claw_engine.world import real_world
from tests.support.fakes import FakeClock, fake_world, settle

pid = os.getpid
"""What the process says of itself."""


async def test_calls_run_in_one_other_process() -> None:
    worker = Worker(real_world())
    assert worker.pid is None, "started before anybody called"
    first = await worker.call(pid)
    assert first == worker.pid != os.getpid()
    lines, more = await worker.call(line_diff, "a\nb", "a\nc", 10)
    assert (lines, more) == ([(" ", "a"), ("-", "b"), ("+", "c")], False)
    large = "x" * 3_000_000
    assert await worker.call(len, large) == 3_000_000
    assert await asyncio.gather(*(worker.call(pid) for _ in range(5))) == [first] * 5
    await worker.close()
    assert worker.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_what_fails_there_is_told_and_the_process_goes_on() -> None:
    worker = Worker(real_world())
    before = await worker.call(pid)
    with pytest.raises(WorkerFailed, match="TypeError"):
        await worker.call(len, 7)  # type: ignore[arg-type]  # that is the point
    assert await worker.call(pid) == before
    await worker.close()


async def test_a_process_that_dies_is_replaced() -> None:
    worker = Worker(real_world())
    first = await worker.call(pid)
    with pytest.raises(WorkerFailed):
        await worker.call(os.kill, first, signal.SIGKILL)
    second = await worker.call(pid)
    assert second != first
    await worker.close()


async def test_a_call_that_is_given_up_takes_its_process_along() -> None:
    worker = Worker(real_world())
    first = await worker.call(pid)
    task = asyncio.create_task(worker.call(signal.pause))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await worker.call(pid) != first, "the answer of another call could be taken for ours"
    await worker.close()


async def test_it_ends_when_nobody_needs_it() -> None:
    clock = FakeClock()
    worker = Worker(fake_world(clock), idle_s=60)
    first = await worker.call(pid)
    await clock.advance(59)
    assert worker.pid == first
    assert await worker.call(pid) == first, "each call begins the time anew"
    await clock.advance(59)
    assert worker.pid == first
    await clock.advance(2)
    async with asyncio.timeout(10):
        while worker._ending:
            await settle()
    assert worker.pid is None
    assert await worker.call(pid) != first
    await worker.close()


async def test_what_a_function_prints_does_not_disturb() -> None:
    worker = Worker(real_world())
    await worker.call(print, "words between two answers")
    assert await worker.call(len, "abc") == 3
    await worker.close()


def test_a_redactor_travels() -> None:
    made = Redactor(["hidden-word"], [re.compile("x+y")])
    again = pickle.loads(pickle.dumps(made))
    assert shown.hidden(["a hidden-word and xxy"], again) == ["a *** and ***"]
