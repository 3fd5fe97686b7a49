"""Hooks around tool calls: order, blocking, rewriting, and failures that break nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from claw_engine.tools.base import ToolResult
from claw_engine.tools.hooks import Action, After, Before, CallEvent, ResultEvent, ToolHooks
from tests.support.fakes import FakeClock

CALL = CallEvent("exec", {"command": "ls"}, "main", "agent:main:main", "run-1", "c1")


class Told:
    def __init__(self) -> None:
        self.actions: list[Action] = []

    def __call__(self, action: Action) -> None:
        self.actions.append(action)

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(a.hook, a.kind) for a in self.actions]


def setting(**changes: object) -> object:
    async def hook(event: CallEvent) -> Before:
        return Before(params={**event.params, **changes})

    return hook


async def test_without_hooks_nothing_happens() -> None:
    hooks, told = ToolHooks(FakeClock()), Told()
    assert not hooks
    assert await hooks.before(CALL, told) == Before()
    result = ToolResult("x")
    assert await hooks.after(ResultEvent(CALL, result, 1), told) is result
    assert told.actions == []


async def test_higher_priority_goes_first_and_each_sees_the_arguments_so_far() -> None:
    hooks, told = ToolHooks(FakeClock()), Told()
    seen: list[tuple[str, Mapping[str, object]]] = []

    def noting(name: str) -> object:
        async def hook(event: CallEvent) -> Before:
            seen.append((name, event.params))
            return Before(params={**event.params, name: True})

        return hook

    for name, priority in (("late", -1), ("first", 10), ("second", 10), ("plain", 0)):
        hooks.on_before(name, noting(name), priority=priority)  # type: ignore[arg-type]  # built above
    answer = await hooks.before(CALL, told)
    assert [name for name, _ in seen] == ["first", "second", "plain", "late"]
    assert list(seen[3][1]) == ["command", "first", "second", "plain"]
    assert answer.params is not None
    assert "late" in answer.params
    assert CALL.params == {"command": "ls"}
    assert [kind for _, kind in told.kinds] == ["rewrote arguments"] * 4


async def test_a_block_ends_the_chain_with_its_reason() -> None:
    hooks, told = ToolHooks(FakeClock()), Told()
    reached: list[str] = []

    async def block(event: CallEvent) -> Before:
        return Before(block=True, reason="not on Sundays")

    async def later(event: CallEvent) -> None:
        reached.append("later")

    hooks.on_before("sunday", block, priority=1)
    hooks.on_before("later", later)
    answer = await hooks.before(CALL, told)
    assert answer.block
    assert answer.reason == "not on Sundays (hook sunday)"
    assert reached == []
    assert told.kinds == [("sunday", "blocked")]
    assert "not on Sundays" in told.actions[0].sentence("exec")


@pytest.mark.parametrize("strict", [False, True])
async def test_a_hook_that_fails_is_passed_over_unless_it_guards(strict: bool) -> None:
    hooks, told = ToolHooks(FakeClock()), Told()

    async def broken(event: CallEvent) -> Before:
        raise ZeroDivisionError("oops")

    hooks.on_before("broken", broken, blocks_on_failure=strict)
    answer = await hooks.before(CALL, told)
    assert answer.block is strict
    assert told.kinds == [("broken", "failed")]
    assert "oops" in told.actions[0].text


async def test_a_hook_that_answers_nonsense_is_a_failure() -> None:
    hooks, told = ToolHooks(FakeClock()), Told()

    async def nonsense(event: CallEvent) -> object:
        return "yes"

    hooks.on_before("odd", nonsense)  # type: ignore[arg-type]  # what it is about
    assert await hooks.before(CALL, told) == Before()
    assert told.kinds == [("odd", "failed")]


async def test_a_hook_that_cancels_itself_does_not_end_the_run() -> None:
    hooks, told = ToolHooks(FakeClock()), Told()

    async def gone(event: CallEvent) -> None:
        raise asyncio.CancelledError

    hooks.on_before("gone", gone)
    assert await hooks.before(CALL, told) == Before()
    assert told.kinds == [("gone", "failed")]


async def test_a_hook_that_takes_too_long_is_passed_over_and_stopped() -> None:
    clock = FakeClock()
    hooks, told = ToolHooks(clock), Told()
    stopped = asyncio.Event()

    async def slow(event: CallEvent) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    hooks.on_before("slow", slow, timeout_s=3)
    task = asyncio.create_task(hooks.before(CALL, told))
    await clock.advance(3)
    assert await task == Before()
    await stopped.wait()
    assert told.kinds == [("slow", "timed out")]


async def test_stopping_the_run_stops_the_hook() -> None:
    hooks, told = ToolHooks(FakeClock()), Told()
    entered, stopped = asyncio.Event(), asyncio.Event()

    async def slow(event: CallEvent) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    hooks.on_before("slow", slow)
    task = asyncio.create_task(hooks.before(CALL, told))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await stopped.wait()
    assert told.actions == []


async def test_a_result_can_be_rewritten_and_that_is_told() -> None:
    hooks, told = ToolHooks(FakeClock()), Told()

    async def redact(event: ResultEvent) -> After:
        return After(replace(event.result, text=event.result.text.replace("key", "***")))

    async def watch(event: ResultEvent) -> None:
        assert event.result.text == "the ***"

    hooks.on_after("redact", redact, priority=1)
    hooks.on_after("watch", watch)
    result = await hooks.after(ResultEvent(CALL, ToolResult("the key"), 5), told)
    assert result.text == "the ***"
    assert told.kinds == [("redact", "rewrote result")]


async def test_a_hook_can_be_taken_out_again() -> None:
    hooks, told = ToolHooks(FakeClock()), Told()
    remove = hooks.on_before("one", setting(x=1))  # type: ignore[arg-type]  # built above
    assert hooks
    remove()
    remove()
    assert not hooks
    assert await hooks.before(CALL, told) == Before()
