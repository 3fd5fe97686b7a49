"""Makes text from outside safe and honest to paint. Pure.

`tame` is for what is read (chat, tool output, titles): control, bidirectional and zero-width
characters become visible; emoji sequences whose width terminals disagree about are reduced to
parts every terminal measures alike. `reveal` is for what is decided about (commands, paths):
nothing at all stays hidden, odd spaces and variation selectors included."""

from __future__ import annotations

import re
import unicodedata

TAB = 4
"""Cells of a tab stop."""

_ASCII_PLAIN = re.compile(r"[\x20-\x7e\n]*\Z")
_EMOJI_GLUE = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\u20e3]")
_PICTURE = "[\u2190-\u2bff\U0001f000-\U0001faff]"
_EMOJI_JOIN = re.compile(f"(?<={_PICTURE})\u200d(?={_PICTURE})")
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_ODD = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000\ufe0e\ufe0f\u20e3]")
_STACKED = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]{3})"
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+"
)


def _mark(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"⟪U+{code:04X}⟫"


def tame(raw: str) -> str:
    """Text for reading: newlines kept, tabs expanded, the hidden made visible."""
    if _ASCII_PLAIN.match(raw):
        return raw
    out = raw.replace("\r\n", "\n").expandtabs(TAB)
    if out.isascii() and not _HIDDEN.search(out):
        return out
    out = unicodedata.normalize("NFC", out)
    out = _EMOJI_JOIN.sub("", _EMOJI_GLUE.sub("", out))
    out = _FLAGS.sub(lambda m: chr(ord(m.group()) - 0x1F1E6 + 0x41), out)
    return _STACKED.sub(r"\1", _HIDDEN.sub(_mark, out))


def reveal(raw: str) -> str:
    """Text that a decision rests on: every character that could hide shows its code point."""
    out = raw.replace("\t", "␉")
    if _ASCII_PLAIN.match(out):
        return out
    return _STACKED.sub(r"\1⟪…⟫", _ODD.sub(_mark, _HIDDEN.sub(_mark, out)))


def line(raw: str) -> str:
    """`tame`, on one line: newlines become a visible return sign."""
    return tame(raw).replace("\n", "⏎")


def reveal_line(raw: str) -> str:
    """`reveal`, on one line."""
    return reveal(raw).replace("\n", "⏎")


def pasted(raw: str) -> str:
    """What a paste puts into the composer: newlines and tabs stay, other controls go."""
    out = raw.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c for c in out if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f"))


def ascii_only(raw: str) -> str:
    """For locales that are not UTF-8: anything else becomes a question mark."""
    return raw.encode("ascii", "replace").decode("ascii")
