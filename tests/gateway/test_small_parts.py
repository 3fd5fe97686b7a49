"""Idempotency, sliced JSON, throttle, the dispatcher's failures."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.gateway.dispatch import Dispatcher
from claw_engine.gateway.encoding import response_line
from claw_engine.gateway.idempotency import AnswerCache
from claw_engine.gateway.outbox import Outbox
from claw_engine.gateway.peer import Identity, Peer
from claw_engine.gateway.table import Call, MethodTable, Payload, method
from claw_engine.gateway.throttle import Throttle
from claw_engine.gateway.validate import NoParams
from claw_engine.protocol.frames import RequestFrame, ResponseFrame
from claw_engine.protocol.names import ALL_SCOPES, Scope
from tests.support.fakes import FakeClock

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False,
              allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4),
                            st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=30,
)  # fmt: skip


@given(values)
def test_a_sliced_answer_reads_as_what_it_was(value: object) -> None:
    line = asyncio.run(response_line(ResponseFrame("1", True, {"v": value})))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"type": "res", "id": "1", "ok": True, "payload": {"v": value}}


async def test_a_large_answer_lets_others_run_in_between() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    rows = [{"text": "x" * 1000} for _ in range(2000)]
    line = await response_line(ResponseFrame("1", True, {"messages": rows}))
    task.cancel()
    assert len(line) > 2_000_000
    assert turns >= 25


async def test_a_failure_is_told_to_all_and_not_kept() -> None:
    cache = AnswerCache(FakeClock())
    calls = 0

    async def fail() -> Payload:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        raise ValueError("no")

    both = await asyncio.gather(
        cache.once("k", fail), cache.once("k", fail), return_exceptions=True
    )
    assert [type(e) for e in both] == [ValueError, ValueError]
    assert calls == 1
    assert "k" not in cache


async def test_answers_are_kept_five_minutes_and_a_thousand_at_most() -> None:
    clock = FakeClock()
    cache = AnswerCache(clock, limit=3)

    async def answer() -> Payload:
        return {}

    for key in "abcd":
        await cache.once(key, answer)
    assert [key in cache for key in "abcd"] == [False, True, True, True]
    await clock.advance(301)
    assert "d" not in cache


async def test_a_caller_that_is_cancelled_does_not_undo_it() -> None:
    cache = AnswerCache(FakeClock())
    go = asyncio.Event()
    done: list[str] = []

    async def work() -> Payload:
        await go.wait()
        done.append("done")
        return {"n": 1}

    caller = asyncio.create_task(cache.once("k", work))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    go.set()
    assert await cache.once("k", work) == {"n": 1}
    assert done == ["done"]


async def test_the_throttle_calls_first_at_once_and_last_at_the_end() -> None:
    clock, calls = FakeClock(), []
    throttle = Throttle(clock, 0.25, lambda: calls.append(clock.now_ms()))
    for _ in range(10):
        throttle.poke()
    assert len(calls) == 1
    await clock.advance(0.25)
    assert len(calls) == 2
    await clock.advance(1)
    assert len(calls) == 2
    assert clock.waiting == 0


def peer() -> Peer:
    identity = Identity("test", "test", scopes=frozenset(ALL_SCOPES))
    return Peer("c", identity, Outbox(lambda: None))


async def test_a_broken_handler_is_an_answer_not_a_hang() -> None:
    async def broken(call: Call, params: NoParams) -> Payload:
        raise RuntimeError("a bug")

    table = MethodTable([method("x", Scope.READ, NoParams, broken)])
    frame = await Dispatcher(table).handle(peer(), RequestFrame("1", "x"), lambda f: None)
    assert frame.ok is False
    assert frame.error is not None
    assert frame.error.code == "UNAVAILABLE"
    assert "a bug" in frame.error.message


async def test_cancellation_is_passed_on() -> None:
    async def wait(call: Call, params: NoParams) -> Payload:
        await asyncio.Event().wait()
        return {}

    table = MethodTable([method("x", Scope.READ, NoParams, wait)])
    task = asyncio.create_task(
        Dispatcher(table).handle(peer(), RequestFrame("1", "x"), lambda f: None)
    )
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_two_methods_of_one_name_are_a_mistake() -> None:
    async def nothing(call: Call, params: NoParams) -> Payload:
        return {}

    one = method("x", Scope.READ, NoParams, nothing)
    with pytest.raises(ValueError, match="two methods"):
        MethodTable([one, one])
