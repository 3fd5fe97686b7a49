"""The life of real containers, and sessions that work in one, through the whole engine.

Needs podman and a static busybox; the suite makes its own image. Skips say what is missing.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from claw_engine.engine import Engine
from claw_engine.sandbox.box import Box
from claw_engine.sandbox.boxes import Boxes
from claw_engine.sandbox.keeper import Keeper
from tests.sandbox import podman
from tests.sandbox.boxes_rig import settings, world
from tests.sandbox.rig import GOT, Machine
from tests.support.engines import PLAIN_ENV, Operator

KEY = "agent:main:x"


@pytest.fixture
def env() -> Iterator[dict[str, str]]:
    found = podman.engine()
    if isinstance(found, str):
        pytest.skip(f"no container engine: {found}")
    yield found
    podman.podman(found, ["rm", "-f", "-a", "-t", "0"])


def boxes_on(machine: Machine, env: dict[str, str]) -> Boxes:
    keeper = Keeper(world(), machine.state, machine.env)
    return Boxes(world(), machine.state, {**machine.env, **env}, keeper)


async def ready(boxes: Boxes, machine: Machine, **more: Any) -> Box:
    box = await boxes.of(
        settings("docker", **more), session_key=KEY, agent_id="main", workspace=machine.workspace
    )
    await boxes.ready(box)
    return box


def born(env: dict[str, str], box: Box) -> str:
    return podman.podman(env, ["inspect", "--format", "{{.Id}}", box.name]).stdout.decode().strip()


async def test_one_container_until_its_settings_change(
    machine: Machine, env: dict[str, str]
) -> None:
    boxes = boxes_on(machine, env)
    box = await ready(boxes, machine)
    first = born(env, box)
    assert first and born(env, await ready(boxes, machine)) == first
    # Another engine on the same directory finds it again.
    assert born(env, await ready(boxes_on(machine, env), machine)) == first
    podman.podman(env, ["stop", "-t", "0", box.name])
    assert born(env, await ready(boxes, machine)) == first
    let_go = boxes.containers.hold(box.name)
    await ready(boxes, machine, docker={"memory": "96m"})
    assert born(env, box) == first, "a command runs in it"
    let_go()
    await ready(boxes, machine, docker={"memory": "96m"})
    assert born(env, box) != first
    entries = json.loads((machine.state / "sandbox" / "containers.json").read_text())["entries"]
    assert [entry["containerName"] for entry in entries] == [box.name]


async def test_setup_command_once(machine: Machine, env: dict[str, str]) -> None:
    boxes = boxes_on(machine, env)
    docker = {"setupCommand": "echo x >> /workspace/setup"}
    for _ in range(2):
        box = await ready(boxes, machine, docker=docker)
    assert (Path(box.workspace) / "setup").read_text() == "x\n"
    with pytest.raises(Exception, match="failed"):
        await ready(boxes, machine, docker={"setupCommand": "exit 3"})
    assert born(env, box) == ""


async def test_unused_ones_are_pruned(machine: Machine, env: dict[str, str]) -> None:
    boxes = boxes_on(machine, env)
    box = await ready(boxes, machine)
    assert await boxes.containers.prune(24, 7) == []
    path = machine.state / "sandbox" / "containers.json"
    path.write_text(path.read_text().replace('"lastUsedAtMs": 1', '"lastUsedAtMs": 0.'))
    assert await boxes.containers.prune(24, 7) == [box.name]
    assert born(env, box) == ""


async def test_what_a_dead_engine_left_running_ends(machine: Machine, env: dict[str, str]) -> None:
    box = await ready(boxes_on(machine, env), machine)
    podman.podman(env, ["exec", "-d", "--env", "CLAW_BOX_ID=old", box.name, "sleep", "600"])
    assert b"sleep 600" in podman.podman(env, ["top", box.name, "args"]).stdout
    await ready(boxes_on(machine, env), machine)
    assert b"sleep 600" not in podman.podman(env, ["top", box.name, "args"]).stdout


async def test_without_its_image(machine: Machine, env: dict[str, str]) -> None:
    boxes = boxes_on(machine, env)
    box = await boxes.of(
        settings("docker", docker={"image": "nobody/has:this"}), session_key=KEY, agent_id="main",
        workspace=machine.workspace,
    )  # fmt: skip
    assert box.backend is None and "no image nobody/has:this" in box.broken
    with pytest.raises(Exception, match="none can be had here"):
        await boxes.ready(box)


# ── through the engine ──────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def operator_on(
    state: Path, env: dict[str, str], **sandbox: Any
) -> AsyncIterator[tuple[Engine, Operator]]:
    docker = {"engine": "podman", "pidsLimit": 64, "memory": "128m"}
    wanted = {"mode": "all", "backend": "docker", "docker": docker, **sandbox}
    state.mkdir(parents=True, exist_ok=True)
    config = {"agents": {"defaults": {"sandbox": wanted}}}
    (state / "openclaw.json").write_text(json.dumps(config))
    async with (
        Engine(state, env={**env, **PLAIN_ENV, "HOME": str(state)}) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        yield engine, operator


async def tool(operator: Operator, text: str) -> Any:
    run = await operator.say(text)
    ended = await operator.trace(run, "tool.ended")
    await operator.ended(run)
    return ended


async def test_a_session_in_a_container(tmp_path: Path, env: dict[str, str]) -> None:
    state = tmp_path / "state"
    async with operator_on(state, env) as (_, operator):
        ended = await tool(operator, "run: pwd; ls -a /; echo hello > made; env")
        assert ended["status"] == "ok", ended
        assert "/workspace" in ended["text"] and str(state) not in ended["text"]
        ended = await tool(operator, "read: /workspace/made")
        assert "hello" in ended["text"]
        ended = await tool(operator, f"read: {state}/openclaw.json")
        assert ended["status"] == "error"
        ended = await tool(operator, "read: /etc/passwd")
        assert ended["status"] == "error" and "outside the sandbox" in ended["text"]
        found: Any = await operator.client.call("sandbox.explain", {"sessionKey": "main"})
        assert found["backend"] == "docker" and found["asks"] is False
        assert not (state / "workspace" / "made").exists()
        listed: Any = await operator.client.call("sandbox.list", {})
        assert [row["running"] for row in listed["containers"]] == [True]
        removed: Any = await operator.client.call("sandbox.recreate", {"sessionKey": "main"})
        assert removed["removed"] == [found["container"]]
        ended = await tool(operator, "run: cat made")
        assert "hello" in ended["text"], "the workspace outlives the container"


async def test_a_stopped_command_ends_inside(tmp_path: Path, env: dict[str, str]) -> None:
    async with operator_on(tmp_path / "state", env) as (_, operator):
        run = await operator.say("run: echo up; setsid sleep 601 & sleep 602")
        await operator.trace(run, "tool.output")
        found: Any = await operator.client.call("sandbox.explain", {})
        top = ["top", found["container"], "args"]
        assert b"sleep 602" in podman.podman(env, top).stdout
        await operator.client.call("chat.abort", {"sessionKey": "main", "runId": run})
        await operator.ended(run)
        assert b"sleep 60" not in podman.podman(env, top).stdout


@pytest.mark.parametrize("access", ["none", "ro", "rw"])
async def test_what_it_sees_of_the_agents_workspace(
    tmp_path: Path, env: dict[str, str], access: str
) -> None:
    state = tmp_path / "state"
    (state / "workspace").mkdir(parents=True)
    (state / "workspace" / "mine").write_text(GOT)
    async with operator_on(state, env, workspaceAccess=access) as (_, operator):
        ended = await tool(
            operator, "run: cat /agent/mine /workspace/mine; echo x > /agent/new; echo y > made"
        )
        assert (GOT in ended["text"]) == (access != "none")
        ended = await tool(operator, "read: /agent/mine")
        assert (ended["status"] == "ok") == (access == "ro"), ended["text"]
    names = {path.name for path in (state / "workspace").iterdir()}
    assert "new" not in names and ("made" in names) == (access == "rw")


async def test_elevated_goes_outside_and_asks(tmp_path: Path, env: dict[str, str]) -> None:
    state = tmp_path / "state"
    async with operator_on(state, env) as (_, operator):
        await tool(operator, "run: true")
        params = {"key": "main", "elevatedLevel": "on"}
        await operator.client.call("sessions.patch", params)
        run = await operator.say("run: pwd")
        request = await operator.request(run)
        assert request["request"]["host"] == "gateway"
        await operator.decide(request, "allow-once")
        ended = await operator.trace(run, "tool.ended")
        assert ended["status"] == "ok" and ended["text"].strip() != "/workspace"


async def test_demanded_and_impossible_runs_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    docker = {"image": "nobody/has:this"}
    async with operator_on(state, {}, docker=docker) as (_, operator):
        ended = await tool(operator, "run: touch made")
        assert ended["status"] == "error" and "none can be had here" in ended["text"]
        assert not list(state.rglob("made"))
        found: Any = await operator.client.call("doctor.probes", {})
        failed = [row for row in found["probes"] if row["health"] == "fail"]
        assert any("no sandbox can be had" in row["text"] for row in failed)
        status: Any = await operator.client.call("status", {})
        words = "Agent main has no sandbox that works."
        if words not in [notice["title"] for notice in status["notices"]]:
            await operator.event("notice", lambda p: p["title"] == words)


# ── an allowed command cannot allow the next one ────────────────────────────────────────────────

ATTACKS = {
    "key": "cat {state}/door.key /proc/*/root{state}/door.key",
    "environment": "cat /proc/*/environ | tr '\\0' '\\n' | grep -i -e token -e secret",
    "door": "echo x | nc local:{state}/claw.sock && echo GOT",
    "rules": "echo '{{}}' > {state}/exec-approvals.json && echo GOT",
    "policy": "echo '{{}}' > {state}/openclaw.json && echo GOT",
    "engine": "kill -0 {pid} && cat /proc/{pid}/maps",
    "start-up": "echo x >> {home}/.profile && cat {home}/.profile && echo GOT",
    "ssh": "nc -w 2 127.0.0.1 22 </dev/null && echo GOT",
    "sockets": "find / -type s 2>/dev/null | grep . && echo GOT",
    "cron": "ls -d /var/spool/cron /etc/cron.d && echo GOT",
    "terminals": "for t in /dev/pts/[0-9]* /dev/tty; do echo x > $t && echo GOT; done",
    "buses": "ls /run/dbus /run/user /tmp/tmux-* /run/screen && echo GOT",
}


async def test_self_approval_from_a_container(tmp_path: Path, env: dict[str, str]) -> None:
    state = tmp_path / "state"
    home = tmp_path / "home"
    home.mkdir()
    (home / ".profile").write_text("# mine\n")
    async with operator_on(state, env) as (engine, operator):
        before = (state / "openclaw.json").read_text()
        key = (state / "door.key").read_bytes().hex()
        for name, attack in ATTACKS.items():
            command = attack.format(state=state, pid=os.getpid(), home=home)
            ended = await tool(operator, f"run: {command}")
            assert GOT not in ended["text"].replace(command, ""), (name, ended["text"])
            assert key not in ended["text"].encode().hex(), name
        assert (state / "openclaw.json").read_text() == before
        assert (
            not (state / "exec-approvals.json").exists()
            or "{}" not in (state / "exec-approvals.json").read_text()
        )
        assert (home / ".profile").read_text() == "# mine\n"
        assert await asyncio.to_thread(os.getpid) == os.getpid()
        assert engine.permission_mode == "guarded"
