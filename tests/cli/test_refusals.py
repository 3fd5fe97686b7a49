"""Wrong places and full disks end in one line and an exit code, never in a traceback."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from claw_engine.cli.__main__ import build_parser, main
from claw_engine.client.state_choice import ChoiceFailed, resolve
from claw_engine.errors import ClawError
from claw_engine.paths import StateDir
from claw_engine.tenancy import move_in
from tests.cli.test_program import CLAW, claw, engine, env

__all__ = ["engine", "env"]


@pytest.fixture
def a_file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("mine")
    return path


@pytest.mark.parametrize("verb", [("agent", "-m", "hi"), ("gateway", "run")])
@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("{file}", "not a directory"),
        ("{file}/x", "Not a directory"),
        ("/dev/null", "not a directory"),
        ("/proc/foo", "No such file"),
        ("/proc/self", "No such file"),
    ],
)
def test_a_wrong_state_directory(
    env: Mapping[str, str], a_file: Path, verb: tuple[str, ...], place: str, why: str
) -> None:
    where = place.format(file=a_file)
    said = claw(env, *verb, "--state-dir", where)
    assert (said.returncode, said.stderr.count("\n")) == (1, 1), said.stderr
    assert where in said.stderr
    assert why in said.stderr
    assert "--state-dir" in said.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("below", ["", "new"])
def test_a_place_without_permission(tmp_path: Path, below: str) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o500)
    with pytest.raises(ClawError, match="Permission denied") as caught:
        move_in(StateDir(shut / below), 0, {})
    assert "--state-dir" in caught.value.hint


def test_a_full_stdout(engine: object, env: Mapping[str, str], tmp_path: Path) -> None:
    for verb in (["status"], ["status", "--json"]):
        with Path("/dev/full").open("w") as full:
            said = subprocess.run(
                [*CLAW, *verb, "--state-dir", str(tmp_path / "s")], env=env, text=True,
                stdout=full, stderr=subprocess.PIPE, timeout=60, check=False,
            )  # fmt: skip
        assert said.returncode == 1
        assert said.stderr == "claw: Cannot write the answer to stdout: No space left on device.\n"


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_state_dir_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["status", "--state-dir", value])
    assert left.value.code == 2
    assert "--state-dir: the value is empty" in capsys.readouterr().err
    with pytest.raises(ChoiceFailed, match="empty"):
        resolve(value, {"HOME": "/h"})


def test_an_empty_variable_is_no_variable(tmp_path: Path) -> None:
    assert resolve(None, {"HOME": str(tmp_path), "OPENCLAW_STATE_DIR": ""}) == (
        tmp_path / ".openclaw"
    )


@pytest.mark.parametrize(
    ("argv", "state_dir"),
    [
        (("--state-dir", "X", "status"), "X"),
        (("--state-dir", "X", "lanes", "width", "main", "2"), "X"),
        (("lanes", "--state-dir", "X", "pause"), "X"),
        (("approvals", "--state-dir", "X", "list"), "X"),
        (("--state-dir", "X", "status", "--state-dir", "Y"), "Y"),
    ],
)
def test_options_may_stand_before_the_verb(argv: tuple[str, ...], state_dir: str) -> None:
    assert build_parser().parse_args(argv).state_dir == state_dir


@pytest.mark.parametrize("text", ["abc", "0", "1.5", "²"])
def test_a_width_that_is_none(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["lanes", "width", "main", text])
    assert f"invalid width {text!r}: a whole number from 1" in capsys.readouterr().err
