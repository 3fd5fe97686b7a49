"""Acceptance, order, idempotency, stopping, restart and shutdown."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from claw_engine.errors import ClawError
from claw_engine.events import Notice
from claw_engine.inbox.dispatch import ShuttingDown
from claw_engine.inbox.recovery import INTERRUPTED, LOST_CALL
from claw_engine.messages import AssistantMessage, ToolResultMessage, UserMessage, text_of
from claw_engine.protocol.trace import TraceKind
from claw_engine.tools.base import ToolContext, ToolResult
from tests.agent.bench import MAIN, Bench, FnTool, ScriptedModel, calls, says
from tests.agent.conftest import MakeBench

END = TraceKind.RUN_ENDED


async def test_second_message_waits_for_the_first(bench: MakeBench) -> None:
    go = asyncio.Event()
    model = ScriptedModel([[go, *says("One.")], says("Two.")])
    b = await bench(model)
    first = await b.send("one")
    await b.until(TraceKind.CALL_STARTED, first)
    second = await b.send("two")
    queued = await b.until(TraceKind.RUN_QUEUED, second)
    assert queued.data["waitingBehind"] == [first]
    assert b.dispatcher.known(second) == "active"
    assert len(model.requests) == 1
    go.set()
    await b.until(END, second)
    order = [(e.run_id, e.kind.value) for e in b.trace if e.kind.value in
             ("run.started", "run.ended")]  # fmt: skip
    assert order == [
        (first, "run.started"), (first, "run.ended"),
        (second, "run.started"), (second, "run.ended"),
    ]  # fmt: skip
    assert [text_of(m)[-4:] for m in await b.messages()] == [" one", "One.", " two", "Two."]


async def test_other_sessions_do_not_wait(bench: MakeBench) -> None:
    go = asyncio.Event()
    b = await bench(ScriptedModel([[go, *says("One.")], says("Two.")]))
    first = await b.send("one", "agent:main:a")
    await b.until(TraceKind.CALL_STARTED, first)
    second = await b.send("two", "agent:main:b")
    await b.until(END, second, text="Two.")
    go.set()
    await b.until(END, first, text="One.")


async def test_messages_sent_at_once_keep_their_order(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([says(str(n)) for n in range(6)]))
    messages = [b.message(f"m{n}") for n in range(6)]
    await asyncio.gather(*(b.dispatcher.submit(m) for m in messages))
    await b.until(END, messages[-1].id)
    texts = [text_of(m) for m in await b.messages() if isinstance(m, UserMessage)]
    assert [text[-2:] for text in texts] == [f"m{n}" for n in range(6)]


async def test_the_same_id_runs_once(bench: MakeBench) -> None:
    go = asyncio.Event()
    model = ScriptedModel([[go, *says("One.")]])
    b = await bench(model)
    message = b.message("one", id_="same")
    twice = await asyncio.gather(b.dispatcher.submit(message), b.dispatcher.submit(message))
    assert sorted(s.status for s in twice) == ["in_flight", "started"]
    go.set()
    await b.until(END, "same")
    await b.dispatcher.wait("same")
    assert (await b.dispatcher.submit(message)).status == "ended"
    assert len(model.requests) == 1


async def test_a_message_is_on_disk_when_it_is_acknowledged(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]))
    await b.send("durable words")
    assert "durable words" in (b.state.inbox_dir / "journal.jsonl").read_text()


async def test_the_index_knows_model_and_tokens_afterwards(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([says("One.")]))
    await b.dispatcher.wait(await b.send("one"))
    entry = b.sessions.get(MAIN)
    assert entry is not None
    assert entry.raw["totalTokens"] == 105
    assert (entry.raw["modelProvider"], entry.raw["model"]) == ("fake", "one")
    assert not entry.aborted_last_run


@pytest.mark.parametrize(
    "word", ["/stop", "stop", "Stop!", "STOP PLEASE", "停止", "やめて", "стоп"]
)
async def test_a_stop_phrase_stops_what_runs(bench: MakeBench, word: str) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]))
    run = await b.send("long")
    await b.until(TraceKind.CALL_STARTED, run)
    submitted = await b.dispatcher.submit(b.message(word))
    assert (submitted.status, submitted.run_ids) == ("stopped", (run,))
    await b.until(END, run, status="aborted")


async def test_a_stop_word_is_a_message_while_nothing_runs_or_from_strangers(
    bench: MakeBench,
) -> None:
    go = asyncio.Event()
    b = await bench(ScriptedModel([says("Stop what?"), [go, *says("One.")], says("No.")]))
    await b.until(END, await b.send("stop"), text="Stop what?")
    first = await b.send("long")
    await b.until(TraceKind.CALL_STARTED, first)
    submitted = await b.dispatcher.submit(b.message("stop", source="telegram"))
    assert submitted.status == "started"
    go.set()
    await b.until(END, submitted.run_id, text="No.")


async def test_commands_are_answered_without_a_model(bench: MakeBench) -> None:
    model = ScriptedModel([says("A path, you say.")])
    b = await bench(model)
    end = await b.until(END, await b.send("/help"))
    assert "/stop" in str(end.data["text"])
    assert model.requests == []
    await b.until(END, await b.send("/etc/passwd is what?"), text="A path, you say.")


async def test_status_says_what_goes_on(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([says("One."), [asyncio.Event()]]))
    await b.dispatcher.wait(await b.send("one"))
    run = await b.send("two")
    await b.until(TraceKind.CALL_STARTED, run)
    end = await b.until(END, await b.send("/status"))
    assert str(end.data["text"]).splitlines() == [
        "Model: fake/one",
        f"Session: {MAIN}",
        f"Run {run}: connecting",
        "Queue: followup, debounce 0 ms, cap 20, drop summarize. 0 waiting.",
        "Context: 105 of 32000 tokens (0 %)",
        "Lane main: 1 of 4 active, 0 queued, 0 waiting for the operator",
    ]


async def test_wait_gives_up_after_its_time(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]))
    run = await b.send("long")
    waiting = asyncio.create_task(b.dispatcher.wait(run, 5))
    await b.until(TraceKind.CALL_STARTED, run)
    await b.clock.advance(5)
    assert await waiting is None
    assert await b.dispatcher.wait("nobody") is None


async def test_a_late_console_sees_the_run_so_far(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([[*says("One two three")[:3], asyncio.Event()]]))
    run = await b.send("go")
    while not str((await b.until(TraceKind.TEXT, run)).data["delta"]).endswith("three"):
        pass
    (events,) = b.dispatcher.live(MAIN)
    text = [e.data["delta"] for e in events if e.kind is TraceKind.TEXT]
    assert text == ["One two three"]
    assert events[0].kind is TraceKind.RUN_QUEUED
    assert b.dispatcher.live("agent:main:other") == []


async def test_shutdown_refuses_new_and_keeps_queued_messages(
    bench: MakeBench, tmp_path: Path
) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]))
    first = await b.send("running")
    await b.until(TraceKind.CALL_STARTED, first)
    second = await b.send("queued")
    await b.dispatcher.close()
    with pytest.raises(ShuttingDown):
        await b.dispatcher.submit(b.message("late"))
    await b.until(END, first, stopReason="shutdown")
    await b.stop()

    model = ScriptedModel([says("Here at last.")])
    again = Bench(tmp_path / "state", model)
    recovered = await again.start()
    await again.dispatcher.recover(recovered)
    await again.until(END, second, text="Here at last.")
    await again.stop()


async def test_a_repeat_before_recovery_starts_no_second_run(
    bench: MakeBench, tmp_path: Path
) -> None:
    b = await bench(ScriptedModel([[asyncio.Event()]]))
    first = await b.send("running")
    await b.until(TraceKind.CALL_STARTED, first)
    second = await b.send("queued")
    await b.stop()

    model = ScriptedModel([says("Once.")])
    again = Bench(tmp_path / "state", model)
    recovered = await again.start()
    repeat = await again.dispatcher.submit(again.message("queued", id_=second))
    assert repeat.status == "in_flight"
    await again.dispatcher.recover(recovered)
    await again.until(END, second, text="Once.")
    assert len(model.requests) == 1
    await again.stop()


async def abandoned(
    root: Path, model: ScriptedModel, tools: list[FnTool], kind: TraceKind
) -> Bench:
    """A bench whose process "died" right after an event: nothing of it is closed."""
    b = Bench(root, model, tools)
    await b.start()
    run = await b.send("do it", id_="lost")
    await b.until(kind, run)
    # What is on disk now is all that the next engine gets.
    await b.sessions.close()
    await b.journal.close()
    return b


async def test_a_run_cut_by_a_crash_is_marked_and_not_repeated(tmp_path: Path) -> None:
    async def hangs(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        ctx.output("began")
        await asyncio.Event().wait()
        return ToolResult("never")

    tools = [FnTool("hangs", hangs)]
    root = tmp_path / "state"
    dead = await abandoned(
        root, ScriptedModel([calls(("hangs", "{}"))]), tools, TraceKind.TOOL_OUTPUT
    )
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    await dead.stop()

    model = ScriptedModel([says("Again.")])
    b = Bench(copy, model)
    notices = b.bus.subscribe("notice")
    recovered = await b.start()
    assert [a.id for a in recovered.interrupted] == ["lost"]
    await b.dispatcher.recover(recovered)
    notice = notices.get_nowait()
    assert isinstance(notice, Notice)
    assert "interrupted" in notice.title
    assert model.requests == []
    result = await b.dispatcher.wait("lost")
    assert result is not None
    assert result.status == "interrupted"

    user, call, lost, end = await b.messages()
    assert text_of(user).endswith("do it")
    assert isinstance(call, AssistantMessage)
    assert isinstance(lost, ToolResultMessage)
    assert text_of(lost) == LOST_CALL
    assert isinstance(end, AssistantMessage)
    assert end.error_message == INTERRUPTED
    transcript = await b.sessions.transcript(MAIN)
    assert "claw:interrupted" in transcript.path.read_text()
    assert (await b.dispatcher.submit(b.message("do it", id_="lost"))).status == "ended"
    await b.until(END, await b.send("and now?"), text="Again.")
    assert [row["runId"] for row in b.dispatcher.resumes.rows()] == ["lost"]
    await b.dispatcher.resumes.decide("lost", "discard")
    await b.stop()

    third = Bench(copy, ScriptedModel([]))
    assert (await third.start()).interrupted == ()
    await third.stop()


async def test_a_crash_before_the_first_answer_keeps_the_message(tmp_path: Path) -> None:
    root, copy = tmp_path / "state", tmp_path / "copy"
    dead = await abandoned(root, ScriptedModel([[asyncio.Event()]]), [], TraceKind.CALL_STARTED)
    shutil.copytree(root, copy)
    await dead.stop()
    b = Bench(copy, ScriptedModel([]))
    await b.dispatcher.recover(await b.start())
    texts = [text_of(m) for m in await b.messages()]
    assert len(texts) == 2
    assert texts[0] == "[Mon 2026-11-30 08:40 UTC] do it"
    await b.stop()


async def test_a_run_that_died_after_its_answer_counts_as_done(
    bench: MakeBench, tmp_path: Path
) -> None:
    b = await bench(ScriptedModel([says("Said it.")]))
    message = b.message("say it", id_="late")
    await b.dispatcher.submit(message)
    await b.dispatcher.wait("late")
    lines = (b.state.inbox_dir / "journal.jsonl").read_text().splitlines(keepends=True)
    await b.stop()
    # The power went before the journal's last line reached the disk.
    (b.state.inbox_dir / "journal.jsonl").write_text("".join(lines[:-1]))

    again = Bench(tmp_path / "state", ScriptedModel([]))
    recovered = await again.start()
    assert [a.id for a in recovered.interrupted] == ["late"]
    await again.dispatcher.recover(recovered)
    result = await again.dispatcher.wait("late")
    assert result is not None
    assert (result.status, result.text) == ("done", "Said it.")
    assert len(await again.messages()) == 2
    await again.stop()


async def test_a_full_disk_refuses_the_message(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([]))
    (b.state.inbox_dir / "journal.jsonl").unlink()
    (b.state.inbox_dir / "journal.jsonl").mkdir()
    with pytest.raises(ClawError):
        await b.send("lost?", id_="x")
    assert b.dispatcher.known("x") is None
