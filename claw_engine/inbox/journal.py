"""The inbox journal: a message is acknowledged once it is on disk here.

Group commit: an idle journal writes at once; what arrives while an fsync runs shares the next one.
One writer; giving up the wait never gives up the write. A failed write leaves no half line. Knows
no run: the dispatcher marks what becomes of a message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from claw_engine.inbox.ledger import Json, Ledger, accepted_record, mark_record
from claw_engine.inbox.model import Accepted, InboundMessage, Mark, Recovered
from claw_engine.storage.errors import StateDiskError, disk_error
from claw_engine.storage.jsonl import LineFile, parse_line, repair
from claw_engine.storage.leftovers import sweep
from claw_engine.storage.text import to_line
from claw_engine.storage.writer import BatchWriter
from claw_engine.world import World

log = logging.getLogger(__name__)

FILE_NAME = "journal.jsonl"
COMPACT_BYTES = 8 * 1024 * 1024
"""Size in bytes past which the file is compacted while the engine runs."""
SLICE = 64 * 1024
"""Bytes parsed before other tasks get a turn."""


class _Item(Struct, frozen=True):
    """A record to write, or nothing but the wish that what was written survives a power cut."""

    record: Json | None = None
    accepted: Accepted | None = None
    mark: tuple[str, Mark] | None = None

    @property
    def urgent(self) -> bool:
        """Must survive a power cut. A lost `done` is found again by its answer, which is fsynced
        in the transcript before the mark is made; for `started` see `sync`."""
        return self.mark is None or self.mark[1] not in _LATER


_LATER = frozenset({Mark.STARTED, Mark.DONE})


class Journal:
    """Loop thread only; `open` before anything else.

    `durability` is `power` (fsync before acknowledging) or `process` (written, so it survives
    the end of the process but not a power cut).
    """

    def __init__(self, world: World, directory: Path, durability: str = "power") -> None:
        self._world = world
        self._path = directory / FILE_NAME
        self._lines = LineFile(world.disk, self._path)
        self._fsync = durability == "power"
        self._ledger = Ledger()
        self._pending: dict[str, tuple[Accepted, asyncio.Future[None]]] = {}
        self._owed: list[_Item] = []  # marks whose write failed: they go out with the next batch
        self._size = 0
        self._floor = 0
        self._writer: BatchWriter[_Item] = BatchWriter(self._write, "inbox-journal")

    async def open(self) -> Recovered:
        """Read what a former engine left, mend and compact the file. Raises StateDiskError,
        JournalTooNew.

        Interrupted runs stay open until somebody marks them.
        """
        now = self._world.clock.now_ms()
        run = self._world.disk.run
        data, repairs = await run(self._load, now)
        bad = await self._take(data)
        if bad:
            backup = await run(self._keep_copy, data, now)
            repairs += (f"{FILE_NAME}: {bad} unreadable lines; the old file is {backup.name}.",)
        await run(self._compact, list(self._ledger.records(now)))
        for sentence in repairs:
            log.warning("inbox journal: %s", sentence)
        return Recovered(self._ledger.not_started(), self._ledger.started(), repairs)

    async def accept(self, message: InboundMessage) -> Accepted:
        """Put a message on disk; returns only after that (durable as `durability` says).

        A known id returns its first acceptance with `repeat` set. Raises StateDiskError: the
        message was not accepted, nothing of it is left, the same id may be tried again.
        """
        known = self._ledger.known(message)
        if known is not None:
            return known
        waiting = self._pending.get(message.id)
        if waiting is not None:
            first, written = waiting
            await asyncio.shield(written)
            return Accepted(first.seq, first.ts, first.message, True)
        accepted = Accepted(self._ledger.next_seq(), self._world.clock.now_ms(), message)
        written = self._writer.submit(_Item(accepted_record(accepted), accepted))
        self._pending[message.id] = (accepted, written)
        written.add_done_callback(lambda _: self._pending.pop(message.id, None))
        await asyncio.shield(written)
        return accepted

    async def mark(self, run_id: str, kind: str, detail: str = "") -> None:
        """Record what became of a message; returns once durable (`started`, `done`: once written).

        A mark for a message that is not open is ignored. Raises StateDiskError; the mark is then
        written with the next batch.
        """
        # The future is nobody else's: cancelling it gives up the wait and not the write.
        await self.mark_soon(run_id, kind, detail)

    def mark_soon(self, run_id: str, kind: str, detail: str = "") -> asyncio.Future[None]:
        """As `mark`, for a caller that goes on meanwhile: the future ends when it would return."""
        mark = Mark(kind)
        if not self._ledger.is_open(run_id) and run_id not in self._pending:
            log.debug("inbox journal: mark %s for %s, which is not open", kind, run_id)
            ignored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            ignored.set_result(None)
            return ignored
        record = mark_record(
            self._ledger.next_seq(), self._world.clock.now_ms(), run_id, mark, detail
        )
        return self._writer.submit(_Item(record, mark=(run_id, mark)))

    async def sync(self) -> None:
        """Have every mark so far survive a power cut: before a run's first side effect, or a
        restart would do it twice. A run without one may as well be run again. Raises
        StateDiskError."""
        if self._fsync:
            await self._writer.put(_Item())

    def pending(self) -> tuple[Accepted, ...]:
        """Accepted messages that are not finished, oldest first."""
        return tuple(
            sorted((*self._ledger.not_started(), *self._ledger.started()), key=lambda a: a.seq)
        )

    async def close(self) -> None:
        """Wait for the writer and write owed marks; never raises."""
        await self._writer.drain()
        if self._owed:
            try:
                await self._write(())
            except StateDiskError as error:
                log.error("inbox journal: %d marks not written: %s", len(self._owed), error)

    async def _write(self, batch: Sequence[_Item]) -> None:
        items = [*self._owed, *batch]
        try:
            self._size = await self._world.disk.run(self._append, items)
        except StateDiskError:
            self._owed = [item for item in items if item.mark is not None]
            raise
        self._owed = []
        for item in items:
            if item.accepted is not None:
                self._ledger.accept(item.accepted)
            elif item.mark is not None:
                self._ledger.mark(*item.mark)
        if self._size > max(COMPACT_BYTES, 2 * self._floor):
            await self._compact_live()

    def _append(self, items: Sequence[_Item]) -> int:
        fsync = self._fsync and any(item.urgent for item in items)
        records = [item.record for item in items if item.record is not None]
        return self._lines.append(b"".join(map(to_line, records)), fsync=fsync)

    async def _compact_live(self) -> None:
        records = list(self._ledger.records(self._world.clock.now_ms()))
        try:
            await self._world.disk.run(self._compact, records)
        except StateDiskError as error:  # everything is durable in the long file
            log.warning("inbox journal not compacted: %s", error)
            self._floor = self._size

    def _compact(self, records: Sequence[Json]) -> None:
        text = b"".join(map(to_line, records))
        try:
            self._world.disk.replace(self._path, text)
        except OSError as error:
            raise disk_error(error, self._path) from error
        self._size = self._floor = len(text)

    def _load(self, now_ms: int) -> tuple[bytes, tuple[str, ...]]:
        disk = self._world.disk
        try:
            disk.mkdir(self._path.parent, 0o700)
            sweep(disk, self._path.parent)
            mended = repair(disk, self._path, now_ms)
            data = disk.read_bytes(self._path) if disk.exists(self._path) else b""
        except OSError as error:
            raise disk_error(error, self._path) from error
        return data, (mended.sentence(),) if mended is not None else ()

    async def _take(self, data: bytes) -> int:
        bad = parsed = 0
        for line in data.split(b"\n"):
            if not line:
                continue
            parsed += len(line)
            if parsed > SLICE:
                parsed = 0
                await asyncio.sleep(0)
            record = parse_line(line)
            if isinstance(record, str) or not self._ledger.apply(record):
                bad += 1
        return bad

    def _keep_copy(self, data: bytes, now_ms: int) -> Path:
        copy = self._path.with_name(f"{FILE_NAME}.bak-{now_ms}")
        try:
            self._world.disk.replace(copy, data)
        except OSError as error:
            raise disk_error(error, copy) from error
        return copy
