"""Characters that make a command look like something else than it is.

Pure; knows nothing of shells. The console makes such characters visible, the approval rules
refuse to decide over them: a command that carries one always asks.
"""

from __future__ import annotations

import re
import unicodedata

# C0 without tab and newline (the splitter has its own words for line breaks), DEL, and C1.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Invisible, yet letters or marks by their Unicode category, so the category test misses them.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0"
) | {chr(c) for c in range(0xFE00, 0xFE10)}


def hidden_problems(text: str) -> tuple[str, ...]:
    """Plain words for every kind of deceptive character in `text`; empty when there is none."""
    if text.isascii() and text.isprintable():
        return ()  # the common case, without a look at each character
    found: list[str] = []
    if _CONTROL.search(text):
        found.append("contains control characters")
    if text.isascii():
        return tuple(found)
    kinds = {_kind(char) for char in set(text) if char > "\x9f"}
    found.extend(
        words
        for kind, words in (
            ("bidi", "contains characters that reverse the direction of text"),
            ("invisible", "contains invisible characters"),
            ("space", "contains characters that look like a space but are not"),
        )
        if kind in kinds
    )
    return tuple(found)


def _kind(char: str) -> str:
    if char in _BIDI:
        return "bidi"
    category = unicodedata.category(char)
    if char in _BLANK or (category[0] == "C") or "\U000e0100" <= char <= "\U000e01ef":
        return "invisible"  # format, surrogate, private and unassigned characters, selectors
    return "space" if category[0] == "Z" else ""
