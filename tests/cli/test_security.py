"""`claw security audit` with and without an engine; `claw sandbox` against one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from claw_engine.cli.__main__ import main
from tests.support.engines import engine_on

NONE: dict[str, object] = {"tools": {"exec": {"confine": "none"}}}


async def claw(state: Path, *argv: str) -> int:
    return await asyncio.to_thread(main, [*argv, "--state-dir", str(state)])


async def test_audit_asks_the_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state"
    async with engine_on(state, config=NONE):
        assert await claw(state, "security", "audit", "--deep", "--json") == 1
        told = json.loads(capsys.readouterr().out)
        assert told["deep"]["gateway"]["ok"] is True
        rows = {row["checkId"]: row for row in told["findings"]}
        assert "not confined" in rows["claw.approvals.bypass"]["detail"]
        assert await claw(state, "security", "audit") == 1
        assert "CRITICAL  claw.approvals.bypass" in capsys.readouterr().out


def test_audit_and_fix_without_an_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    state.mkdir(0o755)
    config = state / "openclaw.json"
    config.write_text('{"logging": {"redactSensitive": "off"}}')
    config.chmod(0o644)
    main(["security", "audit", "--json", "--deep", "--state-dir", str(state)])
    told = json.loads(capsys.readouterr().out)
    checks = {row["checkId"] for row in told["findings"]}
    wanted = {"fs.state_dir.perms_readable", "fs.config.perms_world_readable", "logging.redact_off"}
    assert wanted | {"gateway.probe_failed"} <= checks
    main(["security", "audit", "--json", "--fix", "--state-dir", str(state)])
    told = json.loads(capsys.readouterr().out)
    assert len(told["fixed"]) == 3
    assert not wanted & {row["checkId"] for row in told["findings"]}


def test_a_broken_configuration_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "openclaw.json").write_text("{ nonsense")
    assert main(["security", "audit", "--state-dir", str(tmp_path)]) == 2
    assert "cannot be used" in capsys.readouterr().err


async def test_what_is_confined_by_nothing_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    async with engine_on(state, config=NONE):
        assert await claw(state, "sandbox", "explain") == 0
        out = capsys.readouterr().out
        assert "confined  no: on this machine as you; approvals can be bypassed" in out


async def test_sandbox_verbs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state"
    wanted = {"mode": "non-main", "backend": "bwrap"}
    async with engine_on(state, config={"agents": {"defaults": {"sandbox": wanted}}}):
        assert await claw(state, "sandbox") == 0
        assert "No containers" in capsys.readouterr().out
        assert await claw(state, "sandbox", "explain") == 0
        out = capsys.readouterr().out
        assert await claw(state, "sandbox", "explain", "--json") == 0
        confined = json.loads(capsys.readouterr().out)["confined"]
        by = f"by {confined['backend']}, on" if confined["backend"] else "no: on"
        assert f"confined  {by} this machine" in out and "sandbox   no box" in out
        assert await claw(state, "sandbox", "explain", "--session", "other", "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert told["sandboxed"] is True and told["scope"] == "agent"
        assert told["workspace"].startswith(f"{state}/sandboxes/")
        assert await claw(state, "sandbox", "recreate", "--all") == 0
        assert "no such container" in capsys.readouterr().out
