"""Where each value of a JSON5 text stands: key path → offsets, line and column.

Reads structure only; values are decoded by pyjson5. Used to say where a problem is and to edit a
file without losing its comments. Knows no key of ours. Off the start path: called only when
there is something to report or to write.
"""

from __future__ import annotations

import re

import pyjson5
from msgspec import Struct, field

from claw_engine.config.parse import MAX_DEPTH
from claw_engine.config.problems import KeyPath

_SKIP = re.compile(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*+", re.DOTALL)
_STRING = re.compile(r"""(["'])(?:\\(?:\r\n|.)|(?!\1)[^\\\n\r])*+\1""", re.DOTALL)
_BARE = re.compile(r"""[^\s\ufeff,:\[\]{}"'/]+""")
_CLOSERS = {"{": "}", "[": "]"}
_NAMES = {"{": "object", "[": "list"}


class ScanError(ValueError):
    """The text is not well-formed; `offset` (characters) is where."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class Span(Struct, frozen=True):
    """Offsets in characters. `key_start` is the key's first character (the value's in a list).

    `children` are the steps below, in the order of the text (a repeated key once: the last wins).
    """

    start: int
    end: int
    key_start: int
    children: tuple[str | int, ...] = ()


class SpanMap(Struct, frozen=True):
    """All spans of one text."""

    text: str
    spans: dict[KeyPath, Span] = field(default_factory=dict)

    def get(self, path: KeyPath) -> Span | None:
        return self.spans.get(path)

    def locate(self, path: KeyPath) -> tuple[int, int]:
        """Line and column (from 1) of the key, or of the nearest ancestor that is there."""
        known = path
        while known and known not in self.spans:
            known = known[:-1]
        span = self.spans.get(known)
        return line_column(self.text, span.key_start if span else 0)


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a character offset; CR, LF and CRLF end lines."""
    head = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return head.count("\n") + 1, len(head) - (head.rfind("\n") + 1) + 1


def skip_blank(text: str, offset: int) -> int:
    """The offset after white space and comments."""
    match = _SKIP.match(text, offset)
    return match.end() if match else offset


def scan(text: str) -> SpanMap:
    """Map a JSON5 document. Raises ScanError where the structure breaks."""
    scanner = _Scanner(text)
    scanner.document()
    return SpanMap(text, scanner.spans)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.spans: dict[KeyPath, Span] = {}

    def document(self) -> None:
        self._blank()
        self._value((), self.at)
        self._blank()
        if self.at < len(self.text):
            raise ScanError("there is more text after the end of the document", self.at)

    def _blank(self) -> None:
        self.at = skip_blank(self.text, self.at)
        if self.text.startswith("/*", self.at):
            raise ScanError("the comment that starts here never ends", self.at)

    def _value(self, path: KeyPath, key_start: int) -> None:
        if len(path) > MAX_DEPTH:
            raise ScanError(f"nested deeper than {MAX_DEPTH} levels", self.at)
        start = self.at
        children: tuple[str | int, ...] = ()
        if self.text[start : start + 1] in _CLOSERS:
            children = self._container(path)
        else:
            self._scalar("a value")
        self.spans[path] = Span(start, self.at, key_start, children)

    def _container(self, path: KeyPath) -> tuple[str | int, ...]:
        opened = self.at
        opener = self.text[opened]
        closer = _CLOSERS[opener]
        children: dict[str | int, None] = {}
        self.at += 1
        while not self._closed(opener, opened):
            key_start = self.at
            step = self._key() if opener == "{" else len(children)
            if step in children:
                self._forget((*path, step))
            children[step] = None
            self._value((*path, step), key_start)
            self._blank()
            here = self.text[self.at : self.at + 1]
            if here == ",":
                self.at += 1
            elif here and here != closer:
                raise ScanError(f"a comma or {closer} is missing before this", self.at)
        return tuple(children)

    def _closed(self, opener: str, opened: int) -> bool:
        self._blank()
        if self.at >= len(self.text):
            raise ScanError(f"the {_NAMES[opener]} opened here is never closed", opened)
        if self.text[self.at] != _CLOSERS[opener]:
            return False
        self.at += 1
        return True

    def _key(self) -> str:
        start = self.at
        self._scalar("a key")
        end = self.at
        self._blank()
        if self.text[self.at : self.at + 1] != ":":
            raise ScanError("a colon is missing after the key", end)
        self.at += 1
        self._blank()
        return _decode_key(self.text[start:end], start)

    def _scalar(self, what: str) -> None:
        quoted = self.text[self.at : self.at + 1] in ('"', "'")
        match = (_STRING if quoted else _BARE).match(self.text, self.at)
        if match is None:
            problem = "the string that starts here never ends" if quoted else f"expected {what}"
            raise ScanError(problem, self.at)
        self.at = match.end()

    def _forget(self, path: KeyPath) -> None:
        for known in [known for known in self.spans if known[: len(path)] == path]:
            del self.spans[known]


def _decode_key(source: str, offset: int) -> str:
    if "\\" not in source:
        return source[1:-1] if source[0] in "\"'" else source
    try:
        return str(next(iter(pyjson5.decode("{" + source + ":0}"))))
    except pyjson5.Json5DecoderException as error:
        raise ScanError("this key has an escape that cannot be read", offset) from error
