"""Messages during a run, through the real dispatcher, journal, lanes and agent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from claw_engine.errors import InvalidRequest
from claw_engine.inbox.dispatch import QueueFull
from claw_engine.messages import ToolResultMessage, UserMessage, text_of
from claw_engine.protocol.trace import TraceKind
from claw_engine.runs import AbortReason, RunState
from claw_engine.tools.base import ToolContext, ToolResult
from tests.agent.bench import MAIN, Bench, FnTool, ScriptedModel, calls, says, with_queue
from tests.agent.conftest import MakeBench
from tests.support.fakes import settle

END = TraceKind.RUN_ENDED
CALL = TraceKind.CALL_STARTED


async def user_texts(b: Bench, key: str = MAIN) -> list[str]:
    """Texts of the users' messages without their stamps."""
    texts = [text_of(m) for m in await b.messages(key) if isinstance(m, UserMessage)]
    return [text.split("] ", 1)[1] for text in texts]


async def quiet(b: Bench, seconds: float = 1.0) -> None:
    """Let the debounce time pass."""
    await b.clock.advance(seconds)


async def test_collect_is_the_default_and_answers_all_in_one_run(bench: MakeBench) -> None:
    go = asyncio.Event()
    model = ScriptedModel([[go, *says("One.")], says("Both.")])
    b = await bench(model, settings=with_queue("collect"))
    first = await b.send("one")
    await b.until(CALL, first)
    second, third = await b.send("two"), await b.send("three")
    assert (await b.until(TraceKind.RUN_QUEUED, third)).data["waitingBehind"] == [first, second]
    waiting = asyncio.create_task(b.dispatcher.wait(third))
    go.set()
    await b.until(END, first)
    await settle()
    assert b.dispatcher.known(second) == "active"
    assert len(model.requests) == 1  # the debounce time is not over
    await quiet(b)
    started = await b.until(TraceKind.RUN_STARTED, second, cause="message")
    assert started.data["messages"] == [second, third]
    await b.until(END, third, status="done", answeredBy=second)
    result = await waiting
    assert result is not None
    assert (result.status, result.text) == ("done", "Both.")
    assert (await b.dispatcher.wait(second)) is not None
    assert await user_texts(b) == [
        "one",
        "[Queued messages while agent was busy]\n\n---\nQueued #1\ntwo\n\n---\nQueued #2\nthree",
    ]
    assert b.runs.active() == []
    assert [a.id for a in b.journal.pending()] == []


async def test_a_lone_queued_message_stays_as_it_was_written(bench: MakeBench) -> None:
    go = asyncio.Event()
    b = await bench(ScriptedModel([[go, *says("1")], says("2")]), settings=with_queue("collect"))
    first = await b.send("one")
    await b.until(CALL, first)
    second = await b.send("two")
    go.set()
    await b.until(END, first)
    await quiet(b)
    await b.until(END, second, text="2")
    assert await user_texts(b) == ["one", "two"]


@pytest.mark.parametrize("mode", ["collect", "followup"])
@pytest.mark.parametrize("how", [AbortReason.USER, AbortReason.TIMEOUT])
async def test_qu_01_an_abort_frees_the_session_and_each_message_is_seen_once(
    bench: MakeBench, how: AbortReason, mode: str
) -> None:
    """QU-01: stopped by the operator or given up; three behind it, as one turn or in order."""

    async def never(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        return ToolResult("never")

    answers = [says("All three.")] if mode == "collect" else [says(f"Answer {n}.") for n in "012"]
    model = ScriptedModel([calls(("never", "{}")), *answers])
    b = await bench(model, [FnTool("never", never)], settings=with_queue(mode))
    stuck = await b.send("go")
    await b.until(TraceKind.TOOL_STARTED, stuck)
    behind = [await b.send(f"m{n}") for n in range(3)]
    if how is AbortReason.USER:
        b.dispatcher.abort(MAIN, stuck)
    else:
        b.runs.abort(stuck, how)
    await b.until(END, stuck, status="aborted")
    for number, run in enumerate(behind):
        await quiet(b)
        result = await b.dispatcher.wait(run)
        assert result is not None
        assert result.text == ("All three." if mode == "collect" else f"Answer {number}.")
    text = "\n".join(await user_texts(b))
    assert [text.count(f"m{n}") for n in range(3)] == [1, 1, 1]
    assert text.index("m0") < text.index("m1") < text.index("m2")


async def test_steering_waits_for_the_tool_and_then_skips_what_had_not_begun(
    bench: MakeBench,
) -> None:
    go, asked, spawned = asyncio.Event(), asyncio.Event(), []

    async def works(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        await go.wait()
        return ToolResult("worked")

    async def asks(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        async with ctx.operator_wait():
            asked.set()
            await asyncio.Event().wait()
        spawned.append(ctx.tool_call_id)
        return ToolResult("asked")

    model = ScriptedModel([calls(("works", "{}"), ("asks", "{}")), says("As you wish.")])
    b = await bench(
        model, [FnTool("works", works), FnTool("asks", asks)], settings=with_queue("steer")
    )
    run = await b.send("do both")
    await asked.wait()
    steer = await b.send("only the first, please")
    told = await b.until(TraceKind.RUN_QUEUED, steer)
    assert told.data["steeredInto"] == run
    assert b.runs.get(steer) is not None
    go.set()
    ended = await b.until(TraceKind.TOOL_ENDED, run, name="asks")
    assert ended.data["status"] == "skipped"
    await b.until(TraceKind.RUN_STARTED, steer, cause="steered", answeredBy=run)
    await b.until(END, run, text="As you wish.")
    await b.until(END, steer, answeredBy=run)
    assert spawned == []
    result = await b.dispatcher.wait(steer)
    assert result is not None
    assert result.text == "As you wish."
    kinds = [type(m).__name__ for m in await b.messages()]
    assert kinds == ["UserMessage", "AssistantMessage", "ToolResultMessage", "ToolResultMessage",
                     "UserMessage", "AssistantMessage"]  # fmt: skip
    skipped = [m for m in await b.messages() if isinstance(m, ToolResultMessage)][1]
    assert "Skipped" in text_of(skipped)
    assert (await user_texts(b))[1] == "only the first, please"
    assert b.lanes.status()[0].active == 0


async def test_words_during_the_answer_skip_its_calls_or_follow_it(bench: MakeBench) -> None:
    go, ran = [asyncio.Event(), asyncio.Event()], []

    async def tool(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        ran.append(1)
        return ToolResult("ran")

    model = ScriptedModel(
        [[go[0], *calls(("tool", "{}"))], [go[1], *says("Half.")], says("Whole.")]
    )
    b = await bench(model, [FnTool("tool", tool)], settings=with_queue("steer"))
    run = await b.send("go")
    await b.until(CALL, run)
    before_tools = await b.send("no tools")
    go[0].set()
    assert (await b.until(TraceKind.TOOL_ENDED, run)).data["status"] == "skipped"
    await b.until(CALL, run)
    during_answer = await b.send("and one more thing")
    go[1].set()
    assert (await b.until(CALL, run)).data["cause"] == "steer"
    await b.until(END, run, text="Whole.")
    for message in (before_tools, during_answer):
        result = await b.dispatcher.wait(message)
        assert result is not None
        assert result.status == "done"
    assert ran == []
    assert await user_texts(b) == ["go", "no tools", "and one more thing"]


async def test_words_that_a_stopped_run_never_took_are_answered_afterwards(
    bench: MakeBench,
) -> None:
    model = ScriptedModel([[asyncio.Event()], says("Later.")])
    b = await bench(model, settings=with_queue("steer", debounce_ms=0))
    run = await b.send("go")
    await b.until(CALL, run)
    steer = await b.send("faster")
    b.dispatcher.abort(MAIN, run)
    await b.until(END, steer, text="Later.")
    assert await user_texts(b) == ["go", "faster"]


async def test_steer_backlog_tells_the_run_and_keeps_its_turn(bench: MakeBench) -> None:
    go = asyncio.Event()
    model = ScriptedModel([[go, *says("Half.")], says("Whole."), says("Again.")])
    b = await bench(model, settings=with_queue("steer-backlog", debounce_ms=0))
    run = await b.send("go")
    await b.until(CALL, run)
    both = await b.send("mind this")
    go.set()
    await b.until(END, run, text="Whole.")
    await b.until(END, both, text="Again.")
    assert await user_texts(b) == ["go", "mind this", "mind this"]


async def test_interrupt_takes_the_place_of_what_runs(bench: MakeBench) -> None:
    model = ScriptedModel([[asyncio.Event()], says("Newest.")])
    b = await bench(model, settings=with_queue("interrupt"))
    old = await b.send("old")
    await b.until(CALL, old)
    new = await b.send("new")
    await b.until(END, old, status="aborted", stopReason="interrupt")
    await b.until(END, new, text="Newest.")


@pytest.mark.parametrize("mode", ["collect", "followup"])
async def test_stop_clears_the_queue_and_tells_each_sender(bench: MakeBench, mode: str) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]), settings=with_queue(mode))
    runs = [await b.send("one")]
    await b.until(CALL, runs[0])
    runs += [await b.send("two"), await b.send("three")]
    stopped = await b.dispatcher.submit(b.message("/stop"))
    assert sorted(stopped.run_ids) == sorted(runs)
    for run in runs:
        result = await b.dispatcher.wait(run)
        assert result is not None
        assert (result.status, result.stop_reason) == ("aborted", "user")
    await b.dispatcher.drain(1)
    await quiet(b, 5)
    assert b.runs.active() == []


async def test_a_message_answered_by_another_run_is_stopped_with_it(bench: MakeBench) -> None:
    go = asyncio.Event()
    b = await bench(
        ScriptedModel([[go, *says("1")], [asyncio.Event()]]),
        settings=with_queue("collect", debounce_ms=0),
    )
    first = await b.send("one")
    await b.until(CALL, first)
    second, third = await b.send("two"), await b.send("three")
    go.set()
    await b.until(CALL, second)
    assert b.dispatcher.abort(MAIN, third) == [second]
    await b.until(END, third, status="aborted")


async def test_a_dropped_message_is_told_and_the_others_are_collected(bench: MakeBench) -> None:
    go = asyncio.Event()
    b = await bench(
        ScriptedModel([[go, *says("1")], says("Rest.")]),
        settings=with_queue("collect", debounce_ms=0),
    )
    first = await b.send("one")
    await b.until(CALL, first)
    out, later, sooner = [await b.send(t) for t in ("out", "later", "sooner")]
    with pytest.raises(InvalidRequest, match="going on"):
        b.dispatcher.drop(first)
    with pytest.raises(InvalidRequest, match="No run"):
        b.dispatcher.drop("nobody")
    b.dispatcher.drop(out)
    end = await b.until(END, out, status="aborted", stopReason="dropped")
    assert "operator" in str(end.data["error"])
    b.dispatcher.move(sooner, 0)
    assert b.dispatcher.blockers(later) == [first, sooner]
    go.set()
    started = await b.until(TraceKind.RUN_STARTED, sooner, cause="message")
    assert started.data["messages"] == [sooner, later]
    await b.until(END, later)
    assert "out" not in "\n".join(await user_texts(b))


async def test_caps_old_new_and_summarize(bench: MakeBench) -> None:
    go = asyncio.Event()
    rules = {"cap": 1, "debounce_ms": 0}
    b = await bench(
        ScriptedModel([[go, *says("1")], says("Rest.")]),
        settings=with_queue("collect", drop="old", **rules),
    )
    first = await b.send("one")
    await b.until(CALL, first)
    old = await b.send("old")
    b.settings = with_queue("collect", drop="new", **rules)
    with pytest.raises(QueueFull):
        await b.send("refused", id_="refused")
    assert b.dispatcher.known("refused") is None
    b.settings = with_queue("collect", drop="old", **rules)
    short = await b.send("short words")
    await b.until(END, old, stopReason="dropped")
    b.settings = with_queue("collect", drop="summarize", **rules)
    last = await b.send("last")
    assert "first words" in str((await b.until(TraceKind.NOTICE, short)).data["text"])
    go.set()
    await b.until(END, last)
    text = (await user_texts(b))[-1]
    assert text.splitlines()[2:5] == [
        "[Queue overflow] Dropped 1 message(s) due to cap.", "Summary:", "- short words",
    ]  # fmt: skip
    result = await b.dispatcher.wait(short)
    assert result is not None
    assert result.text == "Rest."


async def test_a_session_has_its_own_mode_and_a_message_too(bench: MakeBench) -> None:
    go = asyncio.Event()
    b = await bench(ScriptedModel([[go, *says("1")], says("Now.")]), settings=with_queue("collect"))
    end = await b.until(END, await b.send("/queue followup debounce:0 cap:7"))
    assert end.data["text"] == (
        "Queue mode set to followup.\nQueue debounce set to 0 ms.\nQueue cap set to 7."
    )
    entry = b.sessions.get(MAIN)
    assert entry is not None
    assert (entry.raw["queueMode"], entry.raw["queueCap"]) == ("followup", 7)
    end = await b.until(END, await b.send("/queue"))
    assert str(end.data["text"]).startswith(
        "Queue: followup, debounce 0 ms, cap 7, drop summarize."
    )
    run = await b.send("one")
    await b.until(CALL, run)
    urgent = await b.send("/queue interrupt this instead")
    await b.until(END, run, stopReason="interrupt")
    await b.until(END, urgent, text="Now.")
    assert (await user_texts(b))[-1] == "this instead"
    await b.until(END, await b.send("/queue default"))
    entry = b.sessions.get(MAIN)
    assert entry is not None
    assert "queueMode" not in entry.raw


async def test_different_senders_share_no_run(bench: MakeBench) -> None:
    go = asyncio.Event()
    b = await bench(
        ScriptedModel([[go, *says("1")], says("2"), says("3")]),
        settings=with_queue("collect", debounce_ms=0),
    )
    first = await b.send("one")
    await b.until(CALL, first)
    mine, theirs = await b.send("mine"), await b.send("theirs", source="telegram")
    go.set()
    await b.until(END, mine, text="2")
    await b.until(END, theirs, text="3")


async def test_a_restart_loses_nothing_that_waited(bench: MakeBench, tmp_path: Path) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]), settings=with_queue("collect"))
    first = await b.send("one")
    await b.until(CALL, first)
    waiting = [await b.send(text) for text in ("two", "three", "four")]
    await b.stop()

    again = Bench(
        tmp_path / "state", ScriptedModel([says("Two."), says("Others.")]),
        settings=with_queue("collect", cap=1, debounce_ms=0),
    )  # fmt: skip
    await again.dispatcher.recover(await again.start())
    await again.until(END, waiting[0], text="Two.")
    await again.until(END, waiting[2], answeredBy=waiting[1])
    text = "\n".join(await user_texts(again))
    assert [text.count(word) for word in ("one", "two", "three", "four")] == [1, 1, 1, 1]
    for run in waiting:
        await again.dispatcher.wait(run)
    assert again.journal.pending() == ()
    await again.stop()


async def test_a_collected_run_that_a_restart_cut_is_one_interrupted_run(
    bench: MakeBench, tmp_path: Path
) -> None:
    go = asyncio.Event()
    b = await bench(
        ScriptedModel([[go, *says("1")], [asyncio.Event()]]),
        settings=with_queue("collect", debounce_ms=0),
    )
    first = await b.send("one")
    await b.until(CALL, first)
    second, third = await b.send("two"), await b.send("three")
    go.set()
    await b.until(CALL, second)
    await b.sessions.close()
    await b.journal.close()  # here the engine "dies"

    again = Bench(tmp_path / "state", ScriptedModel([says("Here.")]))
    await again.dispatcher.recover(await again.start())
    (row,) = again.dispatcher.resumes.rows()
    assert (row["runId"], row["messages"]) == (second, [second, third])
    await again.dispatcher.resumes.decide(second, "resume")
    started = await again.until(TraceKind.RUN_STARTED, second, cause="resume")
    assert started.data["messages"] == [second, third]
    await again.until(END, third, answeredBy=second)
    result = await again.dispatcher.wait(third)
    assert result is not None
    assert result.text == "Here."
    await again.stop()


async def test_stalls_are_told_by_age_whatever_arrives(bench: MakeBench) -> None:
    """QU-03: a message every 20 s hides nothing; another session goes on."""

    async def never(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        return ToolResult("never")

    model = ScriptedModel([calls(("never", "{}")), says("B is fine.")])
    b = await bench(model, [FnTool("never", never)], settings=with_queue("collect"))
    notices = b.bus.subscribe("notice")
    stuck = await b.send("go", "agent:main:a")
    await b.until(TraceKind.TOOL_STARTED, stuck)
    for n in range(15):
        await b.clock.advance(20)
        await b.send(f"m{n}", "agent:main:a")
    notice = notices.get_nowait()
    assert notice is not None
    assert getattr(notice, "code", "") == f"stalled:{stuck}"
    assert "5 message(s) wait" in str(getattr(notice, "text", ""))
    assert "Stop it with /stop, X" in str(getattr(notice, "hint", ""))
    other = await b.send("hello", "agent:main:b")
    await b.until(END, other, text="B is fine.")
    run = b.runs.get(stuck)
    assert run is not None
    assert run.state is RunState.TOOL
    b.dispatcher.abort("agent:main:a")
    await b.dispatcher.wait(stuck)
    levels = []
    while (told := notices.get_nowait()) is not None:
        assert getattr(told, "code", "") == f"stalled:{stuck}"
        levels.append(getattr(told, "level", ""))
    assert levels[-1] == "clear"
    assert "clear" not in levels[:-1]


async def test_a_wait_in_a_lane_says_behind_whom(bench: MakeBench) -> None:
    """QU-03: a lane of width one says which run it waits for."""
    b = await bench(ScriptedModel([[asyncio.Event()]]))
    b.lanes.configure("main", 1)
    wedged = await b.send("one", "agent:main:a")
    await b.until(CALL, wedged)
    behind = await b.send("two", "agent:main:b")
    await settle()
    assert b.dispatcher.blockers(behind) == [wedged]
    await b.clock.advance(2)
    assert wedged in str((await b.until(TraceKind.NOTICE, behind)).data["text"])
