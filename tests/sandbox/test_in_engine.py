"""Confinement across the whole engine: every way exec starts a child, the door, modes, methods."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from claw_engine.approvals.model import Decision
from claw_engine.engine import Engine
from claw_engine.sandbox.bwrap import find_program
from claw_engine.sandbox.keeper import Keeper, Wishes
from claw_engine.tools.exec.confine import Confinement
from claw_engine.tools.exec.processes import alive, look
from claw_engine.tools.exec.tool import ExecTool
from claw_engine.tools.registry import ToolRegistry
from claw_engine.world import RealClock, RealDisk, RealIds, RealSpawn, World
from tests.sandbox.rig import BACKENDS, GOT
from tests.support.engines import PLAIN_ENV, Operator, engine_on
from tests.tools.desk import BASE, Desk

DOOR = Path(__file__).with_name("at_the_door.py")

needs_bwrap = pytest.mark.skipif(find_program() is None, reason="bubblewrap is not installed")


def confined(backend: str, **more: object) -> dict[str, object]:
    return {"tools": {"exec": {"confine": backend, **more}}}


async def ran(operator: Operator, command: str, decision: str = "allow-once") -> Any:
    """`tool.ended` of an approved command, and the request that was decided."""
    run = await operator.say(f"run: {command}")
    request = await operator.request(run)
    await operator.decide(request, decision)
    ended = await operator.trace(run, "tool.ended")
    await operator.ended(run)
    return ended, request


def skip_unless(engine: Any, backend: str) -> None:
    if backend not in ("none", engine._rooms.keeper.name):
        pytest.skip(f"{backend} does not work here")


@pytest.mark.parametrize("backend", [*BACKENDS, "none"])
async def test_an_allowed_command_at_the_door(tmp_path: Path, backend: str) -> None:
    """It knows the socket and the key's path, and clears what marks it as a run's child."""
    state = tmp_path / "state"
    async with (
        engine_on(state, config=confined(backend)) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        skip_unless(engine, backend)
        command = f"env -i setsid -w {sys.executable} -I {DOOR} {state}"
        ended, request = await ran(operator, command)
        assert request["request"]["sandbox"] == backend
        status: Any = await operator.client.call("status", {})
        if backend == "none":
            assert GOT in ended["text"], "the attack is no attack"
            assert "not confined" in status["bypassWarning"]
        else:
            assert GOT not in ended["text"]
        if backend == "bwrap":
            assert status["bypassWarning"] is None or "abstract" in status["bypassWarning"]


SECRET = "s3cret-t0ken-of-the-gateway"


@pytest.mark.parametrize("backend", [*BACKENDS, "none"])
async def test_the_token_is_in_no_environment(tmp_path: Path, backend: str) -> None:
    """Not in the command's own, and not in one it can read: the engine holds it in its memory."""
    state = tmp_path / "state"
    config = confined(backend) | {"gateway": {"auth": {"token": "${GATEWAY_SECRET}"}}}
    state.mkdir()
    (state / "openclaw.json").write_text(json.dumps(config))
    (state / ".env").write_text(f"GATEWAY_SECRET={SECRET}\n")
    env = {**PLAIN_ENV, "HOME": str(state), "COPY": SECRET}
    async with (
        Engine(state, env=env) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        skip_unless(engine, backend)
        readable = f"cat {state}/.env {state}/openclaw.json" if backend != "none" else "true"
        command = f"env; set; cat /proc/*/environ; {readable}"
        ended, _ = await ran(operator, command)
        assert SECRET not in ended["text"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("manner", ["plain", "pty", "background", "rule"])
async def test_every_way_of_starting(tmp_path: Path, backend: str, manner: str) -> None:
    """Also a command that rules allow, on a terminal or in the background."""
    world = World(RealClock(), RealIds(), RealDisk(), RealSpawn())
    desk = Desk(tmp_path, world)
    keeper = Keeper(world, desk.state.root, BASE, Wishes(backend))
    await keeper.check()
    if keeper.name != backend:
        pytest.skip(f"{backend} does not work here")
    tool = ExecTool(processes=desk.table, confinement=Confinement(keeper))
    desk.registry = ToolRegistry([tool])
    await desk.broker.start()
    secret = desk.state.root / "secret"
    secret.write_text(f"{GOT} it")
    if manner == "rule":
        rule = {"pattern": os.path.realpath("/bin/cat")}
        rules = {"version": 1, "agents": {"main": {"allowlist": [rule]}}}
        desk.state.exec_approvals.write_text(json.dumps(rules))
        await desk.rules.load()
        result = await desk.call("exec", command=f"cat {secret}")
    else:
        args: dict[str, Any] = {manner: True} if manner in ("pty", "background") else {}
        result, record = await desk.answered(
            Decision.ALLOW_ONCE, "exec", command=f"cat {secret}; test -t 0 && echo a tty", **args
        )
        assert record.ask.sandbox == backend
    text = result.text
    if manner == "background":
        text = (await desk.table.of_session(desk.session_key)[0].running.wait()).output
    await desk.table.close()
    await desk.broker.close()
    assert GOT not in text
    assert "cat: " in text
    assert ("a tty" in text) == (manner == "pty")


@needs_bwrap
async def test_a_stopped_command_may_tidy_up_and_signals_keep_their_names(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with (
        engine_on(state, config=confined("bwrap")) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        skip_unless(engine, "bwrap")
        ended, _ = await ran(operator, "kill -9 $$")
        assert "Command aborted by signal SIGKILL" in ended["text"]
        ended, _ = await ran(operator, "exit 7")
        assert ended["exitCode"] == 7
        run = await operator.say(
            "run: trap 'echo tidy > tidied; exit' TERM; echo up; sleep 600 & wait"
        )
        await operator.decide(await operator.request(run), "allow-once")
        await operator.trace(run, "tool.output")
        await operator.client.call("chat.abort", {"sessionKey": "main", "runId": run})
        await operator.ended(run)
        assert (state / "workspace" / "tidied").read_text() == "tidy\n"


_DIE = """
import asyncio, sys
from pathlib import Path
from tests.sandbox.test_in_engine import die_with_a_command

asyncio.run(die_with_a_command(Path(sys.argv[1])))
"""


async def die_with_a_command(state: Path) -> None:
    async with (
        engine_on(state, config=confined("bwrap", backgroundMs=10)) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        ended, _ = await ran(operator, "sleep 600")
        print(ended["text"].partition("pid ")[2].partition(")")[0], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


@needs_bwrap
async def test_a_confined_command_ends_with_its_engine(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _DIE, str(tmp_path / "state"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    seen = look(int(await process.stdout.readline()))
    assert await process.wait() == -9
    if seen is not None:
        fd = os.pidfd_open(seen.id.pid) if alive(seen.id) is not None else -1
        if fd >= 0:
            assert select.select([fd], [], [], 5)[0], "it still runs"
            os.close(fd)


async def test_a_demanded_backend_that_does_not_work_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_engine.sandbox.keeper.find_program", lambda: None)
    state = tmp_path / "state"
    async with (
        engine_on(state, config=confined("bwrap")) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        run = await operator.say("run: touch made")
        ended = await operator.trace(run, "tool.ended")
        assert "must be confined by bwrap" in ended["text"]
        assert not (state / "workspace" / "made").exists()
        assert engine.bypass_warning is not None


async def test_doctor_names_backends_and_routes(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state", config=confined("none")) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        found: Any = await operator.client.call("doctor.probes", {})
        rows = found["probes"]
        names = [row["name"] for row in rows if row["room"] == "sandbox"]
        assert names[:2] == ["bwrap", "landlock"]
        failed = [row for row in rows if row["health"] == "fail"]
        assert any("approvals can be bypassed" in row["text"] for row in failed)
        assert engine.bypass_warning in [row["text"] for row in failed]


# ── permission modes ────────────────────────────────────────────────────────────────────────────


async def test_look_runs_and_writes_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.client.call("permission.set", {"mode": "look"})
        await operator.event("notice", lambda p: "look" in p["title"])
        for call in ("run: touch made", "write: made x"):
            run = await operator.say(call)
            ended = await operator.trace(run, "tool.ended")
            assert "permission mode look" in ended["text"]
            await operator.ended(run)
        assert not (state / "workspace" / "made").exists()
        run = await operator.say("read: AGENTS.md")
        assert (await operator.trace(run, "tool.ended"))["status"] == "ok"
    async with engine_on(state) as engine:
        assert engine.permission_mode == "look"


@needs_bwrap
async def test_workspace_runs_unasked_and_confined(tmp_path: Path) -> None:
    state, outside = tmp_path / "state", tmp_path / "outside"
    outside.mkdir()
    async with (
        engine_on(state, config=confined("bwrap")) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        skip_unless(engine, "bwrap")
        await operator.client.call("permission.set", {"mode": "workspace"})
        run = await operator.say(f"run: touch made; touch {outside}/made; cat {state}/door.key")
        await operator.trace(run, "tool.ended")
        assert (state / "workspace" / "made").exists()
        assert not (outside / "made").exists()
        assert not [frame for frame in operator.seen if frame.event == "exec.approval.requested"]


async def test_workspace_asks_where_nothing_confines(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state", config=confined("none")) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.client.call("permission.set", {"mode": "workspace"})
        run = await operator.say("run: true")
        await operator.decide(await operator.request(run), "deny")


async def test_full_asks_nothing_ends_and_does_not_survive(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        payload: Any = await operator.client.call("permission.set", {"mode": "full"})
        left = payload["fullUntilMs"] - engine.world.clock.now_ms()
        assert 0 < left <= 3_600_000
        run = await operator.say("run: touch made")
        await operator.ended(run)
        assert (state / "workspace" / "made").exists()
        refused = await operator.say(f"read: {state}/door.key")
        assert "state directory" in (await operator.trace(refused, "tool.ended"))["text"]
        await operator.client.call("permission.set", {"mode": "full", "ttlMs": 1})
        await operator.event("notice", lambda p: "full is over" in p["title"])
        assert engine.permission_mode == "guarded"
        await operator.client.call("permission.set", {"mode": "full"})
    async with engine_on(state) as engine:
        assert engine.permission_mode == "guarded"
