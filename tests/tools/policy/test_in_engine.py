"""The policy through a whole engine: methods, the command, notices, and a change of the file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from claw_engine.cli.__main__ import main
from claw_engine.client.base import ClientError
from tests.support.engines import Operator, engine_on

CONFIG: dict[str, object] = {
    "tools": {"profile": "coding", "deny": ["exec:rm*", "process"]},
    "agents": {"list": [{"id": "main"}, {"id": "quiet", "tools": {"deny": ["bash"]}}]},
}


async def test_the_catalog_has_openclaws_shape(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "s", config=CONFIG) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        found: Any = await operator.client.call("tools.catalog", {"agentId": "quiet"})
        assert found["agentId"] == "quiet"
        assert [p["id"] for p in found["profiles"]] == ["minimal", "coding", "messaging", "full"]
        groups = {group["id"]: group for group in found["groups"]}
        assert list(groups) == ["fs", "runtime"]
        assert groups["fs"]["source"] == "core"
        assert [t["id"] for t in groups["fs"]["tools"]] == ["read", "write", "edit", "apply_patch"]
        for group in found["groups"]:
            for tool in group["tools"]:
                assert set(tool) == {"id", "label", "description", "source", "defaultProfiles"}
                assert tool["defaultProfiles"] == ["coding"]
        with pytest.raises(ClientError, match="unknown agent id"):
            await operator.client.call("tools.catalog", {"agentId": "nobody"})


async def test_explain_says_which_step_decided(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "s", config=CONFIG) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        found: Any = await operator.client.call("tools.explain", {})
        verdicts = {row["name"]: row for row in found["tools"]}
        assert [name for name, row in verdicts.items() if row["allowed"]] == [
            "read", "write", "edit", "exec",
        ]  # fmt: skip
        assert verdicts["process"]["step"] == "global"
        assert verdicts["process"]["rule"] == "deny has 'process'"
        assert verdicts["apply_patch"]["step"] == "switch"
        (doubt,) = found["warnings"]
        assert doubt["entry"] == "exec:rm*"

        own: Any = await operator.client.call(
            "tools.explain", {"name": "bash", "sessionKey": "agent:quiet:work"}
        )
        assert own["agentId"] == "quiet"
        (row,) = own["tools"]
        assert (row["name"], row["step"]) == ("exec", "agent")
        assert [step["passes"] for step in row["steps"]] == [True, True, True, False]

        child: Any = await operator.client.call(
            "tools.explain", {"sessionKey": "agent:main:subagent:x"}
        )
        assert child["subagentDepth"] == 1
        with pytest.raises(ClientError, match="no tool named"):
            await operator.client.call("tools.explain", {"name": "nope"})


async def test_entries_that_do_nothing_are_notices_until_they_are_mended(tmp_path: Path) -> None:
    state = tmp_path / "s"
    async with (
        engine_on(state, config=CONFIG) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await engine.warm_up()
        status: Any = await operator.client.call("status", {})
        assert any("exec-approvals.json" in notice["title"] for notice in status["notices"])
        mended = {**CONFIG, "tools": {"deny": ["process"]}}
        (state / "openclaw.json").write_text(json.dumps(mended))
        await operator.event("notice", lambda p: p["level"] == "clear" and "tools:" in p["code"])
        status = await operator.client.call("status", {})
        assert not any("exec-approvals.json" in notice["title"] for notice in status["notices"])


async def test_a_denied_tool_is_refused_in_a_run(tmp_path: Path) -> None:
    """TP-01 through the engine: the rehearsal model asks for what it is not offered."""
    config: dict[str, object] = {"tools": {"deny": ["group:runtime"]}}
    async with (
        engine_on(tmp_path / "s", config=config) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        run = await operator.say("run: touch made")
        ended = await operator.trace(run, "run.ended")
        assert "not offered" in ended["text"]


async def test_the_command_shows_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "s"
    async with engine_on(state, config=CONFIG):
        folder = ("--state-dir", str(state))
        assert await asyncio.to_thread(main, ["tools", "list", *folder]) == 0
        out = capsys.readouterr().out
        assert "yes  read" in out
        assert "no   process" in out
        assert "warning: tools: 'exec:rm*'" in out
        assert await asyncio.to_thread(main, ["tools", "explain", "process", *folder]) == 0
        out = capsys.readouterr().out
        assert out.startswith("The tool process is not available here: deny has 'process'")
        assert "REMOVES  global (tools)" in out
        assert await asyncio.to_thread(main, ["tools", "explain", "x", "--json", *folder]) == 1
        assert json.loads(capsys.readouterr().out)["ok"] is False
