"""The real program leaves its terminal as it found it, however it ends (TU-04).

Variants: an exception in a worker, in render, in a handler, with the approval card open, in a
console attached to another process's engine; SIGTERM, SIGHUP, SIGINT, SIGINT twice.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.consoles import console, open_queue, plain_env, say
from tests.support.pty_driver import Terminal
from tests.tui.terminal.crash_app import SECRET
from tests.tui.terminal.test_pty import OFF

pytestmark = pytest.mark.e2e

F9 = "\x1b[20~"


def faulty(state: Path, fault: str) -> Terminal:
    terminal = Terminal(
        [sys.executable, "-m", "tests.tui.terminal.crash_app", fault, "--state-dir", str(state)],
        env=plain_env(state.parent / "home"),
        clean_env=True,
    )
    terminal.wait_for("TYPE", 30)
    terminal.wait_for("●", 30)
    return terminal


def restored(terminal: Terminal) -> None:
    terminal.drain()
    tail = bytes(terminal.raw[-2048:])
    assert [sequence for sequence in OFF if sequence not in tail] == []
    assert terminal.line_settings() == terminal.before


def told(terminal: Terminal, state: Path, words: str) -> None:
    """One sentence on the shell's screen, the rest in the log it names."""
    (log,) = (state / "logs").glob("claw-*.log")
    after = bytes(terminal.raw).rpartition(b"\x1b[?1049l")[2].decode()
    assert "claw-tui: the console broke: " in after
    assert words in after
    assert str(log) in after.replace("\r\n", "")
    assert len(after) < 2048
    assert "Traceback" not in after
    text = log.read_text()
    assert "Traceback" in text
    assert words in text
    assert SECRET not in after + text


@pytest.mark.parametrize("fault", ["worker", "render", "handler", "dialog"])
def test_a_crash_restores_the_terminal_and_names_the_log(tmp_path: Path, fault: str) -> None:
    """TU-04: exceptions; `dialog` strikes while the approval card is open."""
    state = tmp_path / "state"
    with faulty(state, fault) as terminal:
        if fault == "dialog":
            say(terminal, f"run: touch {tmp_path}/proof")
            terminal.wait_for("waits for you")
            open_queue(terminal)
        terminal.send(F9)
        assert terminal.wait_exit() == 1
        restored(terminal)
        told(terminal, state, f"broken in {fault}")
    assert not (tmp_path / "proof").exists()


def test_an_attached_console_tells_of_its_crash_too(tmp_path: Path) -> None:
    """TU-04: the engine lives in another process and goes on."""
    state = tmp_path / "state"
    with console(state) as first:
        with faulty(state, "handler") as second:
            second.send(F9)
            assert second.wait_exit() == 1
            restored(second)
            told(second, state, "broken in handler")
        say(first, "think: still here")
        first.wait_for(lambda screen: screen.count("still here") > 1)


@pytest.mark.parametrize(
    "numbers",
    [[signal.SIGTERM], [signal.SIGHUP], [signal.SIGINT], [signal.SIGINT, signal.SIGINT]],
    ids=["TERM", "HUP", "INT", "INT twice"],
)
def test_a_signal_restores_the_terminal(tmp_path: Path, numbers: list[signal.Signals]) -> None:
    """TU-04: signals that another process sends."""
    with console(tmp_path / "state") as terminal:
        for number in numbers:
            terminal.process.send_signal(number)
        assert terminal.wait_exit(30) == 128 + numbers[0]
        restored(terminal)
