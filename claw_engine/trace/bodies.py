"""Bodies as lists of pieces that are stored once, each list as a difference to an earlier one.

A long talk sends the same thousand pieces again and again: what a call adds is a few numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from claw_engine.trace.noted import Change, Sizes
from claw_engine.trace.ports import PieceLike
from claw_engine.trace.schema import StoreDamaged, packed, unpacked

if TYPE_CHECKING:
    import sqlite3

HASH_BYTES = 16
MIDDLE_MOST = 256
"""Numbers that a difference may have before a new whole list is due."""
KNOWN_MOST = 50_000
SESSIONS_MOST = 64

Numbers: TypeAlias = "array[int]"


class Kept(Struct):
    """Numbers of a session's newest body, and the whole list that differences are made to."""

    numbers: Numbers
    list_id: int
    base: Numbers


class Bodies(Struct):
    """The writer's memory of what is stored; belongs to one connection and its thread."""

    sessions: dict[str, Kept] = field(default_factory=dict)
    pieces: dict[bytes, int] = field(default_factory=dict)

    def add(
        self, db: sqlite3.Connection, session: str, change: Change
    ) -> tuple[int, int, int, bytes]:
        """Store what is new; the list, how much of its two ends, and what stands between."""
        kept = self.sessions.pop(session, None)
        old, prefix, suffix = array("I"), 0, 0
        if kept is not None:  # else it was forgotten meanwhile, and all of it is looked up
            old, prefix, suffix = kept.numbers, change.prefix, change.suffix
        numbers = old[:prefix]
        for piece in change.pieces[prefix : len(change.pieces) - suffix]:
            numbers.append(self._number(db, piece, change.sizes))
        if suffix:
            numbers.extend(old[-suffix:])
        while len(self.sessions) >= SESSIONS_MOST:
            self.sessions.pop(next(iter(self.sessions)))
        if kept is not None:
            prefix, suffix = _ends(kept.base, numbers)
            middle = numbers[prefix : len(numbers) - suffix]
            if len(middle) <= MIDDLE_MOST:
                self.sessions[session] = Kept(numbers, kept.list_id, kept.base)
                return kept.list_id, prefix, suffix, middle.tobytes()
        row = db.execute("INSERT INTO lists (pieces) VALUES (?)", (packed(numbers.tobytes()),))
        list_id = int(row.lastrowid or 0)
        self.sessions[session] = Kept(numbers, list_id, numbers)
        return list_id, len(numbers), 0, b""

    def forget(self) -> None:
        """Nothing is known to be stored any more: something was deleted, or taken back."""
        self.sessions.clear()
        self.pieces.clear()

    def _number(self, db: sqlite3.Connection, piece: PieceLike, sizes: Sizes) -> int:
        key = _key(piece)
        known = self.pieces.get(key)
        if known is not None:
            return known
        row = db.execute("SELECT n FROM pieces WHERE key = ?", (key,)).fetchone()
        number = row[0] if row is not None else _stored(db, key, piece, sizes)
        if len(self.pieces) >= KNOWN_MOST:
            self.pieces.clear()
        self.pieces[key] = number
        return int(number)


def _key(piece: PieceLike) -> bytes:
    made = sha256(piece.data)
    for span in piece.spans:
        made.update(f"\0{span.part_id}\0{span.start}\0{span.end}".encode("utf-8", "replace"))
    for part in piece.parts:
        said = f"\0{part.id}\0{part.kind}\0{part.name}\0{part.source}"
        made.update(said.encode("utf-8", "replace"))
    return made.digest()[:HASH_BYTES]


def _stored(db: sqlite3.Connection, key: bytes, piece: PieceLike, sizes: Sizes) -> int:
    data, tokens = piece.data, sizes(piece) if piece.parts else {}
    by_id = {part.id: part for part in piece.parts}
    glue: list[bytes] = []
    rows = []
    end = 0
    for span in piece.spans:
        part = by_id.get(span.part_id or "")
        if part is None:
            continue
        glue.append(data[end : span.start])
        end = span.end
        rows.append((
            plain(part.id), part.kind.value, plain(part.name), plain(part.source),
            _blob(db, data[span.start : span.end]), span.start, span.end,
            int(span.encoding == "raw"), tokens.get(part.id, 0),
        ))  # fmt: skip
    glue.append(data[end:])
    number = int(
        db.execute(
            "INSERT INTO pieces (key, size, glue) VALUES (?, ?, ?)",
            (key, len(data), b"".join(glue)),
        ).lastrowid
        or 0
    )
    db.executemany(
        "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(number, place, *row) for place, row in enumerate(rows)],
    )
    return number


def _blob(db: sqlite3.Connection, data: bytes) -> int:
    digest = sha256(data).digest()[:HASH_BYTES]
    # Nearly all are new: an old text stands in an old piece, which is known.
    made = db.execute(
        "INSERT INTO blobs (hash, data) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING",
        (digest, packed(data)),
    )
    if made.rowcount > 0:
        return int(made.lastrowid or 0)
    return int(db.execute("SELECT n FROM blobs WHERE hash = ?", (digest,)).fetchone()[0])


def plain(text: str) -> str:
    """The text as UTF-8 can hold it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _ends(old: Numbers, new: Numbers) -> tuple[int, int]:
    """How many numbers at the beginning and at the end are the same."""
    low, high = 0, min(len(old), len(new))
    most = high
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    tail = 0
    while tail < most - low and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return low, tail


def numbers_of(whole: bytes, prefix: int, suffix: int, middle: bytes) -> Numbers:
    """The numbers of a body from its list and its difference. Raises StoreDamaged."""
    base = array("I", unpacked(whole))
    if prefix + suffix > len(base):
        raise StoreDamaged("a list is too short")
    numbers = base[:prefix]
    numbers.frombytes(middle)
    if suffix:
        numbers.extend(base[-suffix:])
    return numbers


def used_numbers(lists: Iterable[tuple[bytes, int, int]], middles: Iterable[bytes]) -> set[int]:
    """Every number that a body needs: of each list the longest beginning and end that a difference
    takes of it, and what stands between."""
    used: set[int] = set()
    for whole, prefix, suffix in lists:
        base = array("I", unpacked(whole))
        used.update(base[:prefix])
        if suffix:
            used.update(base[-suffix:])
    for middle in middles:
        used.update(array("I", middle))
    return used
