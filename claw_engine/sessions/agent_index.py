"""The sessions.json of one agent in memory, and its one writer.

A broken file is moved aside (never overwritten) and rebuilt from the transcripts with one warning
(case ST-01). Updates are coalesced; only changed entries are serialised again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from claw_engine.events import Event, Notice
from claw_engine.sessions import rebuild, store_file
from claw_engine.sessions.entry import SessionEntry, transcript_path
from claw_engine.sessions.errors import ForeignTranscript, InvalidSessionKey
from claw_engine.sessions.keys import canonical
from claw_engine.sessions.store_file import BrokenStore, Record
from claw_engine.storage.errors import StateDiskError, disk_error
from claw_engine.storage.leftovers import sweep
from claw_engine.storage.writer import BatchWriter
from claw_engine.world import Timer, World

log = logging.getLogger(__name__)

COALESCE_S = 0.2
"""Seconds an update may wait for others before the file is written."""
RETRY_S = 5.0
"""Seconds until a failed write is tried again."""
SLICE = 64 * 1024
"""Characters parsed before other tasks get a turn."""
BATCH = 256
"""Transcripts inspected per disk call while rebuilding."""


class AgentIndex:
    """Entries by canonical key. Loop thread only; reads come from memory and need no lock."""

    def __init__(
        self, world: World, agent_id: str, path: Path, publish: Callable[[Event], None]
    ) -> None:
        self._world = world
        self._agent_id = agent_id
        self._path = path
        self._publish = publish
        self._records: dict[str, Record] = {}
        self._kept: list[Record] = []  # not ours to understand: written back verbatim
        self._dirty = False
        self._failing = False
        self._timer: Timer | None = None
        self._writer: BatchWriter[None] = BatchWriter(self._write, f"index:{agent_id}")

    # -- reading -------------------------------------------------------------------------------

    def get(self, key: str) -> SessionEntry | None:
        """The entry of a canonical key."""
        record = self._records.get(key)
        return record.entry if record is not None else None

    def entries(self) -> tuple[SessionEntry, ...]:
        """All entries, in file order."""
        return tuple(r.entry for r in self._records.values() if r.entry is not None)

    async def load(self) -> None:
        """Read the file; heal it if it is broken. Raises StateDiskError."""
        data = await self._world.disk.run(self._read)
        try:
            if data is not None:
                await self._take(store_file.decode(data))
                return
            reason = "sessions.json is missing"
        except BrokenStore as error:
            reason = f"sessions.json is broken ({error})"
        await self._heal(reason, moved=data is not None)

    def _read(self) -> bytes | None:
        sweep(self._world.disk, self._path.parent)
        try:
            return self._world.disk.read_bytes(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise disk_error(error, self._path) from error

    async def _take(self, text: str) -> None:
        parsed = 0
        for record, at in store_file.scan(text):
            self._adopt(record)
            if at - parsed > SLICE:
                parsed = at
                await asyncio.sleep(0)

    def _adopt(self, record: Record) -> None:
        try:
            key = canonical(record.key, self._agent_id).text
        except InvalidSessionKey:
            key = ""
        if not key or record.entry is None:
            self._kept.append(record)
            return
        record.entry = SessionEntry(key, record.entry.raw)
        rival = self._records.get(key)  # the same key in other letters: the newest wins
        if rival is not None and rival.entry is not None and rival.key != record.key:
            if rival.entry.updated_at >= record.entry.updated_at:
                record, rival = rival, record
            self._kept.append(rival)
        self._records[key] = record

    async def _heal(self, reason: str, *, moved: bool) -> None:
        run, disk, folder = self._world.disk.run, self._world.disk, self._path.parent
        names = await run(rebuild.transcript_names, disk, folder)
        if not moved and not names:
            return  # a fresh agent
        aside = await run(self._move_aside) if moved else None
        taken = {self._file_of(entry) for entry in self.entries()}
        rest = [name for name in names if name not in taken]
        for start in range(0, len(rest), BATCH):
            found = await run(rebuild.inspect, disk, folder, rest[start : start + BATCH])
            fresh = rebuild.entries_for(found, self._agent_id, self._records)
            for key, entry in fresh.items():
                self._records.setdefault(key, Record(key, entry))
        self._dirty = True
        count = len(self._records)
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
        await self.flush()

    def _move_aside(self) -> Path:
        now = datetime.fromtimestamp(self._world.clock.now_ms() / 1000, UTC)
        stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z").replace(":", "-")
        target = self._path.with_name(f"{self._path.name}.broken-{stamp}")
        number = 1
        while self._world.disk.exists(target):
            number += 1
            target = self._path.with_name(f"{self._path.name}.broken-{stamp}-{number}")
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
        """Replace an entry in memory; the file follows within COALESCE_S."""
        old = self._records.get(entry.key)
        if old is not None and old.key != entry.key:  # heal a mixed-case key with its rivals
            self._kept = [r for r in self._kept if r.key.lower() != entry.key]
        self._records[entry.key] = Record(entry.key, entry)
        self._dirty = True
        self._arm(COALESCE_S)

    async def flush(self) -> None:
        """Wait until everything is on disk. Raises StateDiskError; the entries stay in memory."""
        if self._dirty or not self._writer.idle:
            await self._writer.put(None)

    async def close(self) -> None:
        """Flush for the last time; a failure was already told as a notice."""
        try:
            await self.flush()
        except StateDiskError as error:
            log.error("session index not saved: %s", error)
        self._disarm()

    def _arm(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self._world.clock.call_later(seconds, self._due)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        self._writer.submit(None)

    async def _write(self, batch: Sequence[None]) -> None:
        if not self._dirty:
            return
        self._disarm()
        self._dirty = False
        try:
            await self._world.disk.run(self._save, (*self._records.values(), *self._kept))
        except StateDiskError as error:
            self._dirty = True
            self._arm(RETRY_S)
            self._tell_failure(error)
            raise
        if self._failing:
            self._failing = False
            self._publish(Notice(code=self._failure_code(), level="clear", title="Saved again."))

    def _save(self, records: Iterable[Record]) -> None:
        try:
            self._world.disk.mkdir(self._path.parent, 0o700)
            self._world.disk.replace(self._path, store_file.render(records), mode=0o600)
        except OSError as error:
            raise disk_error(error, self._path) from error

    def _failure_code(self) -> str:
        return f"sessions-index-write:{self._agent_id}"

    def _tell_failure(self, error: StateDiskError) -> None:
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
