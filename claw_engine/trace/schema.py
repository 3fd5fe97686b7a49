"""The tables, and what a file from an engine that died needs at opening.

runs ─ calls ─ lists     which pieces made a body: a stretch of a list, and what differs
                pieces   bytes between parts, and where parts stand ─ parts ─ blobs (text, once)
runs ─ events            steps as the live trace told them, some together
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from claw_engine.errors import ClawError

if TYPE_CHECKING:
    import sqlite3

VERSION = 2
COMPRESSED_FROM = 512
"""Bytes; shorter ones do not gain."""

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session_key TEXT NOT NULL,
  agent_id TEXT NOT NULL DEFAULT '', parent_id TEXT, answered_by TEXT,
  source TEXT NOT NULL DEFAULT '', cause TEXT NOT NULL DEFAULT '', title TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT 'running',
  stop_reason TEXT NOT NULL DEFAULT '', started_ms INTEGER NOT NULL, ended_ms INTEGER,
  queue_ms INTEGER NOT NULL DEFAULT 0, parked_ms INTEGER NOT NULL DEFAULT 0,
  parked_since INTEGER, tools INTEGER NOT NULL DEFAULT 0, life INTEGER NOT NULL DEFAULT 1,
  error TEXT);
CREATE INDEX IF NOT EXISTS runs_started ON runs (started_ms);
CREATE INDEX IF NOT EXISTS runs_of_session ON runs (session_key, n);
CREATE INDEX IF NOT EXISTS runs_open ON runs (n) WHERE status = 'running';
CREATE TABLE IF NOT EXISTS calls (
  n INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
  label TEXT NOT NULL, life INTEGER NOT NULL, session_key TEXT NOT NULL, agent_id TEXT NOT NULL,
  seq INTEGER NOT NULL, cause TEXT NOT NULL, parent_id TEXT, model TEXT NOT NULL,
  provider TEXT NOT NULL, api TEXT NOT NULL, attempt INTEGER NOT NULL, started_ms INTEGER NOT NULL,
  first_token_ms INTEGER, ended_ms INTEGER, queue_ms INTEGER NOT NULL, parked_ms INTEGER NOT NULL,
  status TEXT NOT NULL DEFAULT 'running', error TEXT, finish TEXT, body_bytes INTEGER NOT NULL,
  body_hash BLOB NOT NULL, estimated_tokens INTEGER NOT NULL, input INTEGER, output INTEGER,
  cache_read INTEGER, cache_write INTEGER, cost REAL, answer BLOB,
  list INTEGER NOT NULL REFERENCES lists (n), prefix INTEGER NOT NULL, suffix INTEGER NOT NULL,
  middle BLOB NOT NULL, ratio REAL NOT NULL DEFAULT 1.0);
CREATE INDEX IF NOT EXISTS calls_run ON calls (run, label);
CREATE INDEX IF NOT EXISTS calls_session ON calls (session_key, n);
CREATE INDEX IF NOT EXISTS calls_list ON calls (list);
CREATE INDEX IF NOT EXISTS calls_started ON calls (started_ms);
CREATE INDEX IF NOT EXISTS calls_open ON calls (n) WHERE status = 'running';
CREATE TABLE IF NOT EXISTS lists (n INTEGER PRIMARY KEY, pieces BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS pieces (
  n INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, glue BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS parts (
  piece INTEGER NOT NULL REFERENCES pieces (n) ON DELETE CASCADE, place INTEGER NOT NULL,
  id TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, source TEXT NOT NULL,
  blob INTEGER NOT NULL REFERENCES blobs (n), start INTEGER NOT NULL, stop INTEGER NOT NULL,
  raw INTEGER NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (piece, place)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS parts_blob ON parts (blob);
CREATE TABLE IF NOT EXISTS blobs (
  n INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS events (
  n INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (n) ON DELETE CASCADE,
  data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS events_run ON events (run);
"""


def prepare(connection: sqlite3.Connection) -> None:
    """Make the tables; what a dead engine left running is marked. Raises the module's `Error`."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise NewerStore(version)
    if version == 1:  # times the estimate was not yet measured against the provider's counts
        connection.execute("ALTER TABLE calls ADD COLUMN ratio REAL NOT NULL DEFAULT 1.0")
    connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")
    connection.executescript(
        "BEGIN; UPDATE calls SET status = 'interrupted' WHERE status = 'running';"
        "UPDATE runs SET status = 'interrupted', parked_since = NULL WHERE status = 'running';"
        "COMMIT;"
    )


def touch(connection: sqlite3.Connection) -> None:
    """Write a page that says what it said, within the caller's transaction. Raises the module's
    `Error` where nothing can be written."""
    connection.execute(f"PRAGMA user_version={VERSION}")


class NewerStore(Exception):
    """A later version of this program made the file; it is left as it is."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the trace store has version {version}, this program knows {VERSION}")


class StoreDamaged(ClawError):
    """What is stored contradicts itself."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"The trace store is damaged: {what}.",
            hint="Stop the engine and move trace/trace.db away: a new one is begun.",
        )


_PLAIN, _ZLIB = b"\0", b"\1"


def packed(data: bytes) -> bytes:
    """Bytes as a blob keeps them: the first byte says how."""
    if len(data) >= COMPRESSED_FROM:
        small = zlib.compress(data, 1)
        if len(small) < len(data) * 0.9:
            return _ZLIB + small
    return _PLAIN + data


def unpacked(blob: bytes) -> bytes:
    """What was packed. Raises StoreDamaged."""
    if blob[:1] == _ZLIB:
        try:
            return zlib.decompress(blob[1:])
        except zlib.error as error:
            raise StoreDamaged(f"a blob cannot be unpacked: {error}") from error
    if blob[:1] != _PLAIN:
        raise StoreDamaged("a blob has no known form")
    return blob[1:]
