"""The sessions.json of one agent: loaded, healed, kept in memory, handed to its writer.

A broken file is moved aside (never overwritten) and rebuilt from the transcripts with one warning
(case ST-01). What a crash left in the side journal is brought back at load.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from claw_engine.events import Event, Notice
from claw_engine.sessions import rebuild
from claw_engine.sessions.archive import stamp
from claw_engine.sessions.entry import SessionEntry, transcript_path
from claw_engine.sessions.errors import ForeignTranscript
from claw_engine.sessions.events import SessionsChanged
from claw_engine.sessions.index_writer import IndexWriter
from claw_engine.sessions.patches import IndexJournal, Patch
from claw_engine.sessions.store_file import Record
from claw_engine.sessions.store_reader import STRICT_BYTES, Mark, read_store
from claw_engine.sessions.table import Table
from claw_engine.storage.errors import disk_error
from claw_engine.storage.foreign_lock import FileLocks
from claw_engine.storage.leftovers import sweep
from claw_engine.world import World

log = logging.getLogger(__name__)

BATCH = 256
"""Transcripts inspected per disk call while rebuilding."""


class AgentIndex:
    """Entries by canonical key. Loop thread only; reads come from memory and need no lock."""

    def __init__(
        self,
        world: World,
        agent_id: str,
        path: Path,
        journal: Path,
        locks: FileLocks,
        publish: Callable[[Event], None],
        strict_bytes: int = STRICT_BYTES,
    ) -> None:
        self._world = world
        self._agent_id = agent_id
        self._path = path
        self._publish = publish
        self._strict_bytes = strict_bytes
        self._table = Table(agent_id)
        self._journal = IndexJournal(world.disk, journal)
        self._writer = IndexWriter(world, agent_id, path, self._journal, locks, self, publish)

    # -- reading -------------------------------------------------------------------------------

    def get(self, key: str) -> SessionEntry | None:
        """The entry of a canonical key."""
        return self._table.get(key)

    def entries(self) -> Iterator[SessionEntry]:
        """All entries, in file order."""
        return self._table.entries()

    def in_file_order(self) -> Sequence[Record]:
        """Every member as it is written."""
        return self._table.in_file_order()

    async def load(self) -> None:
        """Read the file; heal it if it is broken. Raises StateDiskError, LockHeld."""
        await self._world.disk.run(sweep, self._world.disk, self._path.parent)
        read = await read_store(self._world.disk, self._path, self._agent_id, self._strict_bytes)
        self._table, self._writer.mark = read.table, read.mark
        left = await self._world.disk.run(self._journal.load, self._world.clock.now_ms())
        if left:
            self._table.apply(left, newest_wins=True)
            self._writer.replayed(left)
        if read.broken:
            await self._heal(f"sessions.json is broken ({read.broken})", moved=True)
        elif read.mark is None:
            await self._heal("sessions.json is missing", moved=False)

    async def merge(self, unsaved: Callable[[], dict[str, Patch]]) -> Mark:
        """Take what another process wrote, with our unsaved changes on top of it."""
        read = await read_store(self._world.disk, self._path, self._agent_id, self._strict_bytes)
        if read.broken:
            aside = await self._world.disk.run(self._move_aside)
            log.error("another process left a broken sessions.json; kept as %s", aside.name)
            return None
        if read.mark is None:  # somebody took it away: memory is all there is
            return None
        before = {entry.key: entry.updated_at for entry in self._table.entries()}
        read.table.apply(unsaved())
        self._table = read.table
        after = {entry.key: entry.updated_at for entry in self._table.entries()}
        changed = {key for key, _ in before.items() ^ after.items()}
        if changed:
            self._publish(SessionsChanged(frozenset(changed)))
        return read.mark

    async def _heal(self, reason: str, *, moved: bool) -> None:
        run, disk, folder = self._world.disk.run, self._world.disk, self._path.parent
        names = await run(rebuild.transcript_names, disk, folder)
        if not moved and not names:
            return  # a fresh agent
        aside = await run(self._move_aside) if moved else None
        self._writer.mark = None
        taken = {self._file_of(entry) for entry in self.entries()}
        rest = [name for name in names if name not in taken]
        records = self._table.records
        for start in range(0, len(rest), BATCH):
            found = await run(rebuild.inspect, disk, folder, rest[start : start + BATCH])
            fresh = rebuild.entries_for(found, self._agent_id, records)
            for key, entry in fresh.items():
                records.setdefault(key, Record(key, entry))
        count = len(records)
        text = f"{count} sessions were restored from the folder {folder}."
        if aside is not None:
            text += f" The old file is kept as {aside.name}."
        log.warning("session index rebuilt: agent=%s reason=%s %s", self._agent_id, reason, text)
        self._publish(
            Notice(
                code=f"sessions-index-rebuilt:{self._agent_id}",
                level="warn",
                title=f"The session list of agent {self._agent_id} was rebuilt: {reason}.",
                text=text,
                hint="Names and settings of sessions may be missing; conversations are not.",
                sticky=True,
                ts=self._world.clock.now_ms(),
            )
        )
        self._writer.rewrite_soon()
        await self._writer.flush()

    def _move_aside(self) -> Path:
        now = stamp(self._world.clock.now_ms())
        target = self._path.with_name(f"{self._path.name}.broken-{now}")
        number = 1
        while self._world.disk.exists(target):
            number += 1
            target = self._path.with_name(f"{self._path.name}.broken-{now}-{number}")
        try:
            self._world.disk.rename(self._path, target)
        except OSError as error:
            raise disk_error(error, self._path) from error
        return target

    def _file_of(self, entry: SessionEntry) -> str:
        try:
            return transcript_path(self._path.parent, entry).name
        except ForeignTranscript:
            return ""

    # -- writing -------------------------------------------------------------------------------

    def put(self, entry: SessionEntry) -> None:
        """Replace an entry in memory; the disk follows (see IndexWriter)."""
        self._writer.take(self._table.put(entry))

    def remove(self, key: str) -> None:
        """Take an entry out of memory; the disk follows."""
        self._writer.take(self._table.remove(key, self._world.clock.now_ms()))

    async def flush(self) -> None:
        """Wait until the file holds everything. Raises StateDiskError, LockHeld."""
        await self._writer.flush()

    async def commit(self) -> None:
        """Wait until everything would survive a crash. Raises StateDiskError, LockHeld."""
        await self._writer.commit()

    async def close(self) -> None:
        """Write for the last time; a failure was told as a notice."""
        await self._writer.close()
