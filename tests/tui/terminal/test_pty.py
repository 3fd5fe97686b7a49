"""The painting app on a real pseudo-terminal: stalls, signals, crashes, hang-ups."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from pathlib import Path

import pytest

from tests.support.pty_driver import Terminal

pytestmark = pytest.mark.e2e

OFF = [
    b"\x1b[?1000l", b"\x1b[?1002l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l",
    b"\x1b[?1049l", b"\x1b[?25h",
]  # fmt: skip


def start(report: Path) -> Terminal:
    terminal = Terminal([sys.executable, "-m", "tests.tui.terminal.paint_app", str(report)])
    terminal.wait_for("step")
    return terminal


def last_step(screen: str) -> int:
    found = re.findall(r"step (\d+)", screen)
    return int(found[0]) if found else 0


def test_a_stalled_terminal_does_not_stall_the_loop(tmp_path: Path) -> None:
    report = tmp_path / "report"
    with start(report) as terminal:
        terminal.send("r")
        terminal.wait_for(lambda screen: 0 < last_step(screen) < 100)
        terminal.stall()
        threading.Event().wait(3.0)  # the stall itself is what is being tested
        before = last_step(terminal.text())
        terminal.unstall()
        terminal.wait_for(lambda screen: last_step(screen) > before + 50)
        terminal.send("q")
        assert terminal.wait_exit() == 0
    facts = json.loads(report.read_text())
    assert facts["skipped"] > 10
    # Stock Textual stands still for the whole stall; the machine may be busy, so not 150 ms here.
    assert facts["worst"] < 1.0
    assert facts["answers"] is True
    assert facts["confirmed"]


@pytest.mark.parametrize(
    ("how", "code"),
    [("q", 0), (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGHUP, 128 + signal.SIGHUP)],
)
def test_the_terminal_is_restored(tmp_path: Path, how: str | signal.Signals, code: int) -> None:
    with start(tmp_path / "report") as terminal:
        if isinstance(how, str):
            terminal.send(how)
        else:
            terminal.process.send_signal(how)
        assert terminal.wait_exit() == code
        terminal.wait_for(lambda _screen: OFF[-1] in terminal.raw[-4000:])
        missing = [sequence for sequence in OFF if sequence not in terminal.raw[-4000:]]
        assert not missing
        assert terminal.line_settings() == terminal.before


def test_a_crash_restores_the_terminal_and_says_so_in_its_code(tmp_path: Path) -> None:
    with start(tmp_path / "report") as terminal:
        terminal.send("x")
        assert terminal.wait_exit() != 0
        terminal.wait_for(lambda _screen: b"asked to crash" in terminal.raw)
        assert terminal.line_settings() == terminal.before


def test_after_a_hang_up_the_code_behind_the_screen_runs_on(tmp_path: Path) -> None:
    report = tmp_path / "report"
    with start(report) as terminal:
        terminal.hang_up()
        assert terminal.wait_exit() != 0
    assert json.loads(report.read_text())["steps"] > 0


def test_a_stalled_terminal_does_not_hold_up_leaving(tmp_path: Path) -> None:
    with start(tmp_path / "report") as terminal:
        terminal.stall()
        threading.Event().wait(0.5)  # let the kernel buffer fill
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.wait_exit(8) == 128 + signal.SIGTERM


def test_resizing_to_nothing_and_back(tmp_path: Path) -> None:
    with start(tmp_path / "report") as terminal:
        terminal.resize(1, 1)
        seen = len(terminal.raw)
        terminal.wait_for(lambda _screen: len(terminal.raw) > seen)
        terminal.resize(120, 40)
        terminal.wait_for(lambda screen: max(map(len, screen.split("\n"))) > 100)
        terminal.send("q")
        assert terminal.wait_exit() == 0
