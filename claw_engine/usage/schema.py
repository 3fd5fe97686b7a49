"""The ledger's tables, what is written into it and summed from it. Blocking: for its thread.

SQLite and not a file of lines: sums for any day edge, time zone or clock jump are one statement
there, and folding old calls together is one transaction. A row is one call; calls older than
`FOLD_DAYS` are folded into one row a quarter of an hour, which every time zone's day edge respects.
`open` holds calls under way as they were estimated; what a dead engine left in it has been spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from claw_engine.usage.records import Spent, Sums

if TYPE_CHECKING:
    import sqlite3

FOLD_DAYS = 90
QUARTER_MS = 15 * 60 * 1000
DAY_MS = 24 * 60 * 60 * 1000

By: TypeAlias = Literal["session", "model", "cause", "agent"]

_SUMS = (
    "calls", "estimated", "unpriced", "input", "output", "cache_read", "cache_write", "total",
    "cost",
)  # fmt: skip
_SUMMED = ", ".join(f"SUM({name})" for name in _SUMS)
_WORDS = "session, session_id, agent, model, cause, status"

_TABLE = """
CREATE TABLE IF NOT EXISTS spent (
  at INTEGER NOT NULL, session TEXT NOT NULL, session_id TEXT NOT NULL, agent TEXT NOT NULL,
  run TEXT NOT NULL, call TEXT NOT NULL, model TEXT NOT NULL, cause TEXT NOT NULL,
  status TEXT NOT NULL, calls INTEGER NOT NULL, estimated INTEGER NOT NULL,
  unpriced INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
  cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, total INTEGER NOT NULL,
  cost REAL NOT NULL, folded INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS spent_at ON spent (at);
CREATE INDEX IF NOT EXISTS spent_session ON spent (session_id);
CREATE INDEX IF NOT EXISTS spent_key ON spent (session, at);
CREATE TABLE IF NOT EXISTS open (
  n INTEGER PRIMARY KEY, at INTEGER NOT NULL, session TEXT NOT NULL, session_id TEXT NOT NULL,
  agent TEXT NOT NULL, run TEXT NOT NULL, model TEXT NOT NULL, cause TEXT NOT NULL,
  unpriced INTEGER NOT NULL, input INTEGER NOT NULL, cost REAL NOT NULL
) STRICT;
"""
_INSERT = (
    "INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
)  # fmt: skip
_COUNT_OPEN = """
INSERT INTO spent
SELECT at, session, session_id, agent, run, '', model, cause, 'interrupted', 1, 1, unpriced, input,
  0, 0, 0, input, cost, 0
FROM open
"""
_FOLD = f"""
INSERT INTO spent
SELECT at / {QUARTER_MS} * {QUARTER_MS} AS quarter, session, session_id, agent, '', '', model,
  cause, status, {_SUMMED}, 1
FROM spent WHERE at < :before AND folded = 0 GROUP BY quarter, {_WORDS}
"""


class Point(Struct, frozen=True):
    """What was spent at a moment: one call, or a quarter of an hour of old ones."""

    at_ms: int
    sums: Sums


class Cell(Struct, frozen=True):
    """What one session spent on one model for one cause in a quarter of an hour."""

    at_ms: int
    session: str
    session_id: str
    agent: str
    model: str
    cause: str
    sums: Sums


def prepare(connection: sqlite3.Connection) -> None:
    """Make the table where it is missing."""
    connection.executescript(_TABLE)


def insert(connection: sqlite3.Connection, calls: Iterable[Spent]) -> None:
    """Add calls, within the caller's transaction."""
    connection.executemany(_INSERT, map(_row, calls))


def insert_open(connection: sqlite3.Connection, calls: Mapping[int, Spent]) -> None:
    """Note calls that go out, by their numbers, within the caller's transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO open VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (n, s.at_ms, s.session_key, s.session_id, s.agent_id, s.run_id, s.model, s.cause,
             int(s.cost is None), s.usage.input, s.cost or 0.0)
            for n, s in calls.items()
        ],
    )  # fmt: skip


def drop_open(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Calls that are under way no more, within the caller's transaction."""
    connection.executemany("DELETE FROM open WHERE n = ?", [(n,) for n in numbers])


def count_open(connection: sqlite3.Connection) -> None:
    """Count what a dead engine left under way, within the caller's transaction."""
    connection.execute(_COUNT_OPEN)
    connection.execute("DELETE FROM open")


def fold(connection: sqlite3.Connection, before_ms: int) -> None:
    """Fold calls from before a moment together, within the caller's transaction."""
    (last,) = connection.execute(
        "SELECT MIN(at) FROM spent WHERE at < ? AND folded = 0", (before_ms,)
    ).fetchone()
    if last is not None:
        connection.execute(_FOLD, {"before": before_ms})
        connection.execute("DELETE FROM spent WHERE at < ? AND folded = 0", (before_ms,))


def between(connection: sqlite3.Connection, start_ms: int, end_ms: int) -> Sums:
    """All that was spent in a time."""
    return _one(connection, "at >= ? AND at < ?", (start_ms, end_ms))


def of_session(connection: sqlite3.Connection, session_id: str) -> Sums:
    """All that a session's present life has spent."""
    return _one(connection, "session_id = ?", (session_id,))


def grouped(
    connection: sqlite3.Connection, by: By, start_ms: int, end_ms: int, session: str | None = None
) -> dict[str, Sums]:
    """Sums of a time by session key, model, cause or agent."""
    where, values = _where(start_ms, end_ms, session)
    rows = connection.execute(
        f"SELECT {by}, {_SUMMED} FROM spent WHERE {where} GROUP BY {by}", values
    )
    return {row[0]: Sums(*row[1:]) for row in rows}


def daily(
    connection: sqlite3.Connection, edges: Sequence[int], session: str | None = None
) -> list[Sums]:
    """Sums of the times between neighbouring `edges`, one pass."""
    out = [Sums() for _ in edges[1:]]
    if not out:
        return out
    where, values = _where(edges[0], edges[-1], session)
    rows = connection.execute(
        f"SELECT at / {QUARTER_MS} AS quarter, {_SUMMED} FROM spent WHERE {where} "
        "GROUP BY quarter ORDER BY quarter",
        values,
    )
    day = 0
    for row in rows:
        while row[0] * QUARTER_MS >= edges[day + 1]:
            day += 1
        out[day].merge(Sums(*row[1:]))
    return out


def cells(
    connection: sqlite3.Connection, start_ms: int, end_ms: int, session: str | None = None
) -> list[Cell]:
    """What was spent in a time, a quarter of an hour, session, model and cause each; oldest
    first."""
    where, values = _where(start_ms, end_ms, session)
    rows = connection.execute(
        f"SELECT at / {QUARTER_MS} * {QUARTER_MS} AS quarter, session, session_id, agent, model, "
        f"cause, {_SUMMED} FROM spent WHERE {where} "
        "GROUP BY quarter, session, session_id, agent, model, cause ORDER BY quarter",
        values,
    )
    return [
        Cell(at, key, session_id, agent, model, cause, Sums(*sums))
        for at, key, session_id, agent, model, cause, *sums in rows
    ]


def points(connection: sqlite3.Connection, session_id: str) -> list[Point]:
    """A session's calls, oldest first."""
    rows = connection.execute(
        f"SELECT at, {', '.join(_SUMS)} FROM spent WHERE session_id = ? ORDER BY at, rowid",
        (session_id,),
    )
    return [Point(row[0], Sums(*row[1:])) for row in rows]


def _where(start_ms: int, end_ms: int, session: str | None) -> tuple[str, tuple[object, ...]]:
    if session is None:
        return "at >= ? AND at < ?", (start_ms, end_ms)
    return "at >= ? AND at < ? AND session = ?", (start_ms, end_ms, session)


def _one(connection: sqlite3.Connection, where: str, values: tuple[object, ...]) -> Sums:
    row = connection.execute(f"SELECT {_SUMMED} FROM spent WHERE {where}", values).fetchone()
    return Sums(*(value or 0 for value in row))


def _row(spent: Spent) -> tuple[object, ...]:
    usage = spent.usage
    return (
        spent.at_ms, spent.session_key, spent.session_id, spent.agent_id, spent.run_id,
        spent.call_id, spent.model, spent.cause, spent.status, int(not spent.measured),
        int(spent.cost is None), usage.input, usage.output, usage.cache_read, usage.cache_write,
        usage.total, spent.cost or 0.0,
    )  # fmt: skip
