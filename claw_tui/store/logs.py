"""The engine's log as the log view reads it: records, what a filter keeps, the window of the file
that is held. Values only; knows neither widgets nor the engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct, field

from claw_tui.store.wire import Json, flag, num, obj, text, texts

WINDOW = 5000
"""Records held at most; what goes out at one end is read again when it is wanted."""

LEVELS = ("trace", "debug", "info", "warn", "error", "fatal")
_RANK = {name: rank for rank, name in enumerate(LEVELS)}
_RANK |= {"warning": _RANK["warn"], "critical": _RANK["fatal"]}
SHOWN_LEVELS = ("", "info", "warn", "error")
"""What the level key goes through; empty: all of them."""

_KNOWN = ("ts", "time", "level", "logger", "name", "msg", "message", "_meta")


class Record(Struct, frozen=True):
    """One line. `at` is its time as it was written, ISO 8601, or empty."""

    at: str
    level: str
    logger: str
    message: str
    raw: str

    @property
    def rank(self) -> int:
        """Place among LEVELS; of a line without a level that of info: a filter for trouble
        leaves it out."""
        return _RANK.get(self.level, _RANK["info"])

    def fields(self) -> list[tuple[str, str]]:
        """Everything else that stands in the line, inner objects opened once."""
        data = _parsed(self.raw)
        out: list[tuple[str, str]] = []
        for name, value in data.items():
            if name in _KNOWN or name.isdigit():
                continue
            if isinstance(value, Mapping):
                out += [(f"{name}.{key}", _words(inner)) for key, inner in value.items()]
            else:
                out.append((name, _words(value)))
        return out


def record_from(raw: str) -> Record:
    """A line of our log, of OpenClaw's (numbered parts and `_meta`), or any other."""
    data = _parsed(raw)
    if not data:
        return Record("", "", "", raw, raw)
    meta = obj(data.get("_meta"))
    message = text(data, "msg") or text(data, "message")
    if not message and meta:
        parts = [data[key] for key in sorted((k for k in data if k.isdigit()), key=int)]
        message = " ".join(_words(part) for part in parts)
    return Record(
        text(data, "ts") or text(data, "time") or text(meta, "date"),
        (text(data, "level") or text(meta, "logLevelName")).lower(),
        text(data, "logger") or text(data, "name") or text(meta, "name"),
        message or raw,
        raw,
    )


def _parsed(raw: str) -> dict[str, object]:
    try:
        found = msgspec.json.decode(raw)
    except ValueError:  # no JSON, or cut in the middle
        return {}
    return found if isinstance(found, dict) else {}


def _words(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class Sieve(Struct, frozen=True):
    """What is shown: `!word` leaves out what has the word; `level` and worse."""

    needle: str = ""
    level: str = ""

    def keeps(self, record: Record) -> bool:
        if self.level and record.rank < _RANK[self.level]:
            return False
        inverse = self.needle.startswith("!")
        word = self.needle[1:].lower() if inverse else self.needle.lower()
        if not word:
            return True
        return (word in f"{record.logger} {record.message}".lower()) is not inverse

    @property
    def words(self) -> str:
        """For a title; empty when everything is shown."""
        parts = [f"/{self.needle}"] if self.needle else []
        parts += [f"{self.level} and worse"] if self.level else []
        return " · ".join(parts)

    def next_level(self) -> Sieve:
        place = (SHOWN_LEVELS.index(self.level) + 1) % len(SHOWN_LEVELS)
        return msgspec.structs.replace(self, level=SHOWN_LEVELS[place])


class Piece(Struct):
    """Lines as an answer brought them: bytes `start` to `end` of a file."""

    file: str
    start: int | None
    """None: the gateway does not say, nothing older can be asked for."""
    end: int
    lines: Sequence[str] = ()
    newest: bool = True
    reset: bool = False
    """Lines between the place that was asked for and these were left out."""


def tail_from(raw: Json) -> Piece:
    start = num(raw, "start") if "start" in raw else None
    left_out = flag(raw, "reset") or flag(raw, "truncated")
    lines = texts(raw, "lines")
    return Piece(text(raw, "file"), start, num(raw, "cursor"), lines, reset=left_out)


def page_from(raw: Json) -> Piece:
    lines, newest = texts(raw, "lines"), flag(raw, "newest") and num(raw, "end") >= num(raw, "size")
    return Piece(text(raw, "file"), num(raw, "start"), num(raw, "end"), lines, newest)


class _Span(Struct):
    file: str
    start: int | None
    end: int
    count: int


class LogWindow(Struct):
    """The records between two places of the log that the sieve kept. Bounded: what is added at one
    end pushes out at the other."""

    sieve: Sieve = field(default_factory=Sieve)
    records: list[Record] = field(default_factory=list)
    spans: deque[_Span] = field(default_factory=deque)
    began: bool = False
    """Whether nothing stands before it."""
    at_end: bool = False
    """Whether nothing stood after it when it was read."""
    scanned: int = 0
    """Lines that were looked at."""

    @property
    def top(self) -> tuple[str, int] | None:
        """File and byte where it begins; None while that is unknown."""
        first = self.spans[0] if self.spans else None
        return None if first is None or first.start is None else (first.file, first.start)

    @property
    def bottom(self) -> tuple[str, int]:
        last = self.spans[-1] if self.spans else None
        return ("", 0) if last is None else (last.file, last.end)

    def newer(self, piece: Piece, *, hold: bool = False) -> tuple[int, int]:
        """Add at the end: how many records came, and how many went out at the top. With `hold`
        nothing goes out: what has no room is left for later, and then it comes to nothing."""
        found = self._kept(piece)
        if hold and len(self.records) + len(found) > WINDOW:
            self.at_end = False
            return 0, 0
        self.records += found
        last = self.spans[-1] if self.spans else None
        if last is not None and not last.count and last.file == piece.file:
            last.end, last.count = piece.end, len(found)
        else:
            self.spans.append(_Span(piece.file, piece.start, piece.end, len(found)))
        self.at_end = piece.newest
        return len(found), self._out_at_top()

    def older(self, piece: Piece) -> int:
        """Add before the beginning: how many records came."""
        if not piece.lines and self.top == (piece.file, piece.start):
            self.began = True
            return 0
        found = self._kept(piece)
        self.records[:0] = found
        first = self.spans[0] if self.spans else None
        if first is not None and not first.count and first.file == piece.file:
            first.start, first.count = piece.start, len(found)
        else:
            self.spans.appendleft(_Span(piece.file, piece.start, piece.end, len(found)))
        self._out_at_end()
        return len(found)

    def _kept(self, piece: Piece) -> list[Record]:
        self.scanned += len(piece.lines)
        records = map(record_from, piece.lines)
        return [record for record in records if self.sieve.keeps(record)]

    def _out_at_top(self) -> int:
        gone = 0
        while len(self.records) - gone > WINDOW and len(self.spans) > 1:
            gone += self.spans.popleft().count
            self.began = False
        del self.records[:gone]
        return gone

    def _out_at_end(self) -> None:
        while len(self.records) > WINDOW and len(self.spans) > 1:
            gone = self.spans.pop().count
            if gone:
                del self.records[-gone:]
            self.at_end = False
