"""Fields of one session entry as text, parsed when somebody asks. Pure.

An entry of OpenClaw's embeds some 8 KB of reports; ten thousand of them are only parsed where a
field is used, and a field that nobody changed is written back as the bytes that were read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeVar, overload

from claw_engine.storage.text import to_pretty

T = TypeVar("T")

_OPENING, _CLOSING = b'{\n    "', b"\n  }"
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


def is_laid_out(source: bytes, start: int, end: int) -> bool:
    """Whether a span holds an entry as JSON.stringify(store, null, 2) leaves it."""
    if end - start < len(_OPENING) + len(_CLOSING):
        return source[start:end] == b"{}"
    return source.startswith(_OPENING, start) and source.endswith(_CLOSING, start, end)


class Fields(Mapping[str, object]):
    """Fields by name over a span of the file that `is_laid_out`. The bytes never change."""

    __slots__ = ("_end", "_source", "_start", "_values")

    def __init__(self, source: bytes, start: int = 0, end: int | None = None) -> None:
        self._source = source
        self._start = start
        self._end = len(source) if end is None else end
        self._values: Mapping[str, object] | None = None

    @property
    def text(self) -> bytes:
        """The entry as it stands in the file."""
        return self._source[self._start : self._end]

    def __getitem__(self, name: str) -> object:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def get(self, key: str, default: None = None, /) -> object | None: ...
    @overload
    def get(self, key: str, default: object | T, /) -> object | T: ...
    def get(self, key: str, default: object = None, /) -> object:
        """A field; plain text and numbers cost no parse of the rest."""
        if self._values is not None or not (key.isascii() and key.isidentifier()):
            return self._all().get(key, default)
        start = self._source.find(b'\n    "%s": ' % key.encode(), self._start, self._end)
        if start < 0:
            return default
        start += len(key) + 9
        line = self._source[start : self._source.index(b"\n", start)]
        if line[:1] in b"{[":
            return self._all().get(key, default)
        try:
            return json.loads(line.removesuffix(b","))
        except ValueError:
            return self._all().get(key, default)

    def _all(self) -> Mapping[str, object]:
        if self._values is None:
            text = self.text
            try:
                value = json.loads(text.decode("utf-8", "surrogateescape"))
                self._values = value if isinstance(value, dict) else {}
            except (ValueError, RecursionError):
                self._values = dict(_salvaged(text))
        return self._values


def _salvaged(text: bytes) -> Iterator[tuple[str, object]]:
    """Plain fields of a damaged entry, line by line: its session must not be lost with it."""
    for line in text.split(b"\n"):
        if not line.startswith(b'    "'):
            continue
        try:
            found = json.loads(b"{%s}" % line.removesuffix(b","))
        except ValueError:
            continue
        yield from found.items()


def render(new: Mapping[str, object], old: Mapping[str, object], old_text: bytes | None) -> bytes:
    """An entry as it stands in the file: fields that `old` has too keep the bytes of `old_text`."""
    spans = _spans(old_text) if old_text is not None else {}
    members = []
    for name, value in new.items():
        kept = spans.get(name) if name in old and _same(value, old[name]) else None
        text = kept if kept is not None else to_pretty(value).replace(b"\n", b"\n    ")
        members.append(to_pretty(name) + b": " + text)
    return b"{\n    " + b",\n    ".join(members) + b"\n  }" if members else b"{}"


def _same(value: object, old: object) -> bool:
    if value is old:
        return True
    plain = isinstance(value, str | int | float | bool)
    return plain and type(value) is type(old) and value == old


def _spans(text: bytes) -> dict[str, bytes]:
    """The text of each field's value, in any layout; empty when the entry is damaged."""
    source = text.decode("utf-8", "surrogateescape")
    spans: dict[str, bytes] = {}
    at = _skip(source, 0) + 1
    try:
        while source[at : at + 1]:
            at = _skip(source, at)
            if source[at] == "}":
                return spans
            name, at = _DECODER.raw_decode(source, at)
            start = _skip(source, _skip(source, at) + 1)
            _, at = _DECODER.raw_decode(source, start)
            spans[name] = source[start:at].encode("utf-8", "surrogateescape")
            at = _skip(source, at)
            at += source[at] == ","
    except (ValueError, RecursionError, IndexError):
        return {}
    return spans


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _SPACE:
        at += 1
    return at
