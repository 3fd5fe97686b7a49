"""The one door that opens SQLite: modes, write-ahead log, a torn file put aside, a thread each.

Imported by whoever opens a database, never at a start. A damaged file is renamed, never deleted.
Knows no table.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from aiosqlite.core import Connection

from claw_engine.disk import make_folders
from claw_engine.storage.errors import StateDiskError, StateDiskFull, disk_error
from claw_engine.storage.sqlite_driver import Driver, plain

T = TypeVar("T")

BUSY_MS = 5_000
"""Ms that a statement waits for another process."""
CACHE_KIB = 4_096
WAL_BYTES = 4 * 1024 * 1024
"""What is left of the write-ahead log after it was carried over."""

_CORRUPT = {11, 26}  # SQLITE_CORRUPT, SQLITE_NOTADB
_FULL, _IO, _READONLY, _CANTOPEN, _BUSY = 13, 10, 8, 14, 5
_MAGIC, _HEADER = b"SQLite format 3\0", 100
COMPANIONS = ("", "-wal", "-shm")
"""Suffixes of the files that make one database."""


class DatabaseDamaged(StateDiskError):
    """The file is no database, or its pages contradict each other."""

    retryable = False


class Database(Connection):
    """One connection and its thread; `kept` is where a damaged file was put at opening."""

    def __init__(self, connection: sqlite3.Connection, path: Path, kept: Path | None) -> None:
        super().__init__(lambda: connection, 64)
        # Closed or not, it must never keep a process from ending; a write-ahead log heals itself.
        self._thread.daemon = True
        self.path = path
        self.kept = kept

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` on the connection's thread, one after the other: one wait for any number of
        statements. Raises StateDiskError, DatabaseDamaged."""
        try:
            # aiosqlite's own way to its thread; its public calls make one hop a statement each.
            result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]
        except Exception as error:
            if (known := database_error(error, self.path)) is not None:
                raise known from error
            raise
        return result

    def __del__(self) -> None:
        """Quietly: whoever is dropped open was part of something that died, which SQLite mends."""
        if self._connection is not None:
            self.stop()

    async def shut(self) -> None:
        """Carry the write-ahead log over and close. Never raises."""
        with contextlib.suppress(Exception):  # what was written is safe either way
            await self.close()


async def open_database(
    path: Path, prepare: Callable[[sqlite3.Connection], None], driver: Driver | None = None
) -> Database:
    """Open or make `path`; `prepare` makes the tables, on a fresh file or an old one.

    A damaged file is put aside as `<name>.damaged-<n>` and a fresh one made. Raises NoSqlite,
    StateDiskError. Cancelled, it closes again what the thread was opening.
    """
    opening = asyncio.ensure_future(_open(path, prepare, driver or plain()))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):  # there is nothing to close, and nobody to tell
            await (await opening).shut()
        raise


def read_only(path: Path, driver: Driver | None = None) -> sqlite3.Connection:
    """A connection that cannot write, for a look without an engine. Blocking.

    Raises StateDiskError, DatabaseDamaged.
    """
    chosen = driver or plain()
    try:
        if not path.exists():
            raise FileNotFoundError(2, os.strerror(2), str(path))
        connection = chosen.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
    except OSError as error:
        raise disk_error(error, path) from error
    except Exception as error:
        known = database_error(error, path)
        raise known or error from error
    return connection


def transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """`work` as a whole or not at all. Blocking."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(Exception):  # SQLite has taken it back itself after some errors
            connection.execute("ROLLBACK")
        raise
    return result


def database_error(error: BaseException, path: Path) -> StateDiskError | None:
    """What an error of SQLite means for the operator; None if it is no such error.

    By its code: sqlean's and pysqlite3's classes are not those of `sqlite3`.
    """
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(code, int):
        return None
    code &= 0xFF
    if code in _CORRUPT:
        return DatabaseDamaged(f"{path} is damaged: {error}.", path=path)
    if code == _FULL:
        return StateDiskFull(
            f"The state disk is full: could not write {path}.", hint="Free some space.", path=path
        )
    words = {
        _IO: "The state disk reports input/output errors",
        _READONLY: "The file cannot be written",
        _CANTOPEN: "The file cannot be opened",
        _BUSY: "Another program keeps the file locked",
    }.get(code)
    return None if words is None else StateDiskError(f"{words}: {path} ({error}).", path=path)


class _Opening:
    """A file that a thread opens, for a task that may be gone when it is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given_up = False
        self._connection: sqlite3.Connection | None = None

    def run(
        self, path: Path, prepare: Callable[[sqlite3.Connection], None], driver: Driver
    ) -> tuple[sqlite3.Connection, Path | None]:
        """On a worker thread."""
        connection, kept = _opened(path, prepare, driver)
        with self._lock:
            self._connection = connection
            if self._given_up:
                connection.close()
        return connection, kept

    def give_up(self) -> None:
        """Loop thread: nobody will take it."""
        with self._lock:
            self._given_up = True
            if self._connection is not None:
                self._connection.close()


async def _open(
    path: Path, prepare: Callable[[sqlite3.Connection], None], driver: Driver
) -> Database:
    opening = _Opening()
    try:
        connection, kept = await asyncio.to_thread(opening.run, path, prepare, driver)
    except asyncio.CancelledError:
        opening.give_up()
        raise
    database = Database(connection, path, kept)
    await database  # its thread is there; nothing that can fail is left to do
    return database


def _opened(
    path: Path, prepare: Callable[[sqlite3.Connection], None], driver: Driver
) -> tuple[sqlite3.Connection, Path | None]:
    """On a worker thread."""
    try:
        _private(path)
        try:
            return _connected(path, prepare, driver), None
        except DatabaseDamaged:
            kept = put_aside(path)
            _private(path)
            return _connected(path, prepare, driver), kept
    except OSError as error:
        raise disk_error(error, path) from error


def _connected(
    path: Path, prepare: Callable[[sqlite3.Connection], None], driver: Driver
) -> sqlite3.Connection:
    with path.open("rb") as file:
        head = file.read(_HEADER)
    # Looked at first: SQLite throws the log of such a file away, and it may hold what is missing.
    if head and (len(head) < _HEADER or not head.startswith(_MAGIC)):
        raise DatabaseDamaged(f"{path} is no database.", path=path)
    # A log that was left behind: the last writer did not close, so the pages are looked at.
    unclean = path.with_name(path.name + "-wal").exists()
    connection = driver.connect(str(path))
    try:
        # Takes effect only while there is no table yet.
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("PRAGMA journal_mode=WAL")
        for name, value in (
            ("synchronous", "NORMAL"), ("busy_timeout", BUSY_MS), ("foreign_keys", "ON"),
            ("cache_size", -CACHE_KIB), ("journal_size_limit", WAL_BYTES),
            ("temp_store", "MEMORY"),
        ):  # fmt: skip
            connection.execute(f"PRAGMA {name}={value}")
        if unclean:
            said = connection.execute("PRAGMA quick_check(1)").fetchone()
            if said is None or said[0] != "ok":
                raise DatabaseDamaged(f"{path} is damaged: {said and said[0]}.", path=path)
        prepare(connection)
    except BaseException as error:
        connection.close()
        known = database_error(error, path)
        if known is not None:
            raise known from error
        raise
    return connection


def put_aside(path: Path) -> Path:
    """Rename a database with its companions; where the file is now. Raises OSError."""
    number = 1
    while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in COMPANIONS:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return target


def _private(path: Path) -> None:
    """Folder 0700 and files 0600; SQLite gives its companions the mode of the file."""
    make_folders(path.parent)
    if path.parent.stat().st_mode & 0o077:
        path.parent.chmod(0o700)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    for suffix in COMPANIONS:
        with contextlib.suppress(FileNotFoundError):
            file = path.with_name(path.name + suffix)
            if file.stat().st_mode & 0o177:
                file.chmod(0o600)
