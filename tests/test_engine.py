"""The main job through the whole engine: message, command, approval, answer, disk, restart."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from claw_engine.client.remote import RemoteClient
from claw_engine.engine import Engine, EngineHeld, ForeignState
from claw_engine.errors import ClawError
from claw_engine.world import RealDisk, RealIds, RealSpawn, World
from claw_tui.store.history import blocks_from_history
from claw_tui.store.live import decision_words
from tests.support.engines import Operator, engine_on, transcript_of
from tests.support.fakes import FakeClock, FaultyDisk


def texts(messages: list[dict[str, object]], role: str) -> list[str]:
    out = []
    for message in messages:
        content = message["content"]
        if message["role"] == role and isinstance(content, list):
            out.append("".join(block.get("text", "") for block in content))
    return out


async def test_message_command_approval_answer_and_everything_is_on_disk(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        run = await operator.say(f"run: touch {proof}")
        record = await operator.request(run)
        assert record["request"]["command"] == f"touch {proof}"
        assert record["request"]["why"]
        assert not proof.exists()
        await operator.decide(record, "allow-once")
        end = await operator.ended(run)
        assert end["status"] == "done"
        assert proof.exists()
    roles = [
        line["message"]["role"] for line in transcript_of(tmp_path / "state")
        if line["type"] == "message"
    ]  # fmt: skip
    assert roles == ["user", "assistant", "toolResult", "assistant"]


async def test_who_allowed_what_is_kept_with_the_result(tmp_path: Path) -> None:
    """After a restart the console shows the decision as it did live."""
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        run = await operator.say("run: uname -s")
        asked = await operator.request(run)
        await operator.decide(asked, "allow-once")
        await operator.ended(run)
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        history = await operator.history()
        details = next(m for m in history if m["role"] == "toolResult")["details"]
        assert (details["approvalId"], details["decision"]) == (asked["id"], "allow-once")
        assert details["decidedBy"] and details["exitCode"] == 0
        shown = [block.tool for block in blocks_from_history(history) if block.tool is not None]
        assert [tool.decision for tool in shown] == [decision_words("allow-once", "")]


async def test_a_failed_run_says_the_same_live_and_after_a_restart(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        error = (await operator.ended(await operator.say("fail: 401")))["error"]
        assert error["title"] and error["hint"]
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        last = blocks_from_history(await operator.history())[-1]
        assert last.text == f"{error['title']}\n{error['hint']}"


async def test_a_denied_command_does_not_run_and_the_model_learns_why(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        run = await operator.say(f"run: touch {proof}")
        await operator.decide(await operator.request(run), "deny", "not on this box")
        await operator.ended(run)
        assert not proof.exists()
        result = next(m for m in await operator.history() if m["role"] == "toolResult")
        assert result["isError"] is True
        assert "not on this box" in json.dumps(result["content"])


async def test_always_is_remembered_and_asks_no_more(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        first = await operator.say("run: uname -s")
        await operator.decide(await operator.request(first), "allow-always")
        await operator.ended(first)
        second = await operator.say("run: uname -m")
        end = await operator.ended(second)
        assert end["status"] == "done"
        asked = [f for f in operator.seen if f.event == "exec.approval.requested"]
        assert len(asked) == 1
    rules = json.loads((tmp_path / "state" / "exec-approvals.json").read_text())
    patterns = [rule["pattern"] for rule in rules["agents"]["main"]["allowlist"]]
    assert patterns == ["/usr/bin/uname"]


async def test_nobody_answers_and_the_request_expires_as_denied(tmp_path: Path) -> None:
    clock = FakeClock()
    proof = tmp_path / "proof"
    world = World(clock, RealIds(), RealDisk(), RealSpawn())
    async with (
        engine_on(tmp_path / "state", world=world) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        run = await operator.say(f"run: touch {proof}")
        record = await operator.request(run)
        assert record["expiresAtMs"] - record["createdAtMs"] == 30 * 60 * 1000
        ended = asyncio.create_task(operator.ended(run))
        await clock.advance(30 * 60)
        while not ended.done():
            await asyncio.wait([ended], timeout=0.02)
            await clock.advance(0.2)
        assert not proof.exists()
        result = next(m for m in await operator.history() if m["role"] == "toolResult")
        assert result["isError"] is True


async def test_four_sessions_wait_for_approval_and_a_fifth_still_answers(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        waiting = [await operator.say("run: uname", f"s{n}") for n in range(4)]
        for run in waiting:
            await operator.request(run)
        fifth = await operator.say("think: hello", "s5")
        assert (await operator.ended(fifth))["status"] == "done"
        lanes = await operator.client.call("lanes.status")
        main = next(lane for lane in lanes["lanes"] if lane["lane"] == "main")
        assert main["parked"] == 4
        for run in waiting:
            await operator.decide(await operator.request(run), "deny")
            await operator.ended(run)


async def test_the_second_message_of_a_session_waits_for_the_first(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        first = await operator.say("run: uname")
        record = await operator.request(first)
        second = await operator.say("think: after that")
        assert (await operator.trace(second, "run.queued"))["waitingBehind"] == [first]
        await operator.decide(record, "deny")
        await operator.ended(second)
        order = [
            f.payload["runId"] for f in operator.seen
            if f.event == "trace" and f.payload["kind"] == "run.ended"
        ]  # fmt: skip
        assert order == [first, second]


async def test_stop_everything_pauses_and_resume_goes_on(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        run = await operator.say("run: uname")
        await operator.request(run)
        stopped = await operator.client.call("runs.stopAll")
        assert stopped["runIds"] == [run]
        assert (await operator.ended(run))["status"] == "aborted"
        later = await operator.say("think: still here")
        status = await operator.client.call("status")
        assert status["paused"] is True
        assert status["runs"]["queued"] == 1
        await operator.client.call("lanes.resume")
        assert (await operator.ended(later))["status"] == "done"


async def test_a_pause_survives_a_restart(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.client.call("lanes.pause")
    async with engine_on(tmp_path / "state") as engine:
        assert engine.lanes.paused


async def test_a_restart_has_sessions_and_conversation(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.ended(await operator.say("think: remember me"))
        before = await operator.history()
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        assert await operator.history() == before
        rows = (await operator.client.call("sessions.list"))["sessions"]
        assert [row["key"] for row in rows] == ["agent:main:main"]


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.support.engines import Operator, engine_on

async def main():
    async with engine_on(Path(sys.argv[1])) as engine:
        async with Operator(engine.local_client(strict=True)) as operator:
            await operator.ended(await operator.say("think: first words"))
            run = await operator.say("run: uname")
            await operator.request(run)
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_after_kill_9_the_conversation_is_there_and_the_run_is_marked(tmp_path: Path) -> None:
    state = tmp_path / "state"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED, str(state))
    assert await process.wait() == -9
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        messages = await operator.history()
        assert "think: first words" in texts(messages, "user")[0]
        assert texts(messages, "user")[1] == "run: uname"
        assert messages[-1]["stopReason"] == "aborted"
        assert (await operator.client.call("exec.approval.list"))["approvals"] == []
        entries = (await operator.client.call("approval.history"))["entries"]
        assert entries[0]["reason"] == "restart"
        rows = (await operator.client.call("sessions.list"))["sessions"]
        assert rows[0]["abortedLastRun"] is True
        # Nothing is stuck: the session answers again, and the request is valid for a model.
        end = await operator.ended(await operator.say("think: back again"))
        assert end["status"] == "done"


async def test_two_engines_never_share_a_directory(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "state"):
        with pytest.raises(EngineHeld, match="already runs"):
            async with engine_on(tmp_path / "state"):
                pass
    async with engine_on(tmp_path / "state"):
        pass


async def test_a_newer_generation_is_never_rewritten(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "openclaw.sqlite").touch()
    (tmp_path / "state" / "state").mkdir()
    (tmp_path / "state" / "state" / "openclaw.sqlite").touch()
    with pytest.raises(ForeignState, match="newer"):
        async with engine_on(tmp_path / "state"):
            pass
    assert sorted(p.name for p in (tmp_path / "state").rglob("*")) == ["openclaw.sqlite", "state"]


async def test_a_remote_client_sees_the_same(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "state") as engine:
        client = RemoteClient(engine.state.root, mode="ui")
        async with Operator(client) as operator:
            run = await operator.say("run: uname")
            await operator.decide(await operator.request(run), "allow-once")
            assert (await operator.ended(run))["status"] == "done"
            assert len(await operator.history()) == 4


async def test_a_full_disk_refuses_the_message_and_later_works_again(tmp_path: Path) -> None:
    disk = FaultyDisk()
    world = World(FakeClock(), RealIds(), disk, RealSpawn())
    async with (
        engine_on(tmp_path / "state", world=world) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        disk.fail_next()
        with pytest.raises(Exception, match="disk"):
            await operator.say("think: lost?")
        disk.heal()
        assert (await operator.ended(await operator.say("think: found")))["status"] == "done"
        assert texts(await operator.history(), "user") == ["think: found"]


async def test_a_changed_workspace_file_is_told_with_its_tokens(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state") as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.ended(await operator.say("think: seed the workspace"))
        file = tmp_path / "state" / "workspace" / "USER.md"
        notice = asyncio.create_task(
            operator.event(
                "notice",
                lambda p: p["code"] == "workspace-changed" and "USER.md changed (+" in p["title"],
            )
        )
        while not notice.done():
            file.write_text(file.read_text() + "\nThe owner likes short answers.\n")
            await asyncio.wait([notice], timeout=1)
        assert "tokens" in (await notice)["title"]
        run = await operator.say("think: now")
        parts = (await operator.trace(run, "call.started"))["parts"]
        size = next(part["bytes"] for part in parts if part["name"] == "USER.md")
        assert size > 0
        await operator.ended(run)


async def test_a_broken_configuration_keeps_the_last_good_one(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with engine_on(state, config={"agents": {"defaults": {"maxConcurrent": 2}}}):
        pass
    (state / "openclaw.json").write_text('{ "agents": {')
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        status = await operator.client.call("status")
        notice = next(n for n in status["notices"] if n["code"] == "config-broken")
        assert (notice["level"], notice["sticky"]) == ("error", True)
        main = next(lane for lane in status["lanes"] if lane["lane"] == "main")
        assert main["width"] == 2
        (state / "openclaw.json").write_text('{ "agents": { "defaults": { "maxConcurrent": 3 } } }')
        await operator.event("notice", lambda p: p["code"] == "config-broken" and not p["title"])
        assert engine.settings().agents.defaults.max_concurrent == 3


async def test_a_model_that_cannot_be_used_is_an_error_not_a_rehearsal(tmp_path: Path) -> None:
    config: dict[str, object] = {"agents": {"defaults": {"model": {"primary": "nobody/knows"}}}}
    async with (
        engine_on(tmp_path / "state", config=config) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        status = await operator.client.call("status")
        assert status["model"]["isAI"] is True
        assert status["model"]["error"]
        end = await operator.ended(await operator.say("run: uname"))
        assert end["status"] == "failed"
        assert not [f for f in operator.seen if f.event == "exec.approval.requested"]


def test_the_engine_loads_no_screen_code() -> None:
    code = (
        "import sys, claw_engine.engine\n"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('textual', 'rich', 'claw_tui')]\n"
        "sys.exit(', '.join(bad) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def held() -> Counter[str]:
    """What the process has open, and how often."""
    found = []
    for name in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own descriptor
            found.append(str(name.readlink()))
    return Counter(found)


def watches() -> int:
    return sum(count for what, count in held().items() if "inotify" in what)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.to_thread(lambda: None)


async def test_engines_that_ended_watch_no_files(tmp_path: Path) -> None:
    before = watches()
    for number in range(3):
        async with engine_on(tmp_path / f"s{number}"):
            await until(lambda: watches() > before)
        await until(lambda: watches() == before)  # the thread that looks gives it back


async def test_a_start_that_fails_closes_what_it_opened(tmp_path: Path) -> None:
    """Its last step fails: by then the work of a dead engine has been taken up again."""
    state = tmp_path / "state"
    tasks, files = asyncio.all_tasks(), held()
    async with (
        engine_on(state, config={"resume": "auto"}) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.request(await operator.say("run: uname"))
        journal = (state / "inbox" / "journal.jsonl").read_bytes()
    await until(lambda: held() <= files)
    (state / "inbox" / "journal.jsonl").write_bytes(journal)  # as if it had died by now
    (state / "door.key").rename(state / "kept.key")
    (state / "door.key").mkdir()
    for _ in range(3):
        with pytest.raises((ClawError, OSError)):
            async with engine_on(state):
                pass
        assert asyncio.all_tasks() <= tasks
        await until(lambda: held() <= files)
    (state / "door.key").rmdir()
    (state / "kept.key").rename(state / "door.key")
    async with engine_on(state):
        pass


async def test_a_cancelled_start_leaves_nothing_behind(tmp_path: Path) -> None:
    tasks, files = asyncio.all_tasks(), held()

    async def life() -> None:
        async with engine_on(tmp_path / "state"):
            pass

    for turns in range(0, 60, 3):
        running = asyncio.create_task(life())
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert asyncio.all_tasks() <= tasks
        await until(lambda: held() <= files)


async def test_an_engine_that_cannot_start_gives_the_lock_back(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "openclaw.json").write_text("{ broken")
    with pytest.raises(Exception, match=r"openclaw\.json"):
        async with Engine(state, env={}):
            pass
    (state / "openclaw.json").unlink()
    async with engine_on(state):
        pass
