"""What a body was made of: its parts in wire order, their texts, and the exact bytes again.

Blocking: on the database's thread, or in `claw`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.trace.bodies import Numbers, numbers_of
from claw_engine.trace.reader import Found, UnknownTrace
from claw_engine.trace.schema import StoreDamaged, unpacked

if TYPE_CHECKING:
    import sqlite3

AT_ONCE = 500
"""Rows asked for by number in one statement."""
ENVELOPE = "envelope"


class BodyDiffers(StoreDamaged):
    """A body that was put together again is not what was sent."""


class StoredPart(Struct, frozen=True):
    """A part of a body: bytes `start:end`, and the number and hash of its text."""

    id: str
    kind: str
    name: str
    source: str
    start: int
    end: int
    raw: bool
    tokens: int
    blob: int
    hash: bytes

    @property
    def bytes(self) -> int:
        return self.end - self.start


class _Piece(Struct, frozen=True):
    size: int
    glue: bytes
    parts: tuple[StoredPart, ...]
    """Counted from the piece's own beginning."""


class Contents(Struct, frozen=True):
    """The parts of a body in wire order; `pieces` are the numbers it is made of."""

    parts: tuple[StoredPart, ...]
    pieces: Numbers
    ends: tuple[int, ...]
    """Where each piece ends in the body."""

    @property
    def bytes(self) -> int:
        return self.ends[-1] if self.ends else 0

    @property
    def envelope(self) -> int:
        """Bytes that belong to no part."""
        return self.bytes - sum(part.bytes for part in self.parts)


def contents(db: sqlite3.Connection, found: Found, ratio: float | None = None) -> Contents:
    """What the call's body was made of; tokens drawn by its own ratio, or by another call's, to be
    comparable. Raises StoreDamaged."""
    drawn = found.record.ratio if ratio is None else ratio
    numbers, pieces = _pieces(db, found)
    parts: list[StoredPart] = []
    ends: list[int] = []
    base = 0
    for number in numbers:
        piece = pieces[number]
        for part in piece.parts:
            parts.append(  # noqa: PERF401 - two levels
                StoredPart(
                    part.id,
                    part.kind,
                    part.name,
                    part.source,
                    base + part.start,
                    base + part.end,
                    part.raw,
                    round(part.tokens * drawn),
                    part.blob,
                    part.hash,
                )
            )
        base += piece.size
        ends.append(base)
    return Contents(tuple(parts), numbers, tuple(ends))


def body(db: sqlite3.Connection, found: Found) -> bytes:
    """The exact bytes that were sent. Raises BodyDiffers when they cannot be had any more."""
    numbers, pieces = _pieces(db, found)
    data = _blobs(db, {part.blob for piece in pieces.values() for part in piece.parts})
    out: list[bytes] = []
    for number in numbers:
        piece, end, glued = pieces[number], 0, 0
        for part in piece.parts:
            width = part.start - end
            out += (piece.glue[glued : glued + width], data[part.blob])
            glued, end = glued + width, part.end
        out.append(piece.glue[glued:])
    made = b"".join(out)
    if sha256(made).hexdigest() != found.record.body_hash:
        raise BodyDiffers(f"the body of {found.record.id} is not what was sent")
    return made


def texts(db: sqlite3.Connection, parts: Iterable[StoredPart]) -> Iterator[tuple[StoredPart, str]]:
    """The text of each part, as it was before it was encoded for the wire."""
    rest = iter(parts)
    while some := list(islice(rest, AT_ONCE)):
        data = _blobs(db, {part.blob for part in some})
        for part in some:
            yield part, decoded(data[part.blob], raw=part.raw)


def part(known: Contents, part_id: str) -> tuple[int, StoredPart]:
    """A part by its id, with its place. Raises UnknownTrace."""
    for place, one in enumerate(known.parts):
        if one.id == part_id:
            return place, one
    raise UnknownTrace(f"The call has no part {part_id}.", hint="trace.call names its parts.")


def decoded(data: bytes, *, raw: bool) -> str:
    """The text that encoded bytes stand for."""
    if raw:
        return data.decode("utf-8")
    text: str = json.loads(b'"' + data + b'"')
    return text


def _pieces(db: sqlite3.Connection, found: Found) -> tuple[Numbers, dict[int, _Piece]]:
    row = db.execute(
        "SELECT l.pieces, c.prefix, c.suffix, c.middle FROM calls c JOIN lists l ON l.n = c.list"
        " WHERE c.n = ?",
        (found.n,),
    ).fetchone()
    if row is None:
        raise UnknownTrace(f"Call {found.record.id} was thrown away meanwhile.")
    numbers = numbers_of(*row)
    heads: dict[int, tuple[int, bytes]] = {}
    parts: dict[int, list[StoredPart]] = {}
    for marks, some in _asked(sorted(set(numbers))):
        for n, size, glue in db.execute(
            f"SELECT n, size, glue FROM pieces WHERE n IN ({marks})", some
        ):
            heads[n] = (size, glue)
        for piece, *part_row in db.execute(
            "SELECT p.piece, p.id, p.kind, p.name, p.source, p.start, p.stop, p.raw, p.tokens,"
            " p.blob, b.hash FROM parts p JOIN blobs b ON b.n = p.blob"
            f" WHERE p.piece IN ({marks}) ORDER BY p.piece, p.place",
            some,
        ):
            parts.setdefault(piece, []).append(StoredPart(*part_row))
    if len(heads) != len(set(numbers)):
        raise BodyDiffers(f"pieces of {found.record.id} are missing")
    return numbers, {
        n: _Piece(size, glue, tuple(parts.get(n, ()))) for n, (size, glue) in heads.items()
    }


def _blobs(db: sqlite3.Connection, numbers: Iterable[int]) -> Mapping[int, bytes]:
    found: dict[int, bytes] = {}
    for marks, some in _asked(sorted(numbers)):
        rows = db.execute(f"SELECT n, data FROM blobs WHERE n IN ({marks})", some)
        found.update((n, unpacked(data)) for n, data in rows)
    return found


def _asked(numbers: Sequence[int]) -> Iterator[tuple[str, Sequence[int]]]:
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        yield ",".join("?" * len(some)), some
