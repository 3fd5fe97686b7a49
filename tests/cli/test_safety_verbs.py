"""`claw mode` and `claw doctor` against a real engine, and without one."""

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


async def test_mode_is_shown_and_switched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    async with engine_on(state, config=NONE) as engine:
        assert await claw(state, "mode") == 0
        out = capsys.readouterr().out
        assert out.splitlines()[0] == "guarded"
        assert "approvals can be bypassed by allowed commands" in out
        assert await claw(state, "mode", "full", "--minutes", "5") == 0
        assert capsys.readouterr().out.startswith("full, 4 min 5")
        assert engine.permission_mode == "full"
        assert await claw(state, "mode", "look", "--json") == 0
        assert json.loads(capsys.readouterr().out)["mode"] == "look"


async def test_doctor_asks_the_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state"
    async with engine_on(state, config=NONE):
        assert await claw(state, "doctor") == 1
        lines = capsys.readouterr().out.splitlines()
        assert any(line.startswith("FAIL  sandbox/approvals: approvals can be") for line in lines)


def test_doctor_without_an_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json", "--state-dir", str(tmp_path / "state")])
    found = json.loads(capsys.readouterr().out)
    assert found["engine"] is False
    assert [row["name"] for row in found["probes"]][:2] == ["bwrap", "landlock"]
    assert code == int(any(row["health"] == "fail" for row in found["probes"]))
    assert not (tmp_path / "state").exists()
