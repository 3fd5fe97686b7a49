"""Sessions that work in a confined view of this machine, through the whole engine."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from claw_engine.engine import Engine
from tests.sandbox.rig import BACKENDS, GOT
from tests.support.engines import PLAIN_ENV, Operator


@asynccontextmanager
async def operator_on(
    state: Path, backend: str, env: dict[str, str] | None = None, **sandbox: Any
) -> AsyncIterator[Operator]:
    """The operator of an engine whose sessions work in boxes; skips where the backend fails."""
    state.mkdir(parents=True, exist_ok=True)
    exec_ = sandbox.pop("exec", {})
    wanted = {"mode": "all", "backend": backend, **sandbox}
    config = {"agents": {"defaults": {"sandbox": wanted}}, "tools": {"exec": exec_}}
    (state / "openclaw.json").write_text(json.dumps(config))
    async with (
        Engine(state, env={**PLAIN_ENV, "HOME": str(state.parent), **(env or {})}) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        found: Any = await operator.client.call("sandbox.explain", {})
        if found["sandboxed"] and found["backend"] is None:
            pytest.skip(f"{backend} does not work here: {found['broken']}")
        yield operator


async def tool(operator: Operator, text: str, session: str = "main") -> Any:
    run = await operator.say(text, session)
    ended = await operator.trace(run, "tool.ended")
    await operator.ended(run)
    return ended


@pytest.mark.parametrize("backend", BACKENDS)
async def test_unasked_and_in_a_workspace_of_its_own(tmp_path: Path, backend: str) -> None:
    state = tmp_path / "state"
    (tmp_path / "notes").write_text(f"{GOT} notes")
    async with operator_on(state, backend) as operator:
        found: Any = await operator.client.call("sandbox.explain", {})
        if found["asks"]:
            pytest.skip("a way out is open on this machine")
        own = Path(found["workspace"])
        ended = await tool(operator, f"run: pwd; echo hello > made; cat {tmp_path}/notes; ls /root")
        assert ended["text"].startswith(f"{own}\n") and GOT not in ended["text"]
        assert (own / "made").read_text() == "hello\n"
        assert (own / "AGENTS.md").exists(), "it begins with a copy of the agent's files"
        assert "hello" in (await tool(operator, "read: made"))["text"]
        ended = await tool(operator, f"read: {tmp_path}/notes")
        assert ended["status"] == "error" and "outside the sandbox" in ended["text"]
        ended = await tool(operator, f"run: echo x > {state}/workspace/AGENTS.md; echo $?")
        assert not ended["text"].strip().endswith("\n0")


@pytest.mark.parametrize("access", ["ro", "rw"])
async def test_the_agents_workspace(tmp_path: Path, access: str) -> None:
    state = tmp_path / "state"
    agent = state / "workspace"
    agent.mkdir(parents=True)
    (agent / "mine").write_text("mine")
    async with operator_on(state, "bwrap", workspaceAccess=access) as operator:
        ended = await tool(operator, f"run: cat {agent}/mine; echo x > {agent}/new; pwd")
        assert ended["text"].startswith("mine")
        assert (agent / "new").exists() == (access == "rw")
        ended = await tool(operator, f"read: {agent}/mine")
        assert ended["text"].rstrip().endswith("mine")
        ended = await tool(operator, "write: made x")
        assert (ended["status"] == "ok") == (access == "rw")


async def test_a_way_out_makes_it_ask(tmp_path: Path) -> None:
    """landlock cannot keep a command from an open socket of another program."""
    with socket.socket(socket.AF_UNIX) as server:
        (tmp_path / "run").mkdir()
        server.bind(str(tmp_path / "run" / "docker.sock"))
        server.listen()
        env = {"XDG_RUNTIME_DIR": str(tmp_path / "run")}
        async with operator_on(tmp_path / "state", "landlock", env) as operator:
            run = await operator.say("run: pwd")
            request = await operator.request(run)
            assert request["request"]["host"] == "sandbox"
            assert request["request"]["sandbox"] == "landlock"
            await operator.decide(request, "allow-once")
            assert "/sandboxes/" in (await operator.trace(run, "tool.ended"))["text"]


@pytest.mark.parametrize(("exec_", "asks"), [({"ask": "always"}, True), ({"ask": "off"}, False)])
async def test_the_policy_still_counts(tmp_path: Path, exec_: dict[str, str], asks: bool) -> None:
    async with operator_on(tmp_path / "state", "bwrap", exec=exec_) as operator:
        run = await operator.say("run: pwd")
        if asks:
            await operator.decide(await operator.request(run), "deny")
        ended = await operator.trace(run, "tool.ended")
        assert (ended["status"] == "ok") is not asks


@pytest.mark.parametrize("how", ["deny", "look"])
async def test_what_refuses_everything_refuses_here_too(tmp_path: Path, how: str) -> None:
    exec_ = {"security": "deny"} if how == "deny" else {}
    async with operator_on(tmp_path / "state", "bwrap", exec=exec_) as operator:
        if how == "look":
            await operator.client.call("permission.set", {"mode": "look"})
        ended = await tool(operator, "run: touch made")
        assert ended["status"] == "error"
        assert not list(tmp_path.rglob("made"))


async def test_only_the_main_session_is_outside(tmp_path: Path) -> None:
    async with operator_on(tmp_path / "state", "bwrap", mode="non-main") as operator:
        ended = await tool(operator, "run: pwd", "other")
        assert "/sandboxes/" in ended["text"]
        run = await operator.say("run: pwd")
        request = await operator.request(run)
        assert request["request"]["host"] == "gateway"
        await operator.decide(request, "deny")
        await operator.ended(run)
