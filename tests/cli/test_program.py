"""The real `claw` with a real engine, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

CLAW = [sys.executable, "-m", "claw_engine.cli"]


@pytest.fixture
def env(tmp_path: Path) -> Mapping[str, str]:
    keep = ("PATH", "LANG", "VIRTUAL_ENV", "PYTHONPATH")
    kept = {name: os.environ[name] for name in keep if name in os.environ}
    home = tmp_path / "home"
    home.mkdir()
    return {**kept, "HOME": str(home), "OPENCLAW_GATEWAY_PORT": "0"}


def claw(env: Mapping[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLAW, *argv], env=env, text=True, capture_output=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def engine(tmp_path: Path, env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*CLAW, "gateway", "run", "--state-dir", str(tmp_path / "s"), "--json"],
        env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    assert ready["pid"] == process.pid
    assert Path(ready["door"]).is_socket()
    yield process
    if process.poll() is None:
        process.terminate()
    process.communicate(timeout=30)


def test_the_second_engine_names_the_first(
    engine: subprocess.Popen[str], env: Mapping[str, str], tmp_path: Path
) -> None:
    second = claw(env, "gateway", "run", "--state-dir", str(tmp_path / "s"))
    assert second.returncode == 1
    assert f"pid {engine.pid}" in second.stderr
    assert claw(env, "health", "--state-dir", str(tmp_path / "s")).returncode == 0


def test_sigterm_ends_it_cleanly(
    engine: subprocess.Popen[str], env: Mapping[str, str], tmp_path: Path
) -> None:
    engine.send_signal(signal.SIGTERM)
    assert engine.wait(timeout=30) == 128 + signal.SIGTERM
    assert not (tmp_path / "s" / "claw.sock").exists()
    assert claw(env, "status", "--state-dir", str(tmp_path / "s")).returncode == 2


def test_engine_stop_ends_it_with_0(
    engine: subprocess.Popen[str], env: Mapping[str, str], tmp_path: Path
) -> None:
    call = claw(env, "call", "engine.stop", '{"when":"now"}', "--state-dir", str(tmp_path / "s"))
    assert call.returncode == 0
    assert engine.wait(timeout=30) == 0


def test_a_killed_engine_leaves_a_socket_that_the_next_replaces(
    engine: subprocess.Popen[str], env: Mapping[str, str], tmp_path: Path
) -> None:
    engine.kill()
    engine.wait(timeout=30)
    state = tmp_path / "s"
    assert (state / "claw.sock").is_socket()
    status = claw(env, "status", "--state-dir", str(state))
    assert status.returncode == 2
    assert "left-over" in status.stderr
    turn = claw(env, "agent", "--message", "hello", "--state-dir", str(state))
    assert turn.returncode == 0
    assert "not an AI" in turn.stdout


def test_agent_without_an_engine_is_answered_from_another_terminal(
    env: Mapping[str, str], tmp_path: Path
) -> None:
    state = str(tmp_path / "s")
    turn = subprocess.Popen(
        [*CLAW, "agent", "--message", "run: echo it-ran", "--state-dir", state],
        env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    watchdog = threading.Timer(60, turn.kill)
    watchdog.start()
    try:
        assert turn.stderr is not None
        for line in turn.stderr:
            if "claw approvals approve" in line:
                approval = line.split()[3]
                break
        allowed = claw(env, "approvals", "allow", approval, "--state-dir", state)
        assert allowed.stdout == "allow-once: echo it-ran\n"
        out, err = turn.communicate(timeout=60)
    finally:
        watchdog.cancel()
    assert turn.returncode == 0, err
    assert "it-ran" in out
    assert "tool: exec ok, exit 0" in err


def test_beside_an_existing_openclaw_without_a_terminal_it_exits_2(
    env: Mapping[str, str],
) -> None:
    existing = Path(env["HOME"]) / ".openclaw"
    existing.mkdir()
    for argv in (("gateway", "run"), ("agent", "--message", "hi"), ("status",)):
        said = claw(env, *argv)
        assert said.returncode == 2
        assert "--state-dir" in said.stderr
    assert list(existing.iterdir()) == []


def test_status_imports_nothing_heavy(tmp_path: Path, env: Mapping[str, str]) -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from claw_engine.cli.__main__ import main\n"
        f"main(['status', '--state-dir', {str(tmp_path)!r}])\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, text=True, capture_output=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "claw_engine.client.sync" in loaded
    heavy = {"asyncio", "pydantic", "dataclasses", "inspect", "shutil", "logging", "ssl", "textual"}
    assert loaded & heavy == set()


def test_what_is_wrong_with_the_configuration_is_said(
    env: Mapping[str, str], tmp_path: Path
) -> None:
    state = tmp_path / "s"
    state.mkdir()
    config = "{agnets: {}, agents: {list: [{id: 'ops', default: true}]}}"
    (state / "openclaw.json").write_text(config)
    said = claw(env, "agent", "-m", "think: hello", "--state-dir", str(state))
    assert said.returncode == 0, said.stderr
    assert "agnets: unknown key" in said.stderr
    said = claw(env, "agent", "-m", "hi", "--session", "agent:nobody:x", "--state-dir", str(state))
    assert said.returncode == 1
    assert "There is no agent nobody: agents.list names ops." in said.stderr
