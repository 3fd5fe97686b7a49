"""What is too old goes, and above a size the oldest goes first. Runs go whole, in slices.

Texts and pieces are shared between runs: they go when no body that is left uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.trace.bodies import used_numbers

if TYPE_CHECKING:
    import sqlite3

DAY_MS = 24 * 3600 * 1000
RUNS_A_SLICE = 200
KEPT_SHARE = 0.9
"""Of the size limit: what is left after a sweep by size, so that it need not happen every time."""


class Limits(Struct, frozen=True):
    """Runs that began before `oldest_ms` go; `most_bytes` is the size of the file."""

    oldest_ms: int
    most_bytes: int


class Swept(Struct, frozen=True):
    """What one slice threw away; `runs` 0: nothing is left to do."""

    runs: int = 0
    bytes: int = 0


def sweep(db: sqlite3.Connection, limits: Limits) -> Swept:
    """One slice. Runs that go on are kept. Blocking."""
    before = used_bytes(db)
    old = db.execute(
        "SELECT n FROM runs WHERE started_ms < ? AND status != 'running' ORDER BY n LIMIT ?",
        (limits.oldest_ms, RUNS_A_SLICE),
    ).fetchall()
    if not old and before > limits.most_bytes:
        count = db.execute("SELECT count(*) FROM runs").fetchone()[0]
        # About as many as the size needs: every slice costs a look at what is left.
        too_much = 1 - KEPT_SHARE * limits.most_bytes / before
        many = max(1, min(RUNS_A_SLICE, int(count * too_much)))
        old = db.execute(
            "SELECT n FROM runs WHERE status != 'running' ORDER BY started_ms, n LIMIT ?", (many,)
        ).fetchall()
    if not old:
        return Swept()
    db.execute("BEGIN IMMEDIATE")
    try:
        db.executemany("DELETE FROM runs WHERE n = ?", old)
        _unused(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("PRAGMA incremental_vacuum").fetchall()
    return Swept(len(old), max(0, before - used_bytes(db)))


def used_bytes(db: sqlite3.Connection) -> int:
    """What the database holds, without pages that are free."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _unused(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM lists WHERE n NOT IN (SELECT list FROM calls)")
    lists = db.execute(
        "SELECT l.pieces, max(c.prefix), max(c.suffix) FROM calls c JOIN lists l ON l.n = c.list"
        " GROUP BY l.n"
    )
    used = used_numbers(lists, (row[0] for row in db.execute("SELECT middle FROM calls")))
    gone = [row for row in db.execute("SELECT n FROM pieces") if row[0] not in used]
    db.executemany("DELETE FROM pieces WHERE n = ?", gone)
    db.execute("DELETE FROM blobs WHERE n NOT IN (SELECT blob FROM parts)")
