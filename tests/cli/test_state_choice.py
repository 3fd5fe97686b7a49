"""Which state directory: a table, and the question that is asked once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from claw_engine.client.state_choice import (
    ChoiceFailed,
    ChoiceNeeded,
    choice_file,
    record,
    recorded,
    resolve,
    resolve_for_start,
)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def home(env: dict[str, str]) -> Path:
    path = Path(env["HOME"])
    path.mkdir()
    return path


def answers(*given: str) -> Callable[[str], str]:
    left = list(given)
    return lambda prompt: left.pop(0)


def test_the_flag_wins_then_the_environment_then_the_record_then_the_default(
    env: dict[str, str], home: Path
) -> None:
    assert resolve(None, env) == home / ".openclaw"
    record(Path("/recorded"), env)
    assert resolve(None, env) == Path("/recorded")
    env["OPENCLAW_STATE_DIR"] = "~/named"
    assert resolve(None, env) == home / "named"
    assert resolve("here", env) == Path.cwd() / "here"


def test_only_an_absolute_record_counts(env: dict[str, str], home: Path) -> None:
    record(Path("relative"), env)
    assert recorded(env) is None
    choice_file(env).write_bytes(b"\xff\xfe")
    assert recorded(env) is None


def test_beside_an_existing_one_without_a_terminal_it_names_the_option(
    env: dict[str, str], home: Path
) -> None:
    (home / ".openclaw").mkdir()
    with pytest.raises(ChoiceNeeded) as caught:
        resolve_for_start(None, env, None, print)
    assert "--state-dir" in caught.value.hint
    assert recorded(env) is None


def test_our_own_default_is_not_taken_for_a_stranger_at_the_second_start(
    env: dict[str, str], home: Path
) -> None:
    first = resolve_for_start(None, env, None, print)
    first.mkdir()
    assert resolve_for_start(None, env, None, print) == first == home / ".openclaw"


def test_a_named_directory_is_not_recorded(env: dict[str, str], home: Path) -> None:
    resolve_for_start("/elsewhere", env, None, print)
    assert recorded(env) is None


def test_fresh_is_recorded_and_the_old_one_untouched(env: dict[str, str], home: Path) -> None:
    (home / ".openclaw").mkdir()
    said: list[str] = []
    assert resolve_for_start(None, env, answers("?", "f"), said.append) == home / ".claw"
    assert recorded(env) == home / ".claw"
    assert list((home / ".openclaw").iterdir()) == []
    assert resolve_for_start(None, env, None, print) == home / ".claw"


def test_a_copy_leaves_sockets_locks_and_keys_behind(env: dict[str, str], home: Path) -> None:
    old = home / ".openclaw"
    (old / "agents" / "main").mkdir(parents=True)
    (old / "openclaw.json").write_text(f'{{"workspace": "{old}/ws"}}')
    for name in ("agents/main/s.jsonl", "agents/main/s.jsonl.lock", "gateway.lock", "door.key"):
        (old / name).write_text("x")
    said: list[str] = []
    new = resolve_for_start(None, env, answers("c"), said.append)
    copied = sorted(str(p.relative_to(new)) for p in new.rglob("*") if p.is_file())
    assert copied == ["agents/main/s.jsonl", "openclaw.json"]
    assert new.stat().st_mode & 0o777 == 0o700
    assert any("still point there" in line for line in said)


def test_a_newer_generation_is_not_copied(env: dict[str, str], home: Path) -> None:
    (home / ".openclaw" / "state").mkdir(parents=True)
    (home / ".openclaw" / "state" / "openclaw.sqlite").touch()
    said: list[str] = []
    assert resolve_for_start(None, env, answers("c", "f"), said.append) == home / ".claw"
    assert not (home / ".claw").exists()
    assert any("newer OpenClaw" in line for line in said)


def test_a_failed_copy_leaves_no_half_directory(env: dict[str, str], home: Path) -> None:
    (home / ".openclaw").mkdir()
    (home / ".openclaw" / "loop").symlink_to("nowhere")  # kept as a link: not a failure
    (home / ".claw.partial").write_text("in the way")
    with pytest.raises(ChoiceFailed, match="Copying"):
        resolve_for_start(None, env, answers("c"), print)
    assert not (home / ".claw").exists()
    assert recorded(env) is None


def test_quit(env: dict[str, str], home: Path) -> None:
    (home / ".openclaw").mkdir()
    with pytest.raises(ChoiceFailed, match="No state directory"):
        resolve_for_start(None, env, answers("q"), print)
