"""Runs that a restart cut short: ask, auto, never; no call is spawned a second time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace

from claw_engine.errors import InvalidRequest
from claw_engine.events import Notice
from claw_engine.messages import ToolResultMessage, text_of
from claw_engine.protocol.trace import TraceKind
from claw_engine.tools.base import ToolContext, ToolResult
from tests.agent.bench import Bench, FnTool, ScriptedModel, calls, says, with_queue

END = TraceKind.RUN_ENDED
Policy = Literal["ask", "auto", "never"]


def under(policy: Policy) -> object:
    return replace(with_queue("followup", debounce_ms=0), resume=policy)


async def hangs(args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
    ctx.output("began")
    await asyncio.Event().wait()
    return ToolResult("never")


async def dead(root: Path) -> None:
    """An engine that "died" while a tool ran: what is on disk is all that the next one gets."""
    b = Bench(root, ScriptedModel([calls(("hangs", "{}"))]), [FnTool("hangs", hangs)])
    await b.start()
    await b.until(TraceKind.TOOL_OUTPUT, await b.send("do it", id_="cut"))
    await b.sessions.close()
    await b.journal.close()


def engine(root: Path, policy: Policy, *scripts: object) -> Bench:
    return Bench(root, ScriptedModel(scripts), [FnTool("hangs", hangs)], settings=under(policy))  # type: ignore[arg-type]  # scripts of steps


async def test_ask_waits_over_restarts_and_resumes_with_the_outcome_unknown(
    tmp_path: Path,
) -> None:
    await dead(tmp_path)
    for _ in range(2):
        b = engine(tmp_path, "ask", says("Other."))
        notices = b.bus.subscribe("notice")
        await b.dispatcher.recover(await b.start())
        (row,) = b.dispatcher.resumes.rows()
        assert (row["runId"], row["text"], row["messages"]) == ("cut", "do it", ["cut"])
        notice = notices.get_nowait()
        assert isinstance(notice, Notice)
        assert notice.sticky
        assert "waits for you" in notice.title
        await b.stop()
    b = engine(tmp_path, "ask", says("Looked and finished."))
    await b.dispatcher.recover(await b.start())
    notices = b.bus.subscribe("notice")
    await b.dispatcher.resumes.decide("cut", "resume")
    assert (await b.until(TraceKind.RUN_STARTED, "cut")).data["cause"] == "resume"
    await b.until(END, "cut", text="Looked and finished.")
    results = [m for m in await b.messages() if isinstance(m, ToolResultMessage)]
    assert len(results) == 1
    assert "Outcome unknown" in text_of(results[0])
    cleared = notices.get_nowait()
    assert getattr(cleared, "level", "") == "clear"
    assert b.kinds("cut").count("tool.started") == 0
    with pytest.raises(InvalidRequest):
        await b.dispatcher.resumes.decide("cut", "resume")
    await b.dispatcher.wait("cut")
    await b.stop()
    last = engine(tmp_path, "ask")
    assert (await last.start()).interrupted == ()
    await last.stop()


async def test_discard_settles_it(tmp_path: Path) -> None:
    await dead(tmp_path)
    b = engine(tmp_path, "ask")
    await b.dispatcher.recover(await b.start())
    await b.dispatcher.resumes.decide("cut", "discard")
    assert b.dispatcher.resumes.rows() == []
    await b.stop()
    again = engine(tmp_path, "ask")
    assert (await again.start()).interrupted == ()
    await again.stop()


async def test_auto_goes_on_once_and_then_asks(tmp_path: Path) -> None:
    await dead(tmp_path)
    b = engine(tmp_path, "auto", [asyncio.Event()])
    await b.dispatcher.recover(await b.start())
    await b.until(TraceKind.CALL_STARTED, "cut")
    await b.sessions.close()
    await b.journal.close()  # and dies again

    again = engine(tmp_path, "auto")
    await again.dispatcher.recover(await again.start())
    assert [row["runId"] for row in again.dispatcher.resumes.rows()] == ["cut"]
    assert again.runs.active() == []
    await again.stop()


async def test_never_only_says_so(tmp_path: Path) -> None:
    await dead(tmp_path)
    b = engine(tmp_path, "never")
    notices = b.bus.subscribe("notice")
    await b.dispatcher.recover(await b.start())
    assert b.dispatcher.resumes.rows() == []
    notice = notices.get_nowait()
    assert isinstance(notice, Notice)
    assert not notice.sticky
    await b.stop()
    again = engine(tmp_path, "never")
    assert (await again.start()).interrupted == ()
    await again.stop()


async def test_a_run_that_was_steered_counts_as_ended_when_it_had_ended(tmp_path: Path) -> None:
    go = asyncio.Event()
    b = Bench(
        tmp_path, ScriptedModel([[go, *says("Half.")], says("Whole.")]),
        settings=with_queue("steer"),
    )  # fmt: skip
    await b.start()
    run = await b.send("go")
    await b.until(TraceKind.CALL_STARTED, run)
    steer = await b.send("more")
    go.set()
    await b.dispatcher.wait(run)
    lines = (b.state.inbox_dir / "journal.jsonl").read_text().splitlines(keepends=True)
    await b.stop()
    kept = [line for line in lines if '"done"' not in line]
    (b.state.inbox_dir / "journal.jsonl").write_text("".join(kept))

    again = Bench(tmp_path, ScriptedModel([]))
    await again.dispatcher.recover(await again.start())
    for message in (run, steer):
        result = await again.dispatcher.wait(message)
        assert result is not None
        assert (result.status, result.text) == ("done", "Whole.")
    await again.stop()
