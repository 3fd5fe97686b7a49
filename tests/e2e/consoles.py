"""The real console in a pseudo-terminal, and the gestures of the person in front of it."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from pathlib import Path

from tests.support.pty_driver import Terminal

BIN = Path(sys.executable).parent


def plain_env(home: Path) -> dict[str, str]:
    """An environment without model keys, with a home of its own."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "OPENCLAW_GATEWAY_PORT": "0",  # side by side with other tests, and with a real gateway
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "xdg-state"),
    }


def console(state: Path, size: tuple[int, int] = (80, 24), *more: str) -> Terminal:
    """`claw-tui` on `state`, ready to type."""
    terminal = Terminal(
        [str(BIN / "claw-tui"), "--state-dir", str(state), *more],
        size=size,
        env=plain_env(state.parent / "home"),
        clean_env=True,
    )
    terminal.wait_for("TYPE", 30)
    terminal.wait_for("●", 30)
    return terminal


def say(terminal: Terminal, text: str) -> None:
    """Type a message and send it."""
    terminal.send(text)
    terminal.wait_for(text[-20:])
    terminal.send("\r")


def open_queue(terminal: Terminal) -> None:
    """F2, then wait for the card."""
    terminal.send("\x1bOQ")
    terminal.wait_for("RUN")


def back_to_typing(terminal: Terminal) -> None:
    """From the queue to the composer."""
    terminal.send("\x1b")
    terminal.wait_for("NAV")
    terminal.send("i")
    terminal.wait_for("TYPE")


def quiet(seconds: float = 0.8) -> None:
    """The card's guard time is real time without keys; there is no event to wait on."""
    threading.Event().wait(seconds)


def decide(terminal: Terminal, key: str, until: str) -> None:
    """Press a decision key until the card takes it and `until` is on the screen.

    A busy machine shows frames late, and a key too early only starts the guard time anew.
    """
    for _ in range(10):
        quiet()
        terminal.send(key)
        with contextlib.suppress(AssertionError):
            terminal.wait_for(until, 3)
            return
    terminal.wait_for(until, 1)


def countdown(screen: str) -> str | None:
    found = re.search(r"(\d\d:\d\d) left", screen)
    return found.group(1) if found else None
