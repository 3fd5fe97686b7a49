"""`claw approvals …` against a running engine: show, approve with a grant, history, rules, undo."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from claw_engine.cli.__main__ import main
from claw_engine.engine import Engine
from tests.cli.test_verbs import Said
from tests.support.engines import Operator, engine_on


def is_about(approval_id: str, payload: Any) -> bool:
    return bool(payload["id"] == approval_id)


class Terminal:
    """Runs `claw approvals …` in a thread while the engine's loop goes on."""

    def __init__(self, state: Path, capture: pytest.CaptureFixture[str]) -> None:
        self._state = state
        self._capture = capture

    async def claw(self, *argv: str) -> Said:
        state = ("--state-dir", str(self._state))
        code = await asyncio.to_thread(main, ["approvals", *argv, *state])
        return Said(code, *self._capture.readouterr())


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with engine_on(tmp_path) as running:
        yield running


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(tmp_path, capsys)


async def test_a_request_from_the_card_to_the_history_and_back(
    engine: Engine, terminal: Terminal
) -> None:
    async with Operator(engine.local_client(strict=True)) as person:
        run = await person.say("run: uname -s")
        record = await person.request(run)
        short = record["id"][:8]
        shown = (await terminal.claw("show", short)).out
        for words in ("run      uname -s", "part     [uname] [-s]", "uname with any arguments",
                      "--for 15m", "--for session --programs", "--always"):  # fmt: skip
            assert words in shown, words
        said = await terminal.claw("approve", short, "--for", "session")
        assert said.code == 0 and said.out.startswith("allow-once, grant ")
        assert (await person.ended(run))["status"] == "done"
        again = await person.say("run: uname -s")
        assert (await person.ended(again))["status"] == "done"  # asks nobody
        past = (await terminal.claw("history")).out
        assert "allow-once with a grant by cli" in past and "allow-once by grant" in past
        assert past.count("exit 0") == 2
        rules = (await terminal.claw("rules")).out
        assert "grant  exactly uname -s in " in rules and "1 uses" in rules
        grant = json.loads((await terminal.claw("rules", "--json")).out)["grants"][0]
        assert (await terminal.claw("undo", "nope")).code == 1
        gone = await terminal.claw("undo", grant["id"][:8])
        assert gone.out.startswith("taken back: exactly uname -s")
        assert (await terminal.claw("rules")).out == "Nothing runs unasked.\n"
        third = await person.say("run: uname -s")
        await person.decide(await person.request(third), "deny")


async def test_no_part_of_a_command_is_folded_away(engine: Engine, terminal: Terminal) -> None:
    hidden = "echo a\\nin       /safe  \\u200db"
    async with Operator(engine.local_client(strict=True)) as person:
        record = await person.request(await person.say("run: echo a\nin       /safe  \u200db"))
        assert f"  run  {hidden}\n" in (await terminal.claw("list")).out
        shown = (await terminal.claw("show", record["id"])).out.splitlines()
        at = shown.index("run      echo a")
        assert shown[at + 1] == "         in       /safe  \\u200db"
        assert [line for line in shown if line.startswith("in ")] == [shown[at + 2]]
        said = await terminal.claw("deny", record["id"][:8])
        assert said.out == f"deny: {hidden}\n"
        assert hidden in (await terminal.claw("history")).out


async def test_several_at_once_and_what_could_not_be_decided(
    engine: Engine, terminal: Terminal
) -> None:
    async with Operator(engine.local_client(strict=True)) as person:
        ids = ["aaa1", "bbb2", "ccc3"]
        asked = [
            asyncio.create_task(
                person.client.call("exec.approval.request", {"id": one, "command": f"id {one}"})
            )
            for one in ids
        ]
        for one in ids:
            await person.event("exec.approval.requested", partial(is_about, one))
        said = await terminal.claw("deny", "aaa1", "bbb", "zzz", "--reason", "no")
        assert said.code == 1
        assert said.out.splitlines() == [
            "deny: id aaa1", "deny: id bbb2", "zzz: unknown approval id",
        ]  # fmt: skip
        late = await terminal.claw("approve", "aaa1")
        assert late.code == 1 and "already resolved by cli (deny)" in late.err
        as_json = json.loads((await terminal.claw("approve", "ccc3", "--json")).out)
        assert as_json["record"]["resolvedBy"] == "cli"
        found: list[Any] = await asyncio.gather(*asked)
        assert [one["decision"] for one in found] == ["deny", "deny", "allow-once"]


@pytest.mark.parametrize("wrong", ["0m", "1441", "never", "-1", ""])
def test_a_time_that_is_none_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["approvals", "approve", "x", f"--for={wrong}"])
    assert "minutes (15m), session, or good" in capsys.readouterr().err
