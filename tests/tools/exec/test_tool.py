"""exec end to end: real rules, real broker, real processes; the test is the operator."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from claw_engine.approvals.model import Decision, Status
from claw_engine.runs import AbortReason
from claw_engine.tools.exec.processes import look
from tests.support.fakes import FakeClock, fake_world
from tests.tools.desk import RUN_ID, Desk

ALLOW, ALWAYS, DENY = Decision.ALLOW_ONCE, Decision.ALLOW_ALWAYS, Decision.DENY


async def test_nothing_runs_unasked_on_a_fresh_install(desk: Desk) -> None:
    result, record = await desk.answered(ALLOW, "exec", command="echo hi; exit 3")
    assert result.text == "hi\n\n(Command exited with code 3)"
    assert not result.is_error
    assert result.details is not None
    assert result.details["status"] == "completed"
    assert result.details["exitCode"] == 3
    assert result.details["cwd"] == str(desk.workspace)
    assert isinstance(result.details["durationMs"], int)
    assert desk.live == "hi\n"
    ask = record.ask
    assert (ask.command, ask.cwd, ask.why) == ("echo hi; exit 3", str(desk.workspace), "because")
    assert (ask.run_id, ask.tool_call_id) == (RUN_ID, "call-1")
    assert desk.ended() == [Status.PENDING, Status.RESOLVED]


async def test_what_ran_is_in_the_history(desk: Desk) -> None:
    _, record = await desk.answered(ALLOW, "exec", command="exit 7")
    (entry,) = await desk.broker.history(10)
    assert entry.id == record.id
    assert entry.ran is not None
    assert entry.ran["exitCode"] == 7


async def test_a_refusal_and_its_reason_reach_the_model_and_nothing_runs(desk: Desk) -> None:
    result, _ = await desk.answered(DENY, "exec", reason="use du instead", command="touch ran")
    assert result.is_error
    assert "Denied by the operator" in result.text
    assert "use du instead" in result.text
    assert result.details is not None and result.details["status"] == "denied"
    assert not (desk.workspace / "ran").exists()


async def test_no_answer_counts_as_a_refusal(tmp_path: Path) -> None:
    clock = FakeClock()
    desk = Desk(tmp_path, fake_world(clock))
    await desk.broker.start()
    task = asyncio.create_task(desk.call("exec", command="touch ran"))
    await desk.asked()
    await clock.advance(61)
    result = await task
    assert result.is_error
    assert "nobody answered within 1 min" in result.text
    assert "counts as denied" in result.text
    assert result.details is not None and result.details["status"] == "expired"
    assert not (desk.workspace / "ran").exists()
    await desk.broker.close()


@pytest.mark.parametrize(
    ("fallback", "command", "runs"),
    [
        ("deny", "touch ran", False),
        ("allowlist", "touch ran", False),
        ("allowlist", "uname -s", True),
        ("full", "touch ran", True),
        ("full", "touch $(echo ran)", False),
        ("full", "echo dG91Y2ggcmFu | base64 -d | sh", False),
    ],
)
async def test_ask_fallback_stands_in_for_nobody(
    tmp_path: Path, fallback: str, command: str, runs: bool
) -> None:
    clock = FakeClock()
    desk = Desk(tmp_path, fake_world(clock))
    rules = {"allowlist": [{"pattern": "/usr/bin/uname"}]}
    desk.state.exec_approvals.write_text(
        json.dumps(
            {
                "version": 1,
                "defaults": {"security": "allowlist", "ask": "always", "askFallback": fallback},
                "agents": {"main": rules},
            }
        )
    )
    await desk.rules.load()
    await desk.broker.start()
    task = asyncio.create_task(desk.call("exec", command=command))
    record = await desk.asked()
    await clock.advance(61)
    result = await task
    assert result.is_error is not runs, result.text
    assert ("askFallback" in result.text) is runs
    assert (desk.workspace / "ran").exists() is (runs and "touch" in command)
    ended = desk.broker.get(record.id)
    assert ended is not None and (ended.status, ended.reason) == (Status.EXPIRED, "timeout")
    assert (ended.ran is not None) is runs
    await desk.broker.close()


async def test_ask_fallback_stands_in_for_no_denial(desk: Desk) -> None:
    desk.policy(security="allowlist", ask="always", askFallback="full")
    result, _ = await desk.answered(Decision.DENY, "exec", command="touch ran")
    assert result.is_error and not (desk.workspace / "ran").exists()


async def test_always_stores_the_program_and_asks_no_more(desk: Desk) -> None:
    await desk.answered(ALWAYS, "exec", command="uname -s")
    stored = json.loads(desk.state.exec_approvals.read_text())
    (entry,) = stored["agents"]["main"]["allowlist"]
    assert entry["pattern"] == os.path.realpath(shutil.which("uname") or "")
    result = await desk.call("exec", command="uname -s")
    assert result.text == "Linux"
    assert desk.unasked
    (rule,) = desk.rules.rules()
    assert rule.last_command == "uname -s"


async def test_an_allowed_command_runs_as_what_was_matched(desk: Desk) -> None:
    """Words stay literal: the shell fills nothing in, and PATH is not searched again."""
    await desk.answered(ALWAYS, "exec", command="uname -s")
    fake = desk.workspace / "uname"
    fake.write_text("#!/bin/sh\ntouch hijacked\n")
    fake.chmod(0o755)
    result = await desk.call("exec", command="uname '-s'")
    assert result.text == "Linux"
    assert not (desk.workspace / "hijacked").exists()


async def test_a_variable_no_rule_covers_asks(desk: Desk) -> None:
    await desk.answered(ALWAYS, "exec", command="uname -s")
    result = await desk.call("exec", command="uname -s", env={"LANG": "C"})
    assert result.text == "Linux"
    result, record = await desk.answered(
        DENY, "exec", command="uname -s", env={"GIT_SSH_COMMAND": "x"}
    )
    assert result.is_error
    assert record.ask.env_changes == ("GIT_SSH_COMMAND=x",)
    assert any("sets GIT_SSH_COMMAND" in reason for reason in record.ask.reasons)


async def test_a_trusted_shell_is_not_offered(desk: Desk) -> None:
    """Case AP-01: a shell is never allowed for ever."""
    task = asyncio.create_task(desk.call("exec", command='sh -c "id"'))
    record = await desk.asked()
    assert record.ask.always.patterns == ()
    assert record.ask.always.refusal
    await desk.decide(record, DENY)
    await task


def rewrite(folder: Path) -> None:
    (folder / "s.sh").write_text("echo B\n")


def replace_file(folder: Path) -> None:
    (folder / "other").write_text("echo B\n")
    (folder / "other").replace(folder / "s.sh")


def switch_link(folder: Path) -> None:
    (folder / "b.sh").write_text("echo B\n")
    (folder / "s.sh").unlink()
    (folder / "s.sh").symlink_to("b.sh")


def recreate_folder(folder: Path) -> None:
    folder.rename(folder.with_name("aside"))
    folder.mkdir()
    (folder / "s.sh").write_text("echo A\n")


@pytest.mark.parametrize("change", [rewrite, replace_file, switch_link, recreate_folder])
async def test_a_script_changed_while_asking_does_not_run(desk: Desk, change: object) -> None:
    """Case AP-03: what was approved is what runs; the change gets a fresh question."""
    folder = desk.workspace / "job"
    folder.mkdir()
    (folder / "a.sh").write_text("echo A\n")
    (folder / "s.sh").symlink_to("a.sh")
    if change is not switch_link:
        (folder / "s.sh").unlink()
        (folder / "s.sh").write_text("echo A\n")
    task = asyncio.create_task(desk.call("exec", command="sh ./s.sh", workdir="job"))
    first = await desk.asked()
    assert callable(change)
    change(folder)
    await desk.decide(first, ALLOW)
    second = await desk.asked()
    assert not task.done()
    assert second.id != first.id
    assert "Changed since you approved" in second.ask.reasons[0]
    await desk.decide(second, DENY)
    assert (await task).is_error
    assert desk.live == ""


async def test_the_fresh_question_can_be_answered_with_yes(desk: Desk) -> None:
    (desk.workspace / "s.sh").write_text("echo A\n")
    task = asyncio.create_task(desk.call("exec", command="sh s.sh"))
    first = await desk.asked()
    (desk.workspace / "s.sh").write_text("echo B\n")
    await desk.decide(first, ALLOW)
    await desk.decide(await desk.asked(), ALLOW)
    assert (await task).text == "B"


async def test_what_keeps_changing_is_denied(desk: Desk) -> None:
    script = desk.workspace / "s.sh"
    script.write_text("echo A\n")
    task = asyncio.create_task(desk.call("exec", command="sh s.sh"))
    for text in ("echo B\n", "echo C\n"):
        record = await desk.asked()
        script.write_text(text)
        await desk.decide(record, ALLOW)
    result = await task
    assert result.is_error
    assert "changed since you approved" in result.text
    assert desk.live == ""


async def test_children_get_no_credentials(desk: Desk) -> None:
    result, _ = await desk.answered(ALLOW, "exec", command="env")
    names = {line.partition("=")[0] for line in result.text.splitlines()}
    assert "OPENAI_API_KEY" not in names
    assert {"PATH", "CLAW_RUN_ID", "CLAW_CALL_ID"} <= names


@pytest.mark.parametrize(
    ("command", "ending", "is_error"),
    [
        ("true", "(no output)", False),
        ("no-such-program-xyz", "Command not found (exit code 127)", True),
        ("./plain.txt", "Command not executable (permission denied, exit code 126)", True),
        ("kill -TERM $$", "Command aborted by signal SIGTERM", True),
    ],
)
async def test_how_it_ended_is_said(desk: Desk, command: str, ending: str, is_error: bool) -> None:
    (desk.workspace / "plain.txt").write_text("x")
    result, _ = await desk.answered(ALLOW, "exec", command=command)
    assert result.text.endswith(ending)
    assert result.is_error is is_error


async def test_a_time_limit_is_said_with_the_output_so_far(desk: Desk) -> None:
    result, _ = await desk.answered(ALLOW, "exec", command="echo so far; sleep 60", timeout=1)
    assert result.text == "so far\n\nCommand timed out after 1 seconds"
    assert result.is_error
    assert result.details is not None
    assert result.details["status"] == "failed"
    assert result.details["exitSignal"] == "SIGTERM"


async def test_long_output_keeps_its_end_and_says_so(desk: Desk) -> None:
    result, _ = await desk.answered(ALLOW, "exec", command="seq 1 60000")
    assert result.text.startswith("[… ")
    assert "characters before this were dropped" in result.text
    assert result.text.endswith("\n60000")
    assert len(result.text) < 200_100


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"command": "ls", "workdir": "nowhere"}, "is not a directory"),
        ({"command": "  "}, "command is empty"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "echo \ud800"}, "not valid Unicode"),
        ({"command": "ls", "workdir": "~no-such-user-xyz"}, "no such user"),
        ({"command": "ls", "env": {"LD_PRELOAD": "x"}}, "Security Violation"),
        ({"command": "ls", "env": {"PATH": "."}}, "Security Violation"),
    ],
)
async def test_impossible_calls_are_refused_before_anyone_is_asked(
    desk: Desk, args: dict[str, object], words: str
) -> None:
    result = await desk.call("exec", **args)
    assert result.is_error
    assert words in result.text
    assert desk.unasked


async def test_a_policy_of_deny_asks_nobody(desk: Desk) -> None:
    desk.policy(security="deny")
    result = await desk.call("exec", command="ls")
    assert result.is_error
    assert "denied by policy" in result.text
    assert desk.unasked


async def test_a_run_stopped_while_asking_starts_nothing(desk: Desk) -> None:
    task = asyncio.create_task(desk.call("exec", command="touch ran"))
    await desk.asked()
    desk.scope.abort(AbortReason.USER)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.waiting == 0
    assert not (desk.workspace / "ran").exists()


async def test_a_run_stopped_while_running_kills_and_notes_it(desk: Desk) -> None:
    task = asyncio.create_task(desk.call("exec", command="echo $$ > pid; echo up; sleep 60"))
    record = await desk.asked()
    await desk.decide(record, ALLOW)
    await desk.said("up")
    desk.scope.abort(AbortReason.USER)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert look(int((desk.workspace / "pid").read_text())) is None
    (entry,) = await desk.broker.history(1)
    assert entry.ran is not None and entry.ran["aborted"] == "user"
