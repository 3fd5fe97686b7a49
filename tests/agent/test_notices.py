"""What a person is told beside the answer, and failures inside that still end a run in words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from claw_engine.agent.toolround import SETTLE_SECONDS
from claw_engine.messages import ToolResultMessage, text_of
from claw_engine.models.base import Encoded, Finished, Request, TextDelta
from claw_engine.protocol.trace import TraceKind
from claw_engine.tools.base import ToolContext, ToolResult
from tests.agent.bench import MAIN, REF, FnTool, ScriptedModel, Step, calls, check, says
from tests.agent.conftest import MakeBench

END = TraceKind.RUN_ENDED


async def test_markup_beside_an_answer_is_hidden_and_told_once(bench: MakeBench) -> None:
    """PR-03: one notice."""
    text = 'Here you are.\n<tool_call>{"name":"read"}</tool_call>'
    b = await bench(ScriptedModel([[TextDelta(text), Finished("stop")]]))
    run = await b.send("hi")
    end = await b.until(END, run)
    assert str(end.data["text"]).strip() == "Here you are."
    assert b.kinds(run).count("notice") == 1


async def test_a_length_limit_is_told(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([[TextDelta("And so on and"), Finished("length")]]))
    run = await b.send("hi")
    notice = await b.until(TraceKind.NOTICE, run)
    assert "length limit" in str(notice.data["text"])
    end = await b.until(END, run)
    assert (end.data["status"], end.data["stopReason"]) == ("done", "length")


async def test_a_conversation_beyond_the_window_goes_on_with_its_newest_part(
    bench: MakeBench,
) -> None:
    # The prompt and tools take about 1,500 of 16,000 tokens, each question 5,000.
    model = ScriptedModel([says(f"{n}.") for n in range(4)], replace(REF, context_window=16_000))
    b = await bench(model)
    for _ in range(3):
        await b.until(END, await b.send("词" * 6_500))
    last = await b.send("?")
    notice = await b.until(TraceKind.NOTICE, last)
    assert "left out" in str(notice.data["text"])
    await b.until(END, last, text="3.")
    turns = model.requests[-1].turns
    assert check(turns) == []
    assert turns[0].role == "user"
    assert len(turns) < 7
    assert len(await b.messages()) == 8  # the transcript keeps everything


class BrokenModel(ScriptedModel):
    def encode(self, request: Request) -> Encoded:
        raise KeyError("codec")


async def test_a_bug_inside_ends_the_run_in_words(bench: MakeBench) -> None:
    b = await bench(BrokenModel([]))
    end = await b.until(END, await b.send("hi"))
    assert end.data["status"] == "failed"
    assert "KeyError" in str(end.data["error"])
    assert len(await b.messages()) == 2


async def test_a_tool_that_will_not_stop_does_not_hold_the_run(bench: MakeBench) -> None:
    let_go = asyncio.Event()

    async def stubborn(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        ctx.output("busy")
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return ToolResult("late")

    b = await bench(ScriptedModel([calls(("stubborn", "{}"))]), [FnTool("stubborn", stubborn)])
    run = await b.send("go")
    await b.until(TraceKind.TOOL_OUTPUT, run)
    b.dispatcher.abort(MAIN)
    await b.clock.advance(SETTLE_SECONDS)
    await b.until(END, run, status="aborted")
    await b.dispatcher.wait(run)
    (result,) = [m for m in await b.messages() if isinstance(m, ToolResultMessage)]
    assert "had not stopped" in text_of(result)
    let_go.set()
    await b.clock.advance(0)
    assert [e.data["status"] for e in b.trace if e.kind is TraceKind.TOOL_ENDED] == ["aborted"]


async def test_very_long_output_is_kept_whole_in_the_transcript_up_to_its_limit(
    bench: MakeBench,
) -> None:
    async def big(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        for _ in range(80):
            ctx.output("y" * 1024)
        return ToolResult("x" * 500_000)

    script: list[Step] = calls(("big", "{}"))
    model = ScriptedModel([script, says("ok")])
    b = await bench(model, [FnTool("big", big)])
    run = await b.send("go")
    ended = await b.until(TraceKind.TOOL_ENDED, run)
    assert len(str(ended.data["text"])) == 8_000
    await b.until(END, run)
    (result,) = [m for m in await b.messages() if isinstance(m, ToolResultMessage)]
    assert 400_000 <= len(text_of(result)) < 400_200
    sent = model.requests[1].turns[-1].parts[0].text
    opening, _, closing = sent.partition("\n")[0], "", sent.rpartition("\n")[2]
    assert (
        len(sent) - len(opening) - len(closing) - 2 == 16_000
    )  # half a character per token of the 32,000 window
