"""The whole way with nothing faked but the clock: rehearsal model, real tools, real approvals."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from claw_engine.approvals.model import Decision
from claw_engine.messages import ToolResultMessage, text_of
from claw_engine.models.rehearsal import RehearsalModel
from claw_engine.protocol.trace import TraceKind
from claw_engine.runs import RunState
from claw_engine.tools.registry import default_tools
from tests.agent.bench import MAIN, Bench
from tests.agent.conftest import MakeBench
from tests.support.fakes import FakeClock

END = TraceKind.RUN_ENDED


async def rehearsal(bench: MakeBench) -> Bench:
    b = await bench(RehearsalModel(FakeClock()), default_tools())
    await b.rules.load()
    return b


async def test_ask_park_allow_run_answer(bench: MakeBench) -> None:
    b = await rehearsal(bench)
    run = await b.send("run: echo from-the-shell")
    waiting = await b.until(TraceKind.TOOL_WAITING, run)
    live = b.runs.get(run)
    assert live is not None
    assert live.state is RunState.PARKED
    (record,) = b.broker.pending()
    assert record.id == waiting.data["approvalId"]
    assert "echo from-the-shell" in record.ask.why
    await b.broker.resolve(record.id, Decision.ALLOW_ONCE, "test")
    decided = await b.until(TraceKind.TOOL_DECIDED, run)
    assert decided.data["decision"] == "allow-once"
    ended = await b.until(TraceKind.TOOL_ENDED, run)
    assert (ended.data["status"], ended.data["exitCode"]) == ("ok", 0)
    assert "from-the-shell" in str(ended.data["text"])
    assert ended.data["decision"] == "allow-once"
    end = await b.until(END, run)
    assert end.data["status"] == "done"
    (result,) = [m for m in await b.messages() if isinstance(m, ToolResultMessage)]
    assert "from-the-shell" in text_of(result)


async def test_a_denial_reaches_the_model_with_its_reason(bench: MakeBench, tmp_path: Path) -> None:
    b = await rehearsal(bench)
    target = tmp_path / "must-not-exist"
    run = await b.send(f"run: touch {target}")
    await b.until(TraceKind.TOOL_WAITING, run)
    (record,) = b.broker.pending()
    await b.broker.resolve(record.id, Decision.DENY, "test", "not today")
    ended = await b.until(TraceKind.TOOL_ENDED, run)
    assert ended.data["status"] == "error"
    assert "not today" in str(ended.data["text"])
    await b.until(END, run, status="done")
    assert not target.exists()


async def test_nobody_answers(bench: MakeBench) -> None:
    b = await rehearsal(bench)
    run = await b.send("run: id")
    await b.until(TraceKind.TOOL_WAITING, run)
    await b.clock.advance(30 * 60)
    ended = await b.until(TraceKind.TOOL_ENDED, run)
    assert (ended.data["status"], ended.data["decision"]) == ("error", None)
    await b.until(END, run, status="done")


async def test_a_stop_while_waiting_closes_the_question(bench: MakeBench) -> None:
    b = await rehearsal(bench)
    run = await b.send("tools: id || whoami")
    for _ in range(2):
        await b.until(TraceKind.TOOL_WAITING, run)
    assert len(b.broker.pending()) == 2
    b.dispatcher.abort(MAIN)
    await b.until(END, run, status="aborted")
    await b.dispatcher.wait(run)
    assert b.broker.pending() == ()
    results = [m for m in await b.messages() if isinstance(m, ToolResultMessage)]
    assert [r.is_error for r in results] == [True, True]


@pytest.mark.parametrize("verb", ["fail: 401", "long: 5 0"])
async def test_the_next_message_is_not_mixed_with_the_last(bench: MakeBench, verb: str) -> None:
    b = await rehearsal(bench)
    await b.until(END, await b.send(verb))
    end = await b.until(END, await b.send("think: clear"))
    assert end.data["status"] == "done"


async def test_a_stop_during_a_command_ends_its_whole_process_group(bench: MakeBench) -> None:
    b = await rehearsal(bench)
    run = await b.send("run: sh -c 'echo $$; sleep 300 & sleep 300'")
    await b.until(TraceKind.TOOL_WAITING, run)
    (record,) = b.broker.pending()
    await b.broker.resolve(record.id, Decision.ALLOW_ONCE, "test")
    output = await b.until(TraceKind.TOOL_OUTPUT, run)
    group = int(str(output.data["delta"]).split()[0])
    b.dispatcher.abort(MAIN)
    await b.clock.advance(2)
    ended = await b.until(TraceKind.TOOL_ENDED, run)
    assert ended.data["status"] == "aborted"
    await b.until(END, run, status="aborted")
    async with asyncio.timeout(20):
        while members(group):  # noqa: ASYNC110 - the kernel sends no event for a whole group
            await asyncio.sleep(0)


def members(group: int) -> list[str]:
    """Living processes of a group; one that was killed stays in it until its parent looks."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of, *_ = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(of) == group and state not in "ZX":
            found.append(entry.parent.name)
    return found
