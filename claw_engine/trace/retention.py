"""What is too old goes, and above a size the oldest goes first. Runs go whole.

Texts and pieces are shared between runs: they go when no body that is left uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.storage.sqlite import transaction
from claw_engine.trace.bodies import used_numbers

if TYPE_CHECKING:
    import sqlite3

DAY_MS = 24 * 3600 * 1000
RUNS_AT_ONCE = 200
"""Runs that one transaction deletes: the log grows by it."""
KEPT_SHARE = 0.9
"""Of the size limit: what is left after a sweep by size, so that it need not happen every time."""


class Limits(Struct, frozen=True):
    """Runs that began before `oldest_ms` go; `most_bytes` is the size of the file."""

    oldest_ms: int
    most_bytes: int


class Swept(Struct, frozen=True):
    """What was thrown away."""

    runs: int = 0
    bytes: int = 0


def sweep(db: sqlite3.Connection, limits: Limits) -> Swept:
    """Throw away what is beyond the limits; runs that go on are kept. Blocking."""
    before, gone = used_bytes(db), 0
    while numbers := _beyond(db, limits):
        for start in range(0, len(numbers), RUNS_AT_ONCE):
            _delete(db, numbers[start : start + RUNS_AT_ONCE])
        # Once for all of them: it looks at everything that is left.
        _collect(db)
        gone += len(numbers)
    if gone:
        db.execute("PRAGMA incremental_vacuum").fetchall()
    return Swept(gone, max(0, before - used_bytes(db)))


def _beyond(db: sqlite3.Connection, limits: Limits) -> list[tuple[int]]:
    """Numbers of runs that are too old; without such ones, of as many as are too much."""
    old = db.execute(
        "SELECT n FROM runs WHERE started_ms < ? AND status != 'running'", (limits.oldest_ms,)
    ).fetchall()
    size = used_bytes(db)
    if old or size <= limits.most_bytes:
        return old
    count = db.execute("SELECT count(*) FROM runs").fetchone()[0]
    many = max(1, int(count * (1 - KEPT_SHARE * limits.most_bytes / size)))
    return db.execute(
        "SELECT n FROM runs WHERE status != 'running' ORDER BY started_ms, n LIMIT ?", (many,)
    ).fetchall()


def _delete(db: sqlite3.Connection, numbers: list[tuple[int]]) -> None:
    transaction(db, lambda db: db.executemany("DELETE FROM runs WHERE n = ?", numbers))


def used_bytes(db: sqlite3.Connection) -> int:
    """What the database holds, without pages that are free."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _collect(db: sqlite3.Connection) -> None:
    """What no body uses any more goes too."""
    transaction(db, _delete_unused)


def _delete_unused(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM lists WHERE n NOT IN (SELECT list FROM calls)")
    lists = db.execute(
        "SELECT l.pieces, max(c.prefix), max(c.suffix) FROM calls c JOIN lists l ON l.n = c.list"
        " GROUP BY l.n"
    )
    used = used_numbers(lists, (row[0] for row in db.execute("SELECT middle FROM calls")))
    gone = [row for row in db.execute("SELECT n FROM pieces") if row[0] not in used]
    db.executemany("DELETE FROM pieces WHERE n = ?", gone)
    db.execute("DELETE FROM blobs WHERE n NOT IN (SELECT blob FROM parts)")
