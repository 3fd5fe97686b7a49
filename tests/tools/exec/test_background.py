"""exec in the background, end to end: real processes, real rules, the test is the operator."""

from __future__ import annotations

import asyncio
import errno
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw_engine.approvals.model import Decision
from claw_engine.config.sections.tools import ExecSettings, ToolsSettings
from claw_engine.config.settings import Settings
from claw_engine.events import Notice
from claw_engine.runs import AbortReason
from claw_engine.tools.base import ToolResult
from claw_engine.tools.exec.processes import look
from claw_engine.world import Process, RealDisk, RealSpawn, real_world
from tests.tools.desk import BASE, RUN_ID, Desk


def details(result: ToolResult) -> dict[str, object]:
    assert result.details is not None
    return dict(result.details)


async def test_background_is_answered_at_once_with_what_is_needed_to_go_on(desk: Desk) -> None:
    entry, result = await desk.in_background("sleep 60")
    said = details(result)
    assert f"Command still running (session {entry.id}, pid {entry.running.pid})" in result.text
    assert said["pid"] == entry.running.pid
    assert said["cwd"] == str(desk.workspace)
    assert isinstance(said["startedAt"], int)
    assert said["tail"] == ""
    assert not result.is_error
    assert look(entry.running.pid) is not None


async def test_a_long_command_moves_to_the_background_and_is_not_restarted(desk: Desk) -> None:
    entry, result = await desk.in_background(
        "echo $$ >> started; echo so far; sleep 60", background=False, yieldMs=1000
    )
    assert result.text.startswith("so far\n\nCommand still running")
    assert details(result)["tail"] == "so far\n"
    assert (desk.workspace / "started").read_text() == f"{entry.running.pid}\n"


async def test_the_configured_time_counts_when_the_call_names_none(desk: Desk) -> None:
    desk.policy(security="full", ask="off")
    soon = ExecSettings(security="full", ask="off", background_ms=10)
    desk.settings = Settings(env=BASE, tools=ToolsSettings(exec=soon))
    result = await desk.call("exec", command="sleep 60")
    assert details(result)["status"] == "running"


async def test_a_short_command_is_answered_as_ever(desk: Desk) -> None:
    desk.policy(security="full", ask="off")
    _, record = await desk.answered(Decision.ALLOW_ONCE, "exec", command="echo hi", yieldMs=120_000)
    assert record.ask.reasons[-1] == "may go on in the background, without a time limit"
    assert desk.live == "hi\n"
    assert desk.table.of_session(desk.session_key) == []


TIME_LIMITS = [
    ({"background": True}, None),
    ({"background": False, "yieldMs": 10}, None),
    ({"background": True, "timeout": 7}, 7),
    ({"background": False, "yieldMs": 10, "timeout": 7}, 7),
]


@pytest.mark.parametrize(("args", "limit"), TIME_LIMITS)
async def test_asking_for_the_background_lifts_the_default_time_limit(
    desk: Desk, args: dict[str, object], limit: float | None
) -> None:
    entry, _ = await desk.in_background("sleep 60", **args)
    assert entry.running.job.timeout_s == limit


async def test_a_time_limit_holds_in_the_background(desk: Desk) -> None:
    entry, _ = await desk.in_background("sleep 60", timeout=1)
    result = await desk.process("poll", entry, timeout=30_000)
    assert "Command timed out after 1 seconds" in result.text
    assert details(result)["status"] == "failed"
    assert look(entry.running.pid) is None


async def test_what_was_approved_is_what_goes_to_the_background(desk: Desk) -> None:
    task = asyncio.create_task(desk.call("exec", command="sh ./s.sh", background=True))
    script = desk.workspace / "s.sh"
    record = await desk.asked()  # it does not exist yet: appearing is a change
    assert "runs in the background, without a time limit" in record.ask.reasons
    script.write_text("echo B\n")
    await desk.decide(record, Decision.ALLOW_ONCE)
    second = await desk.asked()
    assert "Changed since you approved" in second.ask.reasons[0]
    await desk.decide(second, Decision.DENY)
    assert (await task).is_error
    assert desk.table.running == 0


async def test_the_history_says_how_it_ended(desk: Desk) -> None:
    task = asyncio.create_task(desk.call("exec", command="read x; exit 3", background=True))
    await desk.decide(await desk.asked(), Decision.ALLOW_ONCE)
    await task
    (entry,) = desk.table.of_session(desk.session_key)
    (before,) = await desk.broker.history(1)
    assert before.ran is not None and before.ran["status"] == "running"
    await desk.process("write", entry, data="x\n")
    await desk.process("poll", entry, timeout=20_000)
    await desk.table.kill(entry, "test")  # has ended: only waits until all is written down
    (after,) = await desk.broker.history(1)
    assert after.ran is not None
    assert (after.ran["exitCode"], after.ran["background"]) == (3, entry.id)


async def test_an_abort_of_the_run_spares_what_is_in_the_background(desk: Desk) -> None:
    entry, _ = await desk.in_background("sleep 60")
    desk.scope.abort(AbortReason.USER)
    assert look(entry.running.pid) is not None
    assert await desk.table.kill_all("stop all") == [entry.id]
    assert look(entry.running.pid) is None


class StuckDisk(RealDisk):
    """Writing down what is in the background takes until `free` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.get_running_loop()
        self.writing = asyncio.Event()
        self.free = threading.Event()

    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        if path.name == "processes.json":
            self.loop.call_soon_threadsafe(self.writing.set)
            self.free.wait(20)
        super().replace(path, data, mode=mode)


async def test_an_abort_before_the_model_knows_of_it_stops_it(tmp_path: Path) -> None:
    disk = StuckDisk()
    desk = Desk(tmp_path, replace(real_world(), disk=disk))
    task = asyncio.create_task(desk.in_background("echo $$ > pid; sleep 60"))
    await disk.writing.wait()
    (entry,) = desk.table.of_session(desk.session_key)
    task.cancel()
    await entry.running.wait()
    disk.free.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert look(entry.running.pid) is None
    assert desk.table.of_session(desk.session_key) == []
    await desk.table.close()
    disk.close()


async def test_it_is_written_down_while_it_runs(desk: Desk) -> None:
    entry, _ = await desk.in_background("sleep 60")
    stored = json.loads(desk.state.processes_json.read_text())
    (row,) = stored["processes"]
    assert row["pid"] == entry.running.pid
    assert row["runId"] == RUN_ID and row["command"] == "sleep 60"
    seen = look(entry.running.pid)
    assert seen is not None and row["startTicks"] == seen.id.started
    await desk.process("kill", entry)
    assert json.loads(desk.state.processes_json.read_text())["processes"] == []
    assert desk.state.processes_json.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["setsid", "ignores TERM"])
async def test_kill_reaches_what_hides(desk: Desk, name: str) -> None:
    hidden = {
        "setsid": "setsid nohup sh -c 'echo $$ > pid; echo up > ready; sleep 60' >/dev/null 2>&1 &",
        "ignores TERM": 'sh -c \'trap "" TERM; echo $$ > pid; echo up > ready; '
        "while :; do sleep 0.05; done' &",
    }[name]
    entry, _ = await desk.in_background(f"mkfifo ready; {hidden} cat ready; sleep 60")
    await desk.wrote(entry, "up")
    await desk.process("kill", entry)
    assert look(int((desk.workspace / "pid").read_text())) is None
    assert entry.status == "killed"


async def test_the_console_hears_of_an_end(desk: Desk) -> None:
    entry, _ = await desk.in_background("echo all done; exit 4")
    await desk.process("poll", entry, timeout=20_000)
    await desk.table.kill(entry, "wait")
    (notice,) = desk.news
    assert isinstance(notice, Notice)
    assert notice.title == f"Command failed ({entry.id}, code 4)."
    assert "all done" in notice.text
    assert notice.level == "warn"


@pytest.mark.parametrize("command", ["true", "sleep 60"])
async def test_nobody_is_told_of_a_silent_success_or_their_own_kill(
    desk: Desk, command: str
) -> None:
    entry, _ = await desk.in_background(command)
    if command == "true":
        await desk.process("poll", entry, timeout=20_000)
    await desk.process("kill", entry)
    await desk.table.close()
    assert desk.news == []


async def test_a_terminal_of_its_own_controls_its_session(desk: Desk) -> None:
    desk.policy(security="full", ask="off")
    entry, _ = await desk.in_background(
        "tty; echo hello > /dev/tty; stty size; echo TERM=$TERM; ps -o tty= -p $$", pty=True
    )
    await desk.process("poll", entry, timeout=20_000)
    lines = entry.running.tail.text().splitlines()
    assert lines[0].startswith("/dev/pts/")
    assert lines[1:4] == ["hello", "30 120", "TERM=xterm-256color"]
    assert lines[4].strip() == lines[0].removeprefix("/dev/")


async def test_a_question_for_the_cursor_is_answered(desk: Desk) -> None:
    script = "stty -icanon -echo; printf '\\033[6n'; head -c 6 | od -An -c | tr -d ' '"
    entry, _ = await desk.in_background(script, pty=True)
    await desk.process("poll", entry, timeout=20_000)
    assert entry.running.tail.text().strip() == "033[1;1R"


class NoTerminals(RealSpawn):
    async def start_on_terminal(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], columns: int, rows: int
    ) -> Process:
        raise OSError(errno.ENOSPC, "No space left on device")


async def test_no_terminal_to_be_had_is_said_and_pipes_do(desk: Desk) -> None:
    desk.world = replace(desk.world, spawn=NoTerminals())
    entry, result = await desk.in_background("test -t 0 || echo plain", pty=True)
    assert "No pseudo-terminal could be opened" in result.text
    await desk.process("poll", entry, timeout=20_000)
    assert entry.running.tail.text() == "plain\n"


async def test_a_foreground_command_on_a_terminal_ends_as_ever(desk: Desk) -> None:
    desk.policy(security="full", ask="off")
    task = asyncio.create_task(desk.call("exec", command="tty >/dev/null && echo on", pty=True))
    record = await desk.asked()
    assert "runs on a pseudo-terminal of its own" in record.ask.reasons
    await desk.decide(record, Decision.ALLOW_ONCE)
    assert (await task).text == "on"
