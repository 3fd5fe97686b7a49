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
    "claw_tui.screens.prompt",
    "claw_tui.store.requests",
    "claw_tui.tracepages",
    "claw_tui.widgets.markdown",
)


def test_importing_the_application_stays_small() -> None:
    code = "import sys, json, claw_tui.app; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    modules = json.loads(done.stdout)
    assert [name for name in NOT_AT_START if name in modules] == []
    assert sum(name.startswith("claw_") for name in modules) <= 64


LEFT_OUT = """
import sys
from claw_tui.lean import LATER, load_textual
load_textual()
import textual.app
from claw_tui.app import ClawApp
from tests.tui.fake_client import FakeClient
ClawApp(FakeClient())
print([name for name in (*LATER, "yaml") if name in sys.modules])
late = textual.app.CommandPalette
from textual.command import CommandPalette
assert late is not CommandPalette
assert isinstance(CommandPalette(), late) and not isinstance(3, late)
assert type(late()) is CommandPalette and late.BINDINGS is CommandPalette.BINDINGS
assert not hasattr(late, "__no_such_name__")
"""


def test_a_start_leaves_textuals_palette_and_tables_out_until_they_are_used() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OUT], capture_output=True, check=False, text=True
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


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
