"""The text of sessions.json: read entry by entry, written back byte for byte. Pure.

Every entry keeps the text it was read with, so one update serialises the fields that changed
(OpenClaw's embed some 8 KB of prompt reports each). `scan` reads any JSON; `scan_laid_out` finds
the entries of a large file without parsing them, if it looks as OpenClaw writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from msgspec import Struct

from claw_engine.sessions import fields
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.fields import Fields
from claw_engine.storage.text import to_pretty

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
_PAD = b"\n  "
_NEXT = b',\n  "'
_QUOTE = ord('"')


class BrokenStore(ValueError):
    """The text is no JSON object; what was read before the fault remains usable."""


class NotLaidOut(ValueError):
    """The text is not laid out as OpenClaw writes it; `scan` must read it."""


class Record(Struct):
    """One member of the file: key as spelled there, its entry (None = no object), its text.

    `was` is the record it replaces: fields that did not change keep their bytes.
    """

    key: str
    entry: SessionEntry | None
    text: bytes | None = None
    was: Record | None = None

    def rendered(self) -> bytes:
        """The value's JSON text inside the file; serialised once."""
        if self.text is not None:
            return self.text
        if self.entry is None:
            return b"null"
        was, raw = self.was, self.entry.raw
        if was is None and isinstance(raw, Fields):
            return raw.text
        if was is not None and was.entry is not None:
            text = fields.render(self.entry.raw, was.entry.raw, was.rendered())
        else:
            text = fields.render(self.entry.raw, {}, None)
        self.text, self.was = text, None
        return text


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


def scan_laid_out(data: bytes) -> Iterator[tuple[Record, int]]:
    """Each member of a file in OpenClaw's layout, unparsed, with the position behind it.

    A JSON string holds no newline, so a comma, a newline and two spaces end a member. Raises
    NotLaidOut as soon as anything looks different.
    """
    end = len(data) - len(data[-8:]) + len(data[-8:].rstrip(b" \r\n"))
    if not data.startswith(b'{\n  "') or data[end - 2 : end] != b"\n}":
        raise NotLaidOut
    at, end = 4, end - 2
    while at < end:
        cut = data.find(_NEXT, at, end)
        cut = end if cut < 0 else cut
        colon = data.find(b'": ', at, cut)
        if colon < 0 or data[at] != _QUOTE or data.find(b"\0", at, cut) >= 0:
            raise NotLaidOut
        start = colon + 3
        try:
            key = _key(data[at + 1 : colon])
            if fields.is_laid_out(data, start, cut):
                yield Record(key, SessionEntry(key, Fields(data, start, cut))), cut
            elif isinstance(json.loads(data[start:cut]), dict):
                raise NotLaidOut
            else:
                yield Record(key, None, data[start:cut]), cut
        except ValueError:
            raise NotLaidOut from None
        at = cut + len(_NEXT) - 1


def _key(text: bytes) -> str:
    if b"\\" not in text and b'"' not in text:
        return text.decode()
    key = json.loads(b'"%s"' % text)
    if not isinstance(key, str):
        raise NotLaidOut
    return key


def render(records: Iterable[Record]) -> bytes:
    """The whole file, as JSON.stringify(store, null, 2) lays it out."""
    return b"".join(pieces(records))


def pieces(records: Iterable[Record]) -> Iterator[bytes]:
    """The whole file, member by member."""
    first = True
    for record in records:
        yield (b"{" if first else b",") + _PAD + to_pretty(record.key) + b": " + record.rendered()
        first = False
    yield b"{}" if first else b"\n}"


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
