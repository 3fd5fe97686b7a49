"""Waiting for a person gives the slot back; work beside a waiting call keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from claw_engine.messages import ToolResultMessage
from claw_engine.protocol.trace import TraceKind
from claw_engine.tools.base import ToolContext, ToolResult
from tests.agent.bench import Bench, FnTool, ScriptedModel, calls, says
from tests.agent.conftest import MakeBench

END = TraceKind.RUN_ENDED


def main_lane(b: Bench) -> tuple[int, int, int]:
    lane = next(lane for lane in b.lanes.status() if lane.lane == "main")
    return lane.active, lane.queued, lane.parked


async def test_four_sessions_park_and_the_fifth_answers(bench: MakeBench) -> None:
    decided = {f"agent:main:s{n}": asyncio.Event() for n in range(4)}

    async def asks(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        async with ctx.operator_wait():
            await decided[ctx.session_key].wait()
        return ToolResult("allowed")

    scripts = [calls(("asks", "{}"))] * 4 + [says("At once.")] + [says("Allowed.")] * 4
    b = await bench(ScriptedModel(scripts), [FnTool("asks", asks)])
    parked = [await b.send("go", key) for key in decided]
    for run in parked:
        if b.runs.get(run).state != "parked":  # type: ignore[union-attr]
            await b.until(TraceKind.RUN_STATE, run, new="parked")
    assert main_lane(b) == (0, 0, 4)

    fifth = await b.send("hello", "agent:main:s5")
    end = await b.until(END, fifth)
    assert end.data["text"] == "At once."

    for event in decided.values():
        event.set()
    for run in parked:
        result = await b.dispatcher.wait(run)
        assert result is not None
        assert (result.status, result.text) == ("done", "Allowed.")
    assert main_lane(b) == (0, 0, 0)


async def test_a_decided_run_goes_before_the_queue(bench: MakeBench) -> None:
    decided, hold = asyncio.Event(), asyncio.Event()

    async def asks(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        async with ctx.operator_wait():
            await decided.wait()
        return ToolResult("allowed")

    scripts = [calls(("asks", "{}")), [hold, *says("Held.")], says("x"), says("y")]
    model = ScriptedModel(scripts)
    b = await bench(model, [FnTool("asks", asks)])
    b.lanes.configure("main", 1)
    first = await b.send("go", "agent:main:a")
    await b.until(TraceKind.RUN_STATE, first, new="parked")
    holder = await b.send("hold", "agent:main:b")
    await b.until(TraceKind.CALL_STARTED, holder)
    waiting = await b.send("wait", "agent:main:c")
    decided.set()
    await b.clock.advance(0)  # the decision reaches the lane
    assert main_lane(b)[1] == 2
    hold.set()
    await b.until(END, waiting)
    ends = [e.run_id for e in b.trace if e.kind is END]
    assert ends == [holder, first, waiting]


async def test_a_working_call_beside_a_waiting_one_keeps_the_slot(bench: MakeBench) -> None:
    decided, work = asyncio.Event(), asyncio.Event()

    async def asks(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        async with ctx.operator_wait():
            await decided.wait()
        return ToolResult("allowed")

    async def works(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        ctx.output("busy")
        await work.wait()
        return ToolResult("worked")

    model = ScriptedModel([calls(("asks", "{}"), ("works", "{}")), says("ok")])
    b = await bench(model, [FnTool("asks", asks), FnTool("works", works)])
    run = await b.send("go")
    await b.until(TraceKind.TOOL_OUTPUT, run)
    assert main_lane(b) == (1, 0, 0)
    work.set()
    await b.until(TraceKind.RUN_STATE, run, new="parked")
    assert main_lane(b) == (0, 0, 1)
    decided.set()
    await b.until(END, run, status="done")


async def test_two_waiting_calls_decided_together_return_once(bench: MakeBench) -> None:
    decided = asyncio.Event()

    async def asks(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        async with ctx.operator_wait():
            await decided.wait()
        assert main_lane(b) == (1, 0, 0)
        return ToolResult("allowed")

    model = ScriptedModel([calls(("asks", "{}"), ("asks", "{}")), says("ok")])
    b = await bench(model, [FnTool("asks", asks)])
    run = await b.send("go")
    await b.until(TraceKind.RUN_STATE, run, new="parked")
    decided.set()
    await b.until(END, run, status="done")
    states = [e.data["new"] for e in b.trace if e.kind is TraceKind.RUN_STATE]
    assert states.count("parked") == 1


async def test_the_time_of_a_call_leaves_out_the_wait_for_the_operator(bench: MakeBench) -> None:
    decided, work = asyncio.Event(), asyncio.Event()

    async def asks(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        async with ctx.operator_wait():
            await decided.wait()
        work.set()
        await ctx.world.clock.sleep(2)
        return ToolResult("allowed")

    b = await bench(ScriptedModel([calls(("asks", "{}")), says("Done.")]), [FnTool("asks", asks)])
    run = await b.send("go")
    await b.until(TraceKind.RUN_STATE, run, new="parked")
    await b.clock.advance(100)
    decided.set()
    await work.wait()
    await b.clock.advance(2)
    ended = await b.until(TraceKind.TOOL_ENDED, run)
    assert (ended.data["durationMs"], ended.data["waitedMs"]) == (2000, 100_000)
    await b.until(END, run)
    kept = [m.details for m in await b.messages() if isinstance(m, ToolResultMessage)]
    assert kept == [{"durationMs": 2000}], "so that it is the same after a restart"
