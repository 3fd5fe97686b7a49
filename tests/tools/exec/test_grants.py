"""Grants end to end: the granted command runs unasked and is not parked; a changed script, other
words and a run that somebody outside set off ask again."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from claw_engine.approvals.grants import Covers, Span, Wanted
from claw_engine.approvals.model import Decision
from claw_engine.tools.base import ToolContext
from tests.tools.desk import Desk

SCRIPT = "sh ./s.sh"


async def granted(desk: Desk, command: str, wanted: Wanted) -> None:
    task = asyncio.create_task(desk.call("exec", command=command))
    record = await desk.asked()
    await desk.broker.resolve(record.id, Decision.ALLOW_ONCE, "tester", "", wanted)
    assert not (await task).is_error


async def asks(desk: Desk, command: str) -> None:
    _, record = await desk.answered(Decision.DENY, "exec", command=command)
    assert record.ask.command == command


async def test_a_granted_script_runs_unasked_while_it_is_the_same(desk: Desk) -> None:
    script = desk.workspace / "s.sh"
    script.write_text("echo A\n")
    await granted(desk, SCRIPT, Wanted(Covers.EXACT, Span.SESSION))
    again = await desk.call("exec", command=SCRIPT)
    assert again.text == "A\n" or again.text == "A"
    assert desk.unasked
    used = (await desk.broker.history(1))[0]
    assert (used.by, used.decision) == ("grant", Decision.ALLOW_ONCE)
    assert used.ran is not None and used.ran["exitCode"] == 0
    await asks(desk, "sh ./s.sh x")
    script.write_text("echo B\n")
    await asks(desk, SCRIPT)


async def test_granted_programs_run_with_any_arguments_in_plain_commands_only(desk: Desk) -> None:
    await granted(desk, "uname -s", Wanted(Covers.PROGRAMS, Span.MINUTES))
    assert not (await desk.call("exec", command="uname -m")).is_error
    assert desk.unasked
    await asks(desk, "uname -m > out")
    await asks(desk, "uname $(id)")


async def test_words_from_outside_use_no_grant(desk: Desk) -> None:
    await granted(desk, "uname -s", Wanted(Covers.EXACT, Span.LASTING))
    trusted = desk.context

    def from_outside(call_id: str = "call-1") -> ToolContext:
        return replace(trusted(call_id), external=True)

    desk.context = from_outside  # type: ignore[method-assign]  # this run answers a mail
    await asks(desk, "uname -s")
