"""Bytes from the terminal, minus the answers that are meant for us and not for a key handler.

Pure: fed with text, returns text to parse as keys and the number of status answers in it. An
answer may be split over two reads; what could be the start of one is held back until more comes.
"""

from __future__ import annotations

import re

# CSI 0 n is "ready", CSI 3 n "malfunction": both prove that the terminal has read this far.
_ANSWER = re.compile(r"\x1b\[[03]n")
_START = re.compile(r"\x1b\[[03]?$")


class AnswerFilter:
    """Takes status answers out of the input stream."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> tuple[str, int]:
        """Text for the key parser, and how many status answers were in it."""
        text = self._held + text
        self._held = ""
        if "\x1b" not in text:
            return text, 0
        rest, answers = _ANSWER.subn("", text)
        start = _START.search(rest)
        if start is not None:
            self._held = rest[start.start() :]
            rest = rest[: start.start()]
        return rest, answers

    def flush(self) -> str:
        """What was held back, when nothing more has come for a while."""
        held, self._held = self._held, ""
        return held
