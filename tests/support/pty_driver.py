"""Drives the real program in a pseudo-terminal and reads its screen with pyte.

The terminal answers what a real one answers (device status, synchronized output query), can
stop reading for a while, change size, and hang up. Everything waits on what the program draws.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

DSR = re.compile(rb"\x1b\[5n")
SYNC_QUERY = re.compile(rb"\x1b\[\?2026\$p")
# pyte 0.8 does not know these and would print their tails.
UNKNOWN = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1b\[[0-9;]*u")


class Terminal:
    """One program on one pseudo-terminal."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        clean_env: bool = False,
    ) -> None:
        self.columns, self.rows = size
        self.screen = pyte.Screen(self.columns, self.rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = bytearray()
        self._changed = threading.Condition()
        self._reading = threading.Event()
        self._reading.set()
        self._closed = False
        self._tail = b""
        self._master, slave = pty.openpty()
        self._set_size(self.columns, self.rows)
        self.process = subprocess.Popen(
            list(argv),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=dict(env or {}) if clean_env else _terminal_env(env),
            preexec_fn=_own_session,  # noqa: PLW1509 - two system calls, no lock is taken
        )
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    # ── what a person does ──────────────────────────────────────────────────────────────────

    def send(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.screen.resize(rows, columns)
        self._set_size(columns, rows)

    def stall(self) -> None:
        """Stop reading, as a frozen SSH connection does."""
        self._reading.clear()

    def unstall(self) -> None:
        self._reading.set()

    def hang_up(self) -> None:
        """Close the terminal, as a dropped SSH connection does."""
        self._closed = True
        os.close(self._slave)
        os.close(self._master)

    # ── what a person sees ──────────────────────────────────────────────────────────────────

    def text(self) -> str:
        with self._changed:
            return "\n".join(line.rstrip() for line in self.screen.display)

    def line(self, index: int) -> str:
        return self.text().split("\n")[index]

    def wait_for(self, want: str | Callable[[str], bool], seconds: float = 20.0) -> str:
        """Wait until the screen holds `want`; returns the screen. Fails with the screen."""
        test = (lambda screen: want in screen) if isinstance(want, str) else want
        deadline = time.monotonic() + seconds
        while True:
            screen = self.text()
            if test(screen):
                return screen
            left = deadline - time.monotonic()
            if left <= 0 or (self.process.poll() is not None and not self._alive()):
                raise AssertionError(f"never saw {want!r}; the screen was:\n{screen}")
            with self._changed:
                self._changed.wait(min(left, 0.2))

    def wait_exit(self, seconds: float = 20.0) -> int:
        return self.process.wait(seconds)

    def drain(self, seconds: float = 20.0) -> None:
        """Read what an ended program has left in the terminal, to the last byte."""
        marker = b"\x1b]0;end of output\x07"
        os.write(self._slave, marker)
        self.wait_for(lambda _screen: marker in self.raw, seconds)

    def spoil(self, text: str) -> None:
        """Write over the whole screen behind the program's back, as a broken neighbour would."""
        rows = "".join(f"\x1b[{row + 1};1H{text}" for row in range(self.rows))
        with self._changed:
            self._stream.feed(f"\x1b7{rows}\x1b8".encode())

    def line_settings(self) -> list[object]:
        return termios.tcgetattr(self._slave)

    def close(self) -> None:
        self.unstall()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
        if not self._closed:
            self.hang_up()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── the terminal itself ─────────────────────────────────────────────────────────────────

    def _alive(self) -> bool:
        return self._thread.is_alive() and not self._closed

    def _set_size(self, columns: int, rows: int) -> None:
        packed = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, packed)

    def _pump(self) -> None:
        while not self._closed:
            self._reading.wait()
            try:
                if not select.select([self._master], [], [], 0.1)[0]:
                    continue
                data = os.read(self._master, 65536)
            except (OSError, ValueError):
                break
            if not data:
                break
            self._take(data)
        with self._changed:
            self._changed.notify_all()

    def _take(self, data: bytes) -> None:
        joined = self._tail + data
        for pattern, answer in ((DSR, b"\x1b[0n"), (SYNC_QUERY, b"\x1b[?2026;2$y")):
            for match in pattern.finditer(joined):
                if match.end() > len(self._tail):
                    with contextlib.suppress(OSError):
                        os.write(self._master, answer)
        self._tail = joined[-16:]
        with self._changed:
            self.raw += data
            self._stream.feed(UNKNOWN.sub(b"", data))
            self._changed.notify_all()


def _terminal_env(env: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}


def _own_session() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
