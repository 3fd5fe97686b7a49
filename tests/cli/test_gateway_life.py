"""`claw gateway start … stop` and the verbs around it, with a real engine in the background."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from claw_engine.cli.config import steps_of
from claw_engine.cli.lock import holder, wait
from claw_engine.cli.logs import readable

CLAW = [sys.executable, "-m", "claw_engine.cli"]
Claw = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def claw(tmp_path: Path) -> Claw:
    keep = ("PATH", "LANG", "VIRTUAL_ENV", "PYTHONPATH")
    home = tmp_path / "home"
    home.mkdir()
    env: Mapping[str, str] = {
        **{name: os.environ[name] for name in keep if name in os.environ}, "HOME": str(home),
        "OPENCLAW_STATE_DIR": str(tmp_path / "s"),
    }  # fmt: skip

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CLAW, *argv], env=env, text=True, capture_output=True, timeout=120, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return run


def said(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_start_status_config_restart_logs_stop(claw: Claw, tmp_path: Path) -> None:
    state = tmp_path / "s"
    assert claw("gateway", "status").returncode == 2
    first = said(claw("gateway", "start", "--port", "0", "--json"))
    try:
        assert first["started"] is True
        again = said(claw("gateway", "start", "--port", "0", "--json"))
        assert (again["started"], again["pid"]) == (False, first["pid"])
        deep = said(claw("gateway", "status", "--deep", "--json"))
        assert (deep["pid"], deep["doorAnswers"]) == (first["pid"], True)
        assert str(deep["ready"]).startswith("200")
        token = state / "openclaw.json"
        json.loads(token.read_text())  # strict JSON, as we write it

        put = said(claw("config", "set", "gateway.bind", "lan", "--json"))
        assert "gateway.bind" in str(put["waits"])
        got = said(claw("config", "get", "gateway.bind", "--json"))
        assert got["value"] == "lan"

        # The rules restart it by themselves; the signal joins that.
        begun = deep["startedAt"]
        os.kill(int(str(first["pid"])), signal.SIGUSR1)
        assert wait(lambda: (holder(state) or {}).get("startedAt") not in (None, begun), 60)
        assert wait(lambda: bool((holder(state) or {}).get("door")), 60)
        after = holder(state) or {}
        assert (after["pid"], after["port"]) == (first["pid"], first["port"])
        lines = claw("logs", "--limit", "500").stdout
        assert "restarting" in lines and "engine ready" in lines
        assert said(claw("gateway", "health", "--json"))["pid"] == first["pid"]
        assert claw("devices").stdout == "No device is paired, none asks.\n"
    finally:
        stopped = claw("gateway", "stop", "--json")
    assert said(stopped)["stopped"] is True
    assert holder(state) is None
    assert "engine stop" in claw("logs").stdout
    assert claw("gateway", "stop").returncode == 2


def test_a_start_that_fails_says_why(claw: Claw, tmp_path: Path) -> None:
    state = tmp_path / "s"
    state.mkdir(mode=0o700)
    (state / "openclaw.json").write_text('{\n "tools": 5}')
    failed = claw("gateway", "start")
    assert failed.returncode == 1
    assert "openclaw.json:2:2: tools" in failed.stderr
    checked = claw("config", "validate")
    assert checked.returncode == 1 and "openclaw.json:2:2: tools" in checked.stdout
    assert claw("config", "set", "tools", "{}").returncode != 0


def test_without_an_engine_the_file_is_changed_by_the_same_rules(
    claw: Claw, tmp_path: Path
) -> None:
    state = tmp_path / "s"
    assert claw("config", "set", "gateway.port", "1234").returncode == 0
    file = Path(claw("config", "file").stdout.strip())
    assert file == state / "openclaw.json"
    assert json.loads(file.read_text()) == {"gateway": {"port": 1234}}
    wrong = claw("config", "set", "gateway.port", "much")
    assert wrong.returncode != 0 and "gateway.port" in wrong.stderr
    assert json.loads(file.read_text()) == {"gateway": {"port": 1234}}
    assert claw("config", "get", "gateway.port").stdout == "1234\n"
    file.chmod(0o644)
    fixed = json.loads(claw("doctor", "--fix", "--json").stdout)["fixed"]
    assert file.stat().st_mode & 0o777 == 0o600 and len(fixed) >= 1
    assert claw("config", "get", "gateway.nothing").returncode == 1
    file.write_text("{")
    broken = claw("config", "get", "gateway.port")
    assert broken.returncode == 1 and "cannot be used" in broken.stderr


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", ()),
        ("gateway.port", ("gateway", "port")),
        ("agents.list[0].model", ("agents", "list", 0, "model")),
        ("agents.list.1.id", ("agents", "list", 1, "id")),
    ],
)
def test_paths(text: str, steps: tuple[str | int, ...]) -> None:
    assert steps_of(text) == steps


def test_a_line_of_the_log_for_people() -> None:
    line = '{"ts": "2026-01-01T00:00:00Z", "level": "info", "logger": "claw.x", "msg": "a\\u001b"}'
    assert readable(line) == "2026-01-01T00:00:00Z info  claw.x: a\\x1b"
    assert readable("torn {") == "torn {"
