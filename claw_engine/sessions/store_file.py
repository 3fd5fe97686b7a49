"""The text of sessions.json: read entry by entry, written back byte for byte. Pure.

Every entry keeps the text it was read with, so one update serialises one entry (OpenClaw's embed
some 8 KB of prompt reports each, and the whole file is rewritten on every save).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from claw_engine.sessions.entry import SessionEntry
from claw_engine.storage.text import to_pretty

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
_PAD = b"\n  "


class BrokenStore(ValueError):
    """The text is no JSON object; what was read before the fault remains usable."""


@dataclass(slots=True)
class Record:
    """One member of the file: key as spelled there, its entry (None = no object), its text."""

    key: str
    entry: SessionEntry | None
    text: bytes | None = None

    def rendered(self) -> bytes:
        """The value's JSON text inside the file; serialised once."""
        if self.text is None:
            value = dict(self.entry.raw) if self.entry is not None else None
            self.text = to_pretty(value).replace(b"\n", _PAD)
        return self.text


def decode(data: bytes) -> str:
    """File bytes as text: a BOM is dropped, invalid bytes survive a round trip."""
    return data.decode("utf-8-sig", "surrogateescape")


def scan(text: str) -> Iterator[tuple[Record, int]]:
    """Each member in file order, with the text position behind it.

    Raises BrokenStore at the first fault (an empty or NUL text included); members yielded before
    it are whole.
    """
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise BrokenStore("only NUL bytes" if text.strip("\0 \n") == "" and text else _what(text))
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        _end(text, at + 1)
        return
    while True:
        key, at = _value(text, at)
        if not isinstance(key, str):
            raise BrokenStore(f"member without a name at character {at}")
        at = _expect(text, at, ":")
        start = _skip(text, at)
        value, at = _value(text, start)
        entry = SessionEntry(key, value) if isinstance(value, dict) else None
        raw = text[start:at].encode("utf-8", "surrogateescape")
        yield Record(key, entry, raw), at
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            _end(text, at + 1)
            return
        at = _skip(text, _expect(text, at, ","))


def render(records: Iterable[Record]) -> bytes:
    """The whole file, as JSON.stringify(store, null, 2) lays it out."""
    members = [to_pretty(r.key) + b": " + r.rendered() for r in records]
    return b"{" + _PAD + (b"," + _PAD).join(members) + b"\n}" if members else b"{}"


def _what(text: str) -> str:
    return "the file is empty" if not text.strip() else "the file does not start with {"


def _skip(text: str, at: int) -> int:
    size = len(text)
    while at < size and text[at] in _SPACE:
        at += 1
    return at


def _expect(text: str, at: int, sign: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != sign:
        raise BrokenStore(f"expected {sign!r} at character {at}")
    return at + 1


def _value(text: str, at: int) -> tuple[object, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise BrokenStore(f"unreadable from character {at} on") from error


def _end(text: str, at: int) -> None:
    if text[at:].strip(_SPACE + "\0"):
        raise BrokenStore(f"text behind the end at character {at}")
