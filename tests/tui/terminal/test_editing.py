"""$EDITOR in a real terminal: it gets the terminal, the engine goes on, the console comes back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.consoles import plain_env, say
from tests.support.pty_driver import Terminal
from tests.tui.terminal.test_pty import OFF

pytestmark = pytest.mark.e2e

EDITOR = """#!/bin/sh
printf 'EDITING %s\\r\\n' "${1##*/}"
read line
printf '%s\\n' "$line" >> "$1"
"""


def status(state: Path, env: dict[str, str]) -> dict[str, object]:
    """What the engine says to somebody else."""
    verb = [sys.executable, "-m", "claw_engine.cli", "status", "--json", "--state-dir", str(state)]
    done = subprocess.run(verb, capture_output=True, text=True, check=True, env=env, timeout=30)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_an_editor_gets_the_terminal_and_gives_it_back(tmp_path: Path) -> None:
    state, editor = tmp_path / "s", tmp_path / "ed"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    env = {**plain_env(tmp_path / "home"), "EDITOR": str(editor)}
    argv = [sys.executable, "-m", "claw_tui", "--state-dir", str(state)]
    with Terminal(argv, env=env, clean_env=True) as terminal:
        terminal.wait_for("TYPE", 30)
        terminal.wait_for("●", 30)
        say(terminal, "hello there")
        terminal.wait_for("out", 30)
        terminal.send("\x1b")
        terminal.wait_for("NAV")
        terminal.send("2")
        terminal.wait_for("Parts, as they were sent", 30)
        terminal.send("g")
        for place in range(1, 40):
            screen = terminal.wait_for(f" {place} of ")
            if any("▌" in row and "AGENTS.md" in row for row in screen.split("\n")):
                break
            terminal.send("j")
        terminal.send("e")
        terminal.wait_for("EDITING AGENTS.md", 20)
        assert all(sequence in terminal.raw for sequence in OFF), "the terminal is as it was"
        assert status(state, env)["pid"] == terminal.process.pid, "the engine goes on meanwhile"
        terminal.send("\x03")  # what the editor makes of it is its own business
        terminal.wait_for("ended with -2", 20)
        seen = len(terminal.raw)
        terminal.send("e")
        terminal.wait_for(lambda _screen: b"EDITING AGENTS.md" in terminal.raw[seen:], 20)
        terminal.send("\x1a")  # nobody is there who could let a stopped one go on
        assert status(state, env)["pid"] == terminal.process.pid, "nor does the engine stop"
        terminal.send("Count twice what is deleted.\r")
        terminal.wait_for("+29 characters, about", 20)
        assert (state / "workspace/AGENTS.md").read_text().endswith("what is deleted.\n")
        terminal.send("1")
        terminal.wait_for("hello there")
        assert terminal.process.poll() is None
