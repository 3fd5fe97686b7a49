"""The ledger: every call's spending in SQLite, in the order it came.

Works without the trace store. A call is handed over without waiting and written a moment later,
with those that end beside it: a kill -9 loses that moment's, never a row that was read. A disk
that fails is told once; the calls are kept in memory and written when it works again.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from claw_engine.storage.errors import StateDiskError
from claw_engine.world import Timer, World

if TYPE_CHECKING:
    import sqlite3

    from claw_engine.storage.sqlite import Database
    from claw_engine.usage.records import Spent

log = logging.getLogger("claw.usage")

T = TypeVar("T")

MOMENT_S = 0.05
"""Seconds that a call waits for company: waking the thread for each costs more than counting it."""
KEPT = 10_000
"""Calls that wait in memory for a disk that fails; older ones are given up."""

UNREAD = "Until it can be read, sums and budgets count only what this engine spends."


class Ledger:
    """Loop thread only. `trouble` is told once what is wrong, and "" when it is mended; `anew`
    where a damaged file was put when a fresh one was begun."""

    def __init__(
        self, world: World, path: Path, trouble: Callable[[str], None],
        anew: Callable[[Path], None] = lambda kept: None,
    ) -> None:  # fmt: skip
        self._world = world
        self._path = path
        self._trouble = trouble
        self._anew = anew
        self._waiting: list[Spent] = []
        self._database: Database | None = None
        self._opening = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._failing = False
        self._closed = False

    def add(self, spent: Spent) -> None:
        """Take a call; never waits, never raises."""
        self._waiting.append(spent)
        if self._timer is None and self._writer is None and not self._closed:
            self._timer = self._world.clock.call_later(MOMENT_S, self._due)

    async def open(self) -> None:
        """Open the file that an earlier engine left, so that what is wrong with it is told before
        anything is decided by it. Never raises; makes no file."""
        if self._database is not None or not await self._world.disk.run(self._there):
            return
        try:
            await self._opened()
        except StateDiskError as error:
            log.warning("usage cannot be read: %s", error.sentence())
        except Exception:  # accounting must never end a run
            log.exception("usage cannot be read")

    def _there(self) -> bool:
        try:
            return self._path.exists()
        except OSError:  # a folder that cannot be looked into: opening says it in words
            return True

    async def read(
        self, work: Callable[[sqlite3.Connection], T], taken: Callable[[], None] | None = None
    ) -> T:
        """What `work` finds, everything added before included; `taken` is called at the moment
        after which an added call is not. Raises StateDiskError, NoSqlite."""
        database = await self._opened()
        batch = self._take()
        if taken is not None:
            taken()
        return await self._run(database, batch, work)

    async def close(self) -> None:
        """Write what waits and let the file go. Never raises."""
        if self._timer is not None:
            self._timer.cancel()
        if self._writer is not None:
            await asyncio.wait([self._writer])
        if self._waiting:
            await self._write()
        self._closed = True
        database, self._database = self._database, None
        if database is not None:
            await database.shut()

    def _due(self) -> None:
        self._timer = None
        if self._writer is None and self._waiting and not self._closed:
            loop = asyncio.get_running_loop()
            self._writer = loop.create_task(self._write(), name="usage ledger")

    async def _write(self) -> None:
        try:
            while self._waiting:
                database = await self._opened()
                await self._run(database, self._take(), lambda connection: None)
        except StateDiskError as error:
            log.warning("usage is not written: %s", error.sentence())
        except Exception:  # accounting must never end a run
            log.exception("usage is not written")
        finally:
            self._writer = None

    async def _run(
        self, database: Database, batch: list[Spent], work: Callable[[sqlite3.Connection], T]
    ) -> T:
        from claw_engine.storage.sqlite import transaction
        from claw_engine.usage import schema  # with the first call, not with a start

        def both(connection: sqlite3.Connection) -> T:
            if batch:
                transaction(connection, lambda inside: schema.insert(inside, batch))
                batch.clear()  # written: a failure from here on must not bring it back
            return work(connection)

        try:
            found = await database.run(both)
        except StateDiskError as error:
            self._waiting[:0] = batch
            self._told(error.sentence())
            raise
        self._told("")
        return found

    async def _opened(self) -> Database:
        async with self._opening:
            if self._database is None:
                # Off the loop: the module and its library take 20 ms to load.
                await asyncio.to_thread(importlib.import_module, "claw_engine.storage.sqlite")
                from claw_engine.storage.sqlite import open_database

                try:
                    self._database = await open_database(self._path, self._prepare)
                except StateDiskError as error:
                    self._told(f"{error.sentence()} {UNREAD}")
                    raise
                if self._database.kept is not None:
                    log.warning("a damaged usage ledger was put aside: %s", self._database.kept)
                    self._anew(self._database.kept)
            return self._database

    def _prepare(self, connection: sqlite3.Connection) -> None:
        from claw_engine.storage.sqlite import transaction
        from claw_engine.usage import schema

        schema.prepare(connection)
        before = self._world.clock.now_ms() - schema.FOLD_DAYS * schema.DAY_MS
        transaction(connection, lambda inside: schema.fold(inside, before))

    def _take(self) -> list[Spent]:
        batch, self._waiting = self._waiting, []
        return batch

    def _told(self, why: str) -> None:
        if len(self._waiting) > KEPT:
            del self._waiting[:-KEPT]
        if bool(why) != self._failing:
            self._failing = bool(why)
            self._trouble(why)
