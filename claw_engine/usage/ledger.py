"""The ledger: every call's spending in SQLite, in the order it came.

Works without the trace store. A call is handed over without waiting and written a moment later,
with those that end beside it: a kill -9 loses that moment's, never a row that was read. A call that
begins is written at once, as estimated; one that was never settled counts so at the next start. A
disk that fails is told once; the calls are kept in memory and written when it works again.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

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


class Batch(Struct):
    """What one transaction writes."""

    spent: list[Spent]
    begun: dict[int, Spent]
    ended: list[int]

    def store(self, connection: sqlite3.Connection) -> None:
        from claw_engine.usage import schema  # with the first call, not with a start

        schema.insert(connection, self.spent)
        schema.insert_open(connection, self.begun)
        schema.drop_open(connection, self.ended)

    def clear(self) -> None:
        self.spent, self.begun, self.ended = [], {}, []


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
        self._begun: dict[int, Spent] = {}
        """Calls under way that are not written yet."""
        self._ended: list[int] = []
        """Calls whose row among those under way is to go."""
        self._calls = 0
        self._database: Database | None = None
        self._opening = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._failing = False
        self._closed = False

    def begin(self, estimated: Spent) -> int:
        """Take a call that goes out now; its number. Never waits, never raises."""
        self._calls += 1
        self._begun[self._calls] = estimated
        if self._timer is not None:
            self._timer.cancel()
        self._due()  # its answer may take minutes: no moment is waited
        return self._calls

    def end(self, number: int, spent: Spent | None) -> None:
        """A call that began has ended; None: it cost nothing. Never waits, never raises."""
        if self._begun.pop(number, None) is None:
            self._ended.append(number)
        if spent is not None:
            self.add(spent)
        else:
            self._soon()

    def add(self, spent: Spent) -> None:
        """Take a call; never waits, never raises."""
        self._waiting.append(spent)
        self._soon()

    def _soon(self) -> None:
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
        if self._more:
            await self._write()
        self._closed = True
        database, self._database = self._database, None
        if database is not None:
            await database.shut()

    @property
    def _more(self) -> bool:
        return bool(self._waiting or self._begun or self._ended)

    def _due(self) -> None:
        self._timer = None
        if self._writer is None and self._more and not self._closed:
            loop = asyncio.get_running_loop()
            self._writer = loop.create_task(self._write(), name="usage ledger")

    async def _write(self) -> None:
        try:
            while self._more:
                database = await self._opened()
                await self._run(database, self._take(), lambda connection: None)
        except StateDiskError as error:
            log.warning("usage is not written: %s", error.sentence())
        except Exception:  # accounting must never end a run
            log.exception("usage is not written")
        finally:
            self._writer = None

    async def _run(
        self, database: Database, batch: Batch, work: Callable[[sqlite3.Connection], T]
    ) -> T:
        from claw_engine.storage.sqlite import transaction

        def both(connection: sqlite3.Connection) -> T:
            if batch.spent or batch.begun or batch.ended:
                transaction(connection, batch.store)
                batch.clear()  # written: a failure from here on must not bring it back
            return work(connection)

        try:
            found = await database.run(both)
        except StateDiskError as error:
            self._waiting[:0] = batch.spent
            self._begun = {**batch.begun, **self._begun}
            self._ended[:0] = batch.ended
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

        def make(inside: sqlite3.Connection) -> None:
            schema.count_open(inside)  # an engine that died left them
            schema.fold(inside, before)

        transaction(connection, make)

    def _take(self) -> Batch:
        batch = Batch(self._waiting, self._begun, self._ended)
        self._waiting, self._begun, self._ended = [], {}, []
        return batch

    def _told(self, why: str) -> None:
        if len(self._waiting) > KEPT:
            del self._waiting[:-KEPT]
        if bool(why) != self._failing:
            self._failing = bool(why)
            self._trouble(why)
