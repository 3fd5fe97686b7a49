"""JSON5 text → plain values, or a finding that says where it breaks.

Numbers that are not finite are taken out and reported: no limit of ours can be Infinity.
"""

from __future__ import annotations

import errno
import math
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from claw_engine.config.problems import KeyPath, Problem, ProblemKind

if TYPE_CHECKING:
    import os

    import pyjson5

    from claw_engine.config.spans import SpanMap

# The scanner (claw_engine.config.spans) is imported where something is to be reported: a clean
# file does not pay for it.

MAX_DEPTH = 200
"""Deepest nesting of objects and lists."""

JsonObject = dict[str, object]

_NEAR = re.compile(r"near (\d+)")


class Reader(Protocol):
    """What the disk lends: how a file is read."""

    def read_bytes(self, path: Path, /) -> bytes: ...

    def stat(self, path: Path, /) -> os.stat_result: ...


MAX_BYTES = 2 * 1024 * 1024
"""Of one configuration file."""


def read_plain(reader: Reader, path: Path) -> bytes:
    """The bytes of a regular file of at most 2 MiB; anything else is refused before it is opened.

    A pipe would keep the start waiting for ever, a device may have no end. Raises OSError.
    """
    info = reader.stat(path)
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    if info.st_size > MAX_BYTES:
        raise OSError(errno.EFBIG, "it is larger than 2 MiB", str(path))
    return reader.read_bytes(path)


class Document(Struct):
    """One file's text. `mount` is where an included file sits in the whole; spans come lazily."""

    file: str
    text: str
    mount: KeyPath = ()
    _spans: SpanMap | None = None

    @property
    def spans(self) -> SpanMap:
        if self._spans is None:
            from claw_engine.config.spans import ScanError, SpanMap, scan

            try:
                self._spans = scan(self.text)
            except ScanError:
                self._spans = SpanMap(self.text)
        return self._spans


class SyntaxProblem(Exception):
    """The text cannot be read; `problem` says where. Never leaves this room."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def decode_text(data: bytes, file: str) -> str:
    """UTF-8 (a byte order mark is allowed). Raises SyntaxProblem."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        from claw_engine.config.spans import line_column

        head = data[: error.start].decode("utf-8", "replace")
        line, column = line_column(head, len(head))
        raise SyntaxProblem(
            Problem(ProblemKind.SYNTAX, (), "not UTF-8 text", file, line, column, fatal=True)
        ) from error


def parse(document: Document) -> JsonObject:
    """The document's object; an empty file is an empty object. Raises SyntaxProblem."""
    if not document.text.strip():
        return {}
    import pyjson5  # a start without a file needs no parser

    try:
        value = pyjson5.decode(document.text, maxdepth=MAX_DEPTH)
    except pyjson5.Json5DecoderException as error:
        raise SyntaxProblem(_explain(document, error)) from error
    if not isinstance(value, dict):
        raise SyntaxProblem(
            _syntax(document, "the file must hold one object: { … }", _first(document.text))
        )
    return value


def _first(text: str) -> int:
    return len(text) - len(text.lstrip())


def _explain(document: Document, error: pyjson5.Json5DecoderException) -> Problem:
    """Our scanner's words where the structure breaks, else the parser's own."""
    if "No JSON data" in str(error):
        return _syntax(document, "the file holds only comments: write {} for defaults", 0)
    from claw_engine.config.spans import ScanError, scan

    try:
        scan(document.text)
    except ScanError as found:
        return _syntax(document, str(found), found.offset)
    near = _NEAR.search(str(error))
    offset = int(near.group(1)) - 1 if near else 0
    return _syntax(document, "this is not a value JSON5 knows (a string needs quotes)", offset)


def _syntax(document: Document, message: str, offset: int) -> Problem:
    from claw_engine.config.spans import line_column

    line, column = line_column(document.text, offset)
    return Problem(
        ProblemKind.SYNTAX, document.mount, message, document.file, line, column, fatal=True
    )


def take_out_non_finite(value: object) -> tuple[object, tuple[KeyPath, ...]]:
    """`value` without Infinity and NaN, and the paths where they stood."""
    found: list[KeyPath] = []
    return _without(value, (), found), tuple(found)


def _without(value: object, path: KeyPath, found: list[KeyPath]) -> object:
    if isinstance(value, dict):
        kept = {key: _without(item, (*path, key), found) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not _GONE}
    if isinstance(value, list):
        items = [_without(item, (*path, at), found) for at, item in enumerate(value)]
        return [item for item in items if item is not _GONE]
    if isinstance(value, float) and not math.isfinite(value):
        found.append(path)
        return _GONE
    return value


_GONE = object()
