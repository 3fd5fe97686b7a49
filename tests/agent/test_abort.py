"""Stopping a run in each of its states leaves a valid transcript and says what happened."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from claw_engine.agent.context.hygiene import turns_of
from claw_engine.agent.context.pairing import repair
from claw_engine.config.sections.agents import AgentDefaults, AgentsSettings
from claw_engine.config.settings import Settings
from claw_engine.events import Event
from claw_engine.messages import AssistantMessage, ToolResultMessage, text_of
from claw_engine.models.base import ModelError, ModelErrorKind, TextDelta, ToolCallStart
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.runs import AbortReason
from claw_engine.tools.base import ToolContext, ToolResult
from tests.agent.bench import MAIN, Bench, FnTool, Script, ScriptedModel, calls, check, says
from tests.agent.conftest import MakeBench

END = TraceKind.RUN_ENDED


async def stop(b: Bench, run: str) -> Mapping[str, object]:
    assert b.dispatcher.abort(MAIN) == [run]
    assert b.dispatcher.abort(MAIN) == []  # a second key press changes nothing
    end = await b.until(END, run)
    assert end.data["status"] == "aborted"
    assert end.data["stopReason"] == "user"
    assert b.kinds(run).count("run.ended") == 1
    await b.dispatcher.wait(run)
    return end.data


async def assert_valid(b: Bench) -> None:
    transcript = await b.sessions.transcript(MAIN)
    assert check(repair(turns_of(transcript.messages()))) == []
    entry = b.sessions.get(MAIN)
    assert entry is not None
    assert entry.aborted_last_run


async def test_while_connecting(bench: MakeBench) -> None:
    never = asyncio.Event()
    b = await bench(ScriptedModel([[never], says("Next.")]))
    run = await b.send("hi")
    await b.until(TraceKind.CALL_STARTED, run)
    await stop(b, run)
    await assert_valid(b)
    await b.until(END, await b.send("and now"), status="done")


async def test_mid_stream_keeps_the_partial_text_and_drops_partial_calls(bench: MakeBench) -> None:
    never = asyncio.Event()
    script: Script = [TextDelta("Half an ans"), ToolCallStart(0, "t1", "write"), never]
    model = ScriptedModel([script, says("Next.")])
    b = await bench(model)
    run = await b.send("hi")
    await b.until(TraceKind.TEXT, run)
    data = await stop(b, run)
    assert data["text"] == "Half an ans"
    last = (await b.messages())[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.stop_reason, text_of(last), last.tool_calls()) == ("aborted", "Half an ans", ())
    assert model.closed == 1
    await assert_valid(b)


async def test_during_tools_the_finished_one_keeps_its_result(bench: MakeBench) -> None:
    async def quick(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        return ToolResult("quick result")

    async def slow(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        ctx.output("line one\n")
        await asyncio.Event().wait()
        return ToolResult("never")

    model = ScriptedModel([calls(("quick", "{}"), ("slow", "{}")), says("Next.")])
    b = await bench(model, [FnTool("quick", quick), FnTool("slow", slow)])
    run = await b.send("go")
    await b.until(TraceKind.TOOL_ENDED, run)
    await stop(b, run)
    results = [m for m in await b.messages() if isinstance(m, ToolResultMessage)]
    assert [r.is_error for r in results] == [False, True]
    assert text_of(results[0]) == "quick result"
    assert "stopped before it finished (user)" in text_of(results[1])
    assert "line one" in text_of(results[1])
    await assert_valid(b)
    await b.until(END, await b.send("and now"), status="done")
    assert check(model.requests[-1].turns) == []


async def test_while_parked(bench: MakeBench) -> None:
    async def asks(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        async with ctx.operator_wait():
            await asyncio.Event().wait()
        return ToolResult("never")

    b = await bench(ScriptedModel([calls(("asks", "{}"))]), [FnTool("asks", asks)])
    run = await b.send("go")
    await b.until(TraceKind.RUN_STATE, run, new="parked")
    await stop(b, run)
    await assert_valid(b)
    (result,) = [m for m in await b.messages() if isinstance(m, ToolResultMessage)]
    assert text_of(result).endswith("it still waited for the operator, and nothing was done.")
    assert [(lane.active, lane.parked) for lane in b.lanes.status() if lane.lane == "main"] == [
        (0, 0)
    ]


async def test_while_backing_off(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([[ModelError("Busy.", kind=ModelErrorKind.OVERLOADED)]]))
    run = await b.send("hi")
    await b.until(TraceKind.RUN_STATE, run, new="backing_off")
    await stop(b, run)
    await assert_valid(b)


async def test_while_queued_nothing_of_it_happens(bench: MakeBench) -> None:
    go = asyncio.Event()
    model = ScriptedModel([[go, *says("One.")]])
    b = await bench(model)
    first = await b.send("one")
    await b.until(TraceKind.CALL_STARTED, first)
    second = await b.send("two")
    assert b.dispatcher.abort(MAIN, second) == [second]
    await b.until(END, second, status="aborted")
    go.set()
    await b.until(END, first, status="done")
    assert len(model.requests) == 1


async def test_a_stop_before_the_first_answer_still_keeps_the_message(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]))
    run = await b.send("remember me")
    await b.until(TraceKind.CALL_STARTED, run)
    await stop(b, run)
    transcript = await b.sessions.transcript(MAIN)
    assert transcript.path.read_text().count("remember me") == 1


@pytest.mark.parametrize("reason", [AbortReason.SHUTDOWN, AbortReason.INTERRUPT])
async def test_the_reason_is_told(bench: MakeBench, reason: AbortReason) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]))
    run = await b.send("hi")
    await b.until(TraceKind.CALL_STARTED, run)
    b.runs.abort(run, reason)
    end = await b.until(END, run)
    assert (end.data["status"], end.data["stopReason"]) == ("aborted", reason.value)


def with_timeout(seconds: int) -> Settings:
    defaults = AgentDefaults(timeout_seconds=seconds)
    return Settings(agents=AgentsSettings(defaults=defaults))


async def test_the_time_limit_stops_a_run(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]), settings=with_timeout(60))
    run = await b.send("hi")
    await b.until(TraceKind.CALL_STARTED, run)
    await b.clock.advance(59)
    assert b.runs.get(run) is not None
    await b.clock.advance(1)
    end = await b.until(END, run)
    assert (end.data["status"], end.data["stopReason"]) == ("aborted", "timeout")
    assert "60 s" in end.data["error"]["title"]  # type: ignore[index]


async def test_the_time_limit_stands_still_while_parked(bench: MakeBench) -> None:
    decided = asyncio.Event()

    async def asks(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        async with ctx.operator_wait():
            await decided.wait()
        return ToolResult("allowed")

    model = ScriptedModel([calls(("asks", "{}")), [asyncio.Event()]])
    b = await bench(model, [FnTool("asks", asks)], settings=with_timeout(60))
    run = await b.send("hi")
    await b.until(TraceKind.RUN_STATE, run, new="parked")
    await b.clock.advance(3600)
    decided.set()
    await b.until(TraceKind.CALL_STARTED, run)
    await b.clock.advance(59)
    assert b.runs.get(run) is not None
    await b.clock.advance(1)
    await b.until(END, run, stopReason="timeout")


async def test_a_stop_at_any_step_leaves_a_valid_transcript(tmp_path: Path) -> None:
    """Stops right after the nth trace event, for every n of a run with two tool rounds."""

    async def tool(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        ctx.output("some")
        async with ctx.operator_wait():
            await asyncio.sleep(0)
        return ToolResult("result")

    for step in itertools.count(1):
        rounds = [calls(("tool", "{}"), ("tool", "{}")), calls(("tool", "{}")), says("All done.")]
        model = ScriptedModel([*rounds, says("Next.")])
        b = Bench(tmp_path / f"s{step}", model, [FnTool("tool", tool)])
        await b.start()
        seen = itertools.count(1)

        def stop_at(event: Event, b: Bench = b, seen: Iterator[int] = seen, n: int = step) -> None:
            b.bus.publish(event)
            if isinstance(event, TraceEvent) and event.run_id == "first" and next(seen) == n:
                b.runs.abort("first", AbortReason.USER)

        b.on_event = stop_at
        await b.send("go", id_="first")
        result = await b.dispatcher.wait("first")
        assert result is not None
        model.scripts = [says("Next.")]
        after = await b.dispatcher.wait(await b.send("and now"))
        assert after is not None
        assert after.text == "Next."
        assert check(model.requests[-1].turns) == []
        transcript = await b.sessions.transcript(MAIN)
        kept = [stored.message for stored in transcript.messages()]
        asked = [c.id for m in kept if isinstance(m, AssistantMessage) for c in m.tool_calls()]
        answered = [m.tool_call_id for m in kept if isinstance(m, ToolResultMessage)]
        assert asked == answered
        assert b.lanes.status()[0].active == b.lanes.status()[0].parked == 0
        await b.stop()
        if result.status == "done":
            break
        assert result.stop_reason == "user"
    assert step > 25
