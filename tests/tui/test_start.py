"""What starting costs and who may start: modules loaded, terminals refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from claw_tui import cli

NOT_AT_START = (
    "rich.markdown",
    "markdown_it",
    "pygments",
    "yaml",
    "pydantic",
    "httpx2",
    "watchfiles",
    "claw_engine.engine",
    "claw_engine.gateway",
    "claw_tui.palette",
    "claw_tui.screens.approvals",
    "claw_tui.screens.help",
    "claw_tui.widgets.markdown",
)


def test_importing_the_application_stays_small() -> None:
    code = "import sys, json, claw_tui.app; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    modules = json.loads(done.stdout)
    assert [name for name in NOT_AT_START if name in modules] == []
    assert sum(name.startswith("claw_") for name in modules) <= 64


@pytest.mark.parametrize(
    ("env", "tty", "word"),
    [
        ({"TERM": "xterm-256color"}, True, ""),
        ({"TERM": "xterm"}, False, "not a terminal"),
        ({"TERM": "dumb"}, True, "cannot draw"),
        ({}, True, "cannot draw"),
    ],
)
def test_terminals_that_cannot_show_it(env: dict[str, str], tty: bool, word: str) -> None:
    problem = cli.unusable_terminal(env, tty)
    assert (word in problem) if word else problem == ""


def test_without_a_terminal_it_leaves_with_2(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "claw_tui", "--state-dir", str(tmp_path)],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "not a terminal" in done.stderr


def test_version_needs_neither_terminal_nor_engine() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "claw_tui", "--version"],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("claw-tui ")
