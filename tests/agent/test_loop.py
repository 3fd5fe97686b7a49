"""One message to its answer: order of events, transcript, retries, empty answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from claw_engine.agent.context.tokens import estimate
from claw_engine.messages import AssistantMessage, ToolResultMessage, UserMessage, text_of
from claw_engine.models.base import (
    Finished,
    ModelConfigError,
    ModelError,
    ModelErrorKind,
    ReasoningDelta,
    TextDelta,
)
from claw_engine.protocol.trace import TraceKind
from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from tests.agent.bench import MAIN, FnTool, ScriptedModel, calls, says
from tests.agent.conftest import MakeBench
from tests.support.fakes import FaultyDisk

END = TraceKind.RUN_ENDED


async def test_a_message_is_answered_and_kept(bench: MakeBench) -> None:
    model = ScriptedModel([[ReasoningDelta("hm"), *says("Hello there.")]])
    b = await bench(model)
    run = await b.send("hi")
    end = await b.until(END, run)

    assert end.data["status"] == "done"
    assert end.data["text"] == "Hello there."
    assert end.data["usage"] == {
        "input": 100, "output": 5, "cacheRead": 20, "cacheWrite": 0, "total": 105,
    }  # fmt: skip
    told = [k for k in b.kinds(run) if k not in ("run.state", "text")]
    assert told == [
        "run.queued", "run.started", "call.started", "reasoning", "call.ended", "run.ended",
    ]  # fmt: skip
    assert [e.seq for e in b.trace] == sorted({e.seq for e in b.trace})
    user, answer = await b.messages()
    assert isinstance(user, UserMessage)
    assert text_of(user) == "[Mon 2026-11-30 08:40 UTC] hi"
    assert user.extra["runId"] == run
    assert isinstance(answer, AssistantMessage)
    assert (answer.stop_reason, answer.provider, answer.model) == ("stop", "fake", "one")


async def test_call_started_names_every_byte_with_its_part(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([says("ok")]))
    await b.send("hi")
    started = await b.until(TraceKind.CALL_STARTED)
    parts = started.data["parts"]
    assert isinstance(parts, list)
    ids = [part["id"] for part in parts]
    assert len(set(ids)) == len(ids)
    assert {"section:Tooling", "file:AGENTS.md", "section:Runtime"} <= set(ids)
    assert parts[-1]["kind"] == "user"
    assert started.data["cause"] == "turn"
    assert sum(part["bytes"] for part in parts) <= started.data["bytes"]
    assert all(part["tokens"] > 0 for part in parts)


async def test_text_before_a_tool_call_stays_before_it(bench: MakeBench) -> None:
    """TU-10, the engine's half."""
    whys: list[str] = []

    async def look(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        whys.append(ctx.why)
        ctx.output("one\n")
        return ToolResult("one\n", details={"exitCode": 0})

    model = ScriptedModel([calls(("look", "{}"), text="Let me look."), says("Done.")])
    b = await bench(model, [FnTool("look", look)])
    run = await b.send("go")
    await b.until(END, run)

    order = [k for k in b.kinds(run) if k in ("text", "tool.started", "tool.output", "tool.ended")]
    assert order == ["text", "tool.started", "tool.output", "tool.ended", "text"]
    assert whys == ["Let me look."]
    ended = next(e for e in b.trace if e.kind is TraceKind.TOOL_ENDED)
    assert (ended.data["status"], ended.data["exitCode"]) == ("ok", 0)
    causes = [e.data["cause"] for e in b.trace if e.kind is TraceKind.CALL_STARTED]
    assert causes == ["turn", "tool_round"]
    roles = [type(m).__name__ for m in await b.messages()]
    assert roles == ["UserMessage", "AssistantMessage", "ToolResultMessage", "AssistantMessage"]


async def test_parallel_calls_keep_each_others_results_in_call_order(bench: MakeBench) -> None:
    second_done = asyncio.Event()

    async def slow(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        await second_done.wait()
        return ToolResult("slow result")

    async def breaks(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        second_done.set()
        raise RuntimeError("inside")

    async def refuses(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        raise ToolError("Not like that.", hint="Try it so.")

    tools = [FnTool("slow", slow), FnTool("breaks", breaks), FnTool("refuses", refuses)]
    script = calls(("slow", "{}"), ("breaks", "{}"), ("refuses", "{}"), ("nothing", "{}"))
    model = ScriptedModel([script, says("ok")])
    b = await bench(model, tools)
    await b.until(END, await b.send("go"))

    results = [m for m in await b.messages() if isinstance(m, ToolResultMessage)]
    assert [r.tool_call_id for r in results] == ["t0", "t1", "t2", "t3"]
    assert [r.is_error for r in results] == [False, True, True, True]
    assert text_of(results[0]) == "slow result"
    assert "RuntimeError" in text_of(results[1])
    assert text_of(results[2]) == "Not like that. Try it so."
    assert "nothing" in text_of(results[3])


@pytest.mark.parametrize(
    "raw",
    [
        '{"path":"/n/a.md",}', "just text", '"just text"', "[1,2]", '{"a":1}{"a":1}',
        '{"cmd":"printf \'a\nb\'"',
    ],
)  # fmt: skip
async def test_malformed_arguments_never_run_and_are_replayed_as_an_object(
    bench: MakeBench, raw: str
) -> None:
    """PR-01: an error result, and an object on the wire, for each spelling."""
    ran: list[object] = []

    async def tool(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        ran.append(args)
        return ToolResult("ran")

    model = ScriptedModel([calls(("tool", raw)), says("I will correct that.")])
    b = await bench(model, [FnTool("tool", tool)])
    await b.until(END, await b.send("go"))

    assert ran == []
    call, result = model.requests[1].turns[-2:]
    assert call.tool_calls[0].arguments.text == "{}"
    assert result.is_error
    assert "argument" in result.parts[0].text


async def test_a_call_cut_by_the_length_limit_is_not_run(bench: MakeBench) -> None:
    async def tool(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        raise AssertionError("must not run")

    script = [*calls(("tool", ""))[:-1], Finished("length")]
    b = await bench(ScriptedModel([script, says("ok")]), [FnTool("tool", tool)])
    await b.send("go")
    ended = await b.until(TraceKind.TOOL_ENDED)
    assert ended.data["status"] == "error"


async def test_passing_failures_are_retried_visibly(bench: MakeBench) -> None:
    limited = ModelError("Too many requests.", kind=ModelErrorKind.RATE_LIMIT, retry_after_ms=7000)
    cut = ModelError("The stream broke.", kind=ModelErrorKind.CUT)
    model = ScriptedModel([[limited], [TextDelta("half"), cut], says("Whole.")])
    b = await bench(model)
    run = await b.send("hi")
    first = await b.until(TraceKind.RETRY, run)
    assert first.data == {"reason": "Too many requests.", "delayMs": 7000, "attempt": 2}
    await b.until(TraceKind.RUN_STATE, run, new="backing_off")
    await b.clock.advance(7)
    second = await b.until(TraceKind.RETRY, run)
    assert second.data["delayMs"] == 2000
    await b.until(TraceKind.RUN_STATE, run, new="backing_off")
    await b.clock.advance(2)
    end = await b.until(END, run)
    assert end.data["text"] == "Whole."
    causes = [e.data["cause"] for e in b.trace if e.kind is TraceKind.CALL_STARTED]
    assert causes == ["turn", "retry", "retry"]
    assert [text_of(m) for m in await b.messages()][1:] == ["Whole."]


async def test_retries_are_bounded_and_the_failure_is_recorded(bench: MakeBench) -> None:
    errors = [[ModelError(f"Server error {n}.", kind=ModelErrorKind.SERVER)] for n in range(4)]
    b = await bench(ScriptedModel(errors))
    run = await b.send("hi")
    for seconds in (1, 2, 4):
        await b.until(TraceKind.RUN_STATE, run, new="backing_off")
        await b.clock.advance(seconds)
    end = await b.until(END, run)
    assert end.data["status"] == "failed"
    assert end.data["error"] == {"title": "Server error 3.", "hint": ""}
    last = (await b.messages())[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.stop_reason, last.error_message) == ("error", "Server error 3.")


async def test_an_error_that_cannot_pass_is_not_retried(bench: MakeBench) -> None:
    wrong_key = ModelError("The key was refused.", kind=ModelErrorKind.AUTH, hint="Set another.")
    model = ScriptedModel([[wrong_key], says("Better now.")])
    b = await bench(model)
    end = await b.until(END, await b.send("hi"))
    assert end.data["error"] == {"title": "The key was refused.", "hint": "Set another."}
    await b.until(END, await b.send("again"))
    roles = [turn.role for turn in model.requests[-1].turns]
    assert roles == ["user", "assistant", "user"]


async def test_a_model_that_cannot_be_used_fails_the_run_in_words(bench: MakeBench) -> None:
    b = await bench(ModelConfigError("No key for fake.", hint="Set FAKE_KEY."))
    end = await b.until(END, await b.send("hi"))
    assert end.data["error"] == {"title": "No key for fake.", "hint": "Set FAKE_KEY."}
    assert [type(m).__name__ for m in await b.messages()] == ["UserMessage", "AssistantMessage"]


MARKUP = '<tool_call>{"name":"read","arguments":{"path":"a"}}</tool_call>'


@pytest.mark.parametrize(
    "empty",
    [
        [TextDelta(MARKUP), Finished("stop")],
        [ReasoningDelta("only thoughts"), Finished("stop")],
        [TextDelta(""), Finished("stop")],
        [TextDelta(" \n"), Finished("stop")],
    ],
    ids=["markup", "thoughts", "nothing", "blank"],
)
async def test_an_empty_answer_is_asked_for_once_more_and_then_told(
    bench: MakeBench, empty: list[TextDelta]
) -> None:
    """PR-03: markup only, thoughts only, nothing, blank."""
    model = ScriptedModel([empty, empty])
    b = await bench(model)
    run = await b.send("hi")
    end = await b.until(END, run)
    assert len(model.requests) == 2
    assert b.kinds(run).count("retry") == 1
    assert end.data["status"] == "failed"
    assert "readable" in end.data["error"]["title"]  # type: ignore[index]
    shown = "".join(str(e.data["delta"]) for e in b.trace if e.kind is TraceKind.TEXT)
    assert "tool_call" not in shown
    assert "tool_call" not in str(await b.messages())


async def test_after_one_empty_answer_the_second_counts(bench: MakeBench) -> None:
    model = ScriptedModel([[Finished("stop")], says("Here.")])
    b = await bench(model)
    end = await b.until(END, await b.send("hi"))
    assert end.data["text"] == "Here."
    assert len(await b.messages()) == 2


async def test_text_that_speaks_of_overflow_is_ordinary_text(bench: MakeBench) -> None:
    """CO-03: the user's words and a tool's result."""

    async def tool(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        return ToolResult("400 context_length_exceeded")

    model = ScriptedModel([calls(("tool", "{}")), says("Context overflow: it says so.")])
    b = await bench(model, [FnTool("tool", tool)])
    question = 'why do I see "Context overflow: prompt too large for the model"?'
    end = await b.until(END, await b.send(question))
    assert end.data["status"] == "done"
    assert len(model.requests) == 2


async def test_a_stream_without_an_end_is_a_cut_answer(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([[TextDelta("half")], says("Whole.")]))
    run = await b.send("hi")
    await b.until(TraceKind.RUN_STATE, run, new="backing_off")
    await b.clock.advance(1)
    end = await b.until(END, run)
    assert end.data["text"] == "Whole."


async def test_only_the_operators_own_messages_are_trusted(bench: MakeBench) -> None:
    model = ScriptedModel([says("a"), says("b"), says("c")])
    b = await bench(model)
    for source in ("console", "cli", "gateway"):
        await b.until(END, await b.send("hi", source=source))
    assert [r.trusted_origin for r in model.requests] == [True, True, False]


async def test_the_prompt_is_the_same_object_while_nothing_changes(bench: MakeBench) -> None:
    model = ScriptedModel([says("a"), says("b"), says("c")])
    b = await bench(model)
    await b.until(END, await b.send("hi"))
    await b.until(END, await b.send("hi"))
    first, second = model.requests
    assert first.system is second.system
    assert second.turns[: len(first.turns)][1:] == first.turns[1:]
    (b.state.workspace("main") / "SOUL.md").write_text("Speak like a pirate.")
    await b.until(END, await b.send("hi"))
    assert any("pirate" in part.text for part in model.requests[2].system)


async def test_warming_up_seeds_the_workspace_and_counts_its_tokens(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([]))
    written = await b.agent.warm_up(b.settings, "main")
    assert "BOOTSTRAP.md" in written
    before = await b.agent.workspace_texts(b.settings, "main")
    (b.state.workspace("main") / "TOOLS.md").write_text("word " * 1000)
    after = await b.agent.workspace_texts(b.settings, "main")
    assert estimate(after["TOOLS.md"]) > 900
    assert {**before, "TOOLS.md": ""} == {**after, "TOOLS.md": ""}


async def test_a_full_disk_fails_the_run_in_words(bench: MakeBench) -> None:
    """DL-01: in mid turn."""
    disk, go = FaultyDisk(), asyncio.Event()
    b = await bench(ScriptedModel([[go, *says("Lost words.")], says("Kept.")]), disk=disk)
    run = await b.send("hi")
    await b.until(TraceKind.CALL_STARTED, run)
    disk.fail_next()
    go.set()
    end = await b.until(END, run)
    assert end.data["status"] == "failed"
    assert "disk" in str(end.data["error"]).lower() or "space" in str(end.data["error"]).lower()
    await b.dispatcher.wait(run)
    disk.heal()
    await b.until(END, await b.send("again"), text="Kept.")
    transcript = await b.sessions.transcript(MAIN)
    on_disk = transcript.path.read_text()
    assert [on_disk.count(text) for text in ("] hi", "Lost words.", "] again", "Kept.")] == [1] * 4


async def test_a_workspace_that_is_no_folder_is_named(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([]))
    b.state.workspace("main").write_text("mine")
    end = await b.until(TraceKind.RUN_ENDED, await b.send("hi"))
    error = end.data["error"]
    assert isinstance(error, dict)
    title = f"The workspace {b.state.workspace('main')} cannot be used: it is not a directory."
    assert error["title"] == title
    assert "agents.defaults.workspace" in error["hint"]
