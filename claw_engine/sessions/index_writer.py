"""Puts the index of one agent on disk, under OpenClaw's lock.

A change waits at most COALESCE_S. A small sessions.json is then rewritten; beside a large one the
change goes into the side journal first, and the file follows within REWRITE_S. The lock is held
from the journalled change to the rewritten file, so no other process ever reads a file that lacks
it. What another process wrote meanwhile is merged, field by field.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from claw_engine.errors import ClawError
from claw_engine.events import Event, Notice
from claw_engine.sessions import store_file
from claw_engine.sessions.patches import IndexJournal, Patch, joined
from claw_engine.sessions.store_file import Record
from claw_engine.sessions.store_reader import Mark, mark_of
from claw_engine.storage.errors import StateDiskError, disk_error
from claw_engine.storage.foreign_lock import FileLocks, Hold
from claw_engine.storage.writer import BatchWriter
from claw_engine.world import Timer, World

log = logging.getLogger(__name__)

COALESCE_S = 0.2
"""Seconds a change may wait for others before it is made durable."""
REWRITE_S = 2.0
"""Seconds a journalled change may wait before sessions.json follows; others wait for 10."""
RETRY_S = 5.0
"""Seconds until a failed write is tried again."""
SMALL = 512 * 1024
"""Bytes of a file that is rewritten at once, without the journal."""
PIECE = 256 * 1024
"""Bytes of a large file written in one call."""

Goal: TypeAlias = Literal["file", "durable"]


class Source(Protocol):
    """The table that is written."""

    def in_file_order(self) -> Sequence[Record]: ...
    async def merge(self, unsaved: Callable[[], dict[str, Patch]]) -> Mark: ...


class IndexWriter:
    """One for each sessions.json. Loop thread only."""

    def __init__(
        self,
        world: World,
        agent_id: str,
        path: Path,
        journal: IndexJournal,
        locks: FileLocks,
        source: Source,
        publish: Callable[[Event], None],
    ) -> None:
        self._world = world
        self._agent_id = agent_id
        self._path = path
        self._journal = journal
        self._locks = locks
        self._source = source
        self._publish = publish
        self._pending: dict[str, Patch] = {}
        self._journalled: dict[str, Patch] = {}
        self._forced = False
        self._hold: Hold | None = None
        self._failing = False
        self._timer: Timer | None = None
        self._writer: BatchWriter[Goal] = BatchWriter(self._write, f"index:{agent_id}")
        self.mark: Mark = None
        """The version of the file that memory agrees with."""

    def take(self, patch: Patch) -> None:
        """A change in memory; it is durable within COALESCE_S."""
        self._pending = joined(self._pending, {patch.key: patch})
        self._arm(COALESCE_S)

    def replayed(self, patches: dict[str, Patch]) -> None:
        """Changes that the side journal held at start: the file must follow."""
        self._journalled = patches
        self._arm(COALESCE_S)

    def rewrite_soon(self) -> None:
        """The file must be written although no entry changed (it was rebuilt)."""
        self._forced = True

    @property
    def dirty(self) -> bool:
        return bool(self._pending or self._journalled or self._forced)

    async def flush(self) -> None:
        """Wait until sessions.json holds everything. Raises StateDiskError, LockHeld."""
        if self.dirty or not self._writer.idle:
            await self._writer.put("file")

    async def commit(self) -> None:
        """Wait until everything would survive a crash. Raises StateDiskError, LockHeld."""
        if self._pending or self._forced or not self._writer.idle:
            await self._writer.put("durable")

    async def close(self) -> None:
        """Write for the last time; what another process keeps us from writing is journalled."""
        try:
            await self.flush()
        except ClawError as error:
            log.error("session index not saved: %s", error)
            await self._keep_for_next_time()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._release()

    async def _keep_for_next_time(self) -> None:
        try:
            if self._pending:
                await self._world.disk.run(self._journal.append, tuple(self._pending.values()))
        except StateDiskError as error:
            log.error("session index not journalled: %s", error)

    # -- the one task that writes --------------------------------------------------------------

    def _arm(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self._world.clock.call_later(seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        self._writer.submit("durable" if self._pending else "file")

    async def _write(self, batch: Sequence[Goal]) -> None:
        if not self.dirty:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        taken, self._pending = self._pending, {}
        try:
            if self._hold is None or self._hold.lost:
                self._hold = await self._locks.acquire(self._path)
            if await self._world.disk.run(mark_of, self._world.disk, self._path) != self.mark:
                base = joined(self._journalled, taken)
                self.mark = await self._source.merge(lambda: joined(base, self._pending))
            if self._is_small() or "file" in batch or self._forced:
                await self._rewrite()
            else:
                await self._world.disk.run(self._journal.append, tuple(taken.values()))
                self._journalled = joined(self._journalled, taken)
                self._arm(REWRITE_S)
        except BaseException as error:
            self._pending = joined(taken, self._pending)
            if not self._journalled:
                await self._release()
            self._arm(RETRY_S)
            if isinstance(error, ClawError):
                self._tell_failure(error)
            raise
        if self._pending:
            self._arm(COALESCE_S)
        if self._failing:
            self._failing = False
            self._publish(Notice(code=self._failure_code(), level="clear", title="Saved again."))

    def _is_small(self) -> bool:
        return self.mark is None or self.mark[1] <= SMALL

    async def _rewrite(self) -> None:
        forced, self._forced = self._forced, False
        try:
            self.mark = await self._world.disk.run(self._save, self._source.in_file_order())
        except ClawError:
            self._forced = forced
            raise
        if self._journalled:
            await self._world.disk.run(self._journal.clear)
            self._journalled = {}
        await self._release()

    async def _release(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            await asyncio.shield(self._locks.release(hold))

    def _save(self, records: Sequence[Record]) -> Mark:
        disk, path = self._world.disk, self._path
        try:
            disk.mkdir(path.parent, 0o700)
            if self._is_small():
                disk.replace(path, store_file.render(records), mode=0o600)
            else:
                self._save_in_pieces(records)
        except OSError as error:
            raise disk_error(error, path) from error
        return mark_of(disk, path)

    def _save_in_pieces(self, records: Sequence[Record]) -> None:
        """As `Disk.replace`, but no copy of the whole file is made (it would hold the loop)."""
        disk = self._world.disk
        draft = self._path.with_name(f"{self._path.name}.{self._world.ids.uuid()}.tmp")
        waiting, size = list[bytes](), 0
        try:
            for piece in store_file.pieces(records):
                waiting.append(piece)
                size += len(piece)
                if size >= PIECE:
                    disk.append(draft, b"".join(waiting), fsync=False)
                    waiting, size = [], 0
            disk.append(draft, b"".join(waiting), fsync=True)
            disk.rename(draft, self._path)
        except OSError:
            disk.unlink(draft, missing_ok=True)
            raise

    def _failure_code(self) -> str:
        return f"sessions-index-write:{self._agent_id}"

    def _tell_failure(self, error: ClawError) -> None:
        if self._failing:
            return
        self._failing = True
        log.error("session index write failed: %s", error)
        self._publish(
            Notice(
                code=self._failure_code(),
                level="error",
                title=error.title,
                hint=error.hint,
                sticky=True,
                ts=self._world.clock.now_ms(),
            )
        )
