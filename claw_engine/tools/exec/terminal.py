"""The little that a program on a pseudo-terminal expects of the terminal behind it.

Answers questions for the cursor position and the terminal's health, and remembers which form of
cursor keys and of pasted text the program asked for. Pure over bytes; draws nothing.
"""

from __future__ import annotations

from claw_engine.patterns import late

COLUMNS, ROWS = 120, 30
"""Size of a command's terminal in characters (OpenClaw 2026.2.26)."""

NAME = "xterm-256color"
NO_TERMINAL = "(No pseudo-terminal could be opened: the command runs without one.)"

_KNOWN = late(rb"\x1b\[(?P<private>\??)(?P<report>[56])n|\x1b\[\?(?P<mode>1|2004)(?P<on>[hl])")
_UNFINISHED = late(rb"\x1b(?:\[(?:\??(?:[156]|20{0,2}4?)?)?)?\Z")
_LONGEST = len(b"\x1b[?2004")


class Terminal:
    """Reads what the program writes; sequences may be cut anywhere between two pieces."""

    def __init__(self) -> None:
        self._held = b""
        self.application_keys = False
        """Whether the program asked for the other form of the cursor keys (DECCKM)."""
        self.bracketed_paste = False
        """Whether it asked for marks around pasted text."""

    def feed(self, data: bytes) -> bytes:
        """What the terminal answers to `data`, empty when nothing was asked."""
        data = self._held + data
        unfinished = _UNFINISHED.search(data, max(0, len(data) - _LONGEST))
        self._held = data[unfinished.start() :] if unfinished is not None else b""
        answers = bytearray()
        for found in _KNOWN.finditer(data):
            if found["mode"] == b"1":
                self.application_keys = found["on"] == b"h"
            elif found["mode"] is not None:
                self.bracketed_paste = found["on"] == b"h"
            elif found["report"] == b"6":
                # Nobody draws this terminal: its cursor is always at home.
                answers += b"\x1b[" + found["private"] + b"1;1R"
            elif not found["private"]:
                answers += b"\x1b[0n"
        return bytes(answers)
