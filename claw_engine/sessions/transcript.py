"""One conversation on disk: a version-3 JSONL tree with one writer.

The file is first written as header + user + assistant in one append (OpenClaw empties a file that
holds no answer); until then the lines wait in memory while the inbox journal keeps the message.
Giving up the wait never gives up the write; a failed write leaves no half line and is made up for
by the next one. Knows no run and no model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from claw_engine.messages import Message, ToolResultMessage
from claw_engine.sessions.entries import (
    VERSION,
    Entry,
    Header,
    StoredMessage,
    has_assistant,
    iso,
    parse,
    read_entry,
    read_header,
)
from claw_engine.sessions.guard import capped
from claw_engine.sessions.transcript_file import TranscriptFile
from claw_engine.sessions.tree import Tree
from claw_engine.storage.writer import BatchWriter
from claw_engine.world import World

SLICE = 16 * 1024
"""Bytes parsed before other tasks get a turn."""


async def _nothing_first() -> None:
    """Default for `before_first_write`."""


class Transcript:
    """A session's messages. Loop thread only; `open` before anything else.

    `durability` is `power` (answers and tool results are fsynced) or `process`.
    `before_first_write` is awaited before the file comes into being: the index entry must be
    durable first, else a crash leaves a transcript that no session names (case CH-01).
    """

    def __init__(
        self,
        world: World,
        path: Path,
        session_id: str,
        cwd: str,
        *,
        session_key: str = "",
        durability: str = "power",
        before_first_write: Callable[[], Awaitable[None]] = _nothing_first,
    ) -> None:
        self._world = world
        self._file = TranscriptFile(world.disk, path)
        self._header = Header(session_id, "", cwd, VERSION, session_key)
        self._durable = durability == "power"
        self._before_first_write = before_first_write
        self._tree = Tree()
        self._on_disk = False
        self._answered = False
        self._unwritten: list[Entry] = []
        self._writer: BatchWriter[None] = BatchWriter(self._write, f"transcript:{session_id}")
        self.path = path
        self.session_id = session_id
        self.repairs: tuple[str, ...] = ()

    # -- reading -------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read the file, mending what a crash left. Raises StateDiskError.

        `repairs` then tells in sentences what was mended or skipped.
        """
        now = self._world.clock.now_ms()
        opened = await self._world.disk.run(self._file.load, now)
        self.repairs = opened.repairs
        if opened.data is None:
            return
        sound, bad = await self._take(opened.data)
        if bad:
            numbers = ", ".join(map(str, bad[:10])) + (" …" if len(bad) > 10 else "")
            self.repairs += (f"{self.path.name}: skipped unreadable lines {numbers}.",)
        self._on_disk = True
        if not sound:
            await self._give_header(opened.data, now)

    async def _take(self, data: bytes) -> tuple[bool, list[int]]:
        """Fill the tree; whether the file is sound as version 3, and the numbers of bad lines."""
        header: Header | None = None
        sound, bad, parsed = True, list[int](), 0
        for number, size, raw in parse(data):
            parsed += size
            if parsed > SLICE:
                parsed = 0
                await asyncio.sleep(0)
            if isinstance(raw, str):
                bad.append(number)
                continue
            found = read_header(raw)
            if found is not None:  # a later header is noise: OpenClaw's injector leaves some
                sound = sound and (header is not None or number == 1)
                header = header or found
                continue
            entry = read_entry(raw, self._tree.leaf_id)
            if not entry.id:
                sound = False
                entry = replace(entry, id=self._new_id(), parent_id=self._tree.leaf_id)
            self._add(entry)
        if header is not None:
            self._header = replace(
                header,
                session_id=header.session_id or self.session_id,
                cwd=header.cwd or self._header.cwd,
                version=VERSION,
                session_key=header.session_key or self._header.session_key,
            )
        return sound and header is not None and header.version >= VERSION, bad

    async def _give_header(self, old: bytes, now: int) -> None:
        entries = self._tree.in_file_order()
        if not self._header.timestamp:
            first = next((e.timestamp for e in entries if e.timestamp), iso(now))
            self._header = replace(self._header, timestamp=first)
        # Lines that have an id go back as they were read; only nameless ones get theirs.
        raws = (raw for _, _, raw in parse(old) if not isinstance(raw, str))
        kept = [raw for raw in raws if raw.get("type") != "session"]
        if not all(raw.get("id") for raw in kept):
            kept = [entry.to_json() for entry in entries]
        rewrite = self._file.rewrite
        backup = await self._world.disk.run(rewrite, old, self._header, kept, now)
        self.repairs += (
            f"{self.path.name}: had no valid version-3 header and was rewritten;"
            f" the old file is kept as {backup.name}.",
        )

    @property
    def leaf_id(self) -> str | None:
        """Id of the newest entry; None for an empty transcript."""
        return self._tree.leaf_id

    @property
    def settled(self) -> bool:
        """Nothing waits to be written."""
        return not self._unwritten and self._writer.idle

    def messages(self) -> tuple[StoredMessage, ...]:
        """What a model reads, oldest first: the path to the leaf, from its last compaction on."""
        return self._tree.context()

    def history(self) -> tuple[StoredMessage, ...]:
        """What a reader sees, oldest first: every message on the path to the leaf."""
        return self._tree.history()

    def customs(self, custom_type: str) -> tuple[Mapping[str, object], ...]:
        """Data of the `custom` entries of one type on the path to the leaf, oldest first."""
        return tuple(
            data
            for entry in self._tree.path()
            if entry.kind == "custom" and entry.data.get("customType") == custom_type
            if isinstance(data := entry.data.get("data"), dict)
        )

    # -- writing -------------------------------------------------------------------------------

    async def append(self, *messages: Message) -> tuple[str, ...]:
        """Add messages behind the leaf and wait until they are on disk; their entry ids.

        Before the first answer nothing is written and the call returns at once. Tool results are
        cut at 400,000 characters. Raises StateDiskError; the messages then stay in memory and go
        out with the next write.
        """
        made = [self._new("message", message=_guarded(message)) for message in messages]
        await self._commit()
        return tuple(entry.id for entry in made)

    async def append_custom(self, custom_type: str, data: Mapping[str, object]) -> str:
        """Add a `custom` entry (never part of a model's context); its id."""
        return await self.append_entry("custom", {"customType": custom_type, "data": dict(data)})

    async def append_entry(self, kind: str, data: Mapping[str, object]) -> str:
        """Add an entry of another kind (model_change, compaction …) by its fields; its id."""
        entry = self._new(kind, data=data)
        await self._commit()
        return entry.id

    async def flush(self) -> None:
        """Write what an earlier failure left over. Raises StateDiskError."""
        await self._commit()

    async def close(self) -> None:
        """Wait for the writer; never raises. Lines before the first answer are dropped here."""
        if self._answered and self._unwritten and self._writer.idle:
            self._writer.submit(None)
        await self._writer.drain()

    def _new(
        self,
        kind: str,
        *,
        message: Message | None = None,
        data: Mapping[str, object] | None = None,
    ) -> Entry:
        when = iso(self._world.clock.now_ms())
        entry = Entry(self._new_id(), self._tree.leaf_id, kind, when, message, data or {})
        if not self._header.timestamp:
            self._header = replace(self._header, timestamp=when)
        self._add(entry)
        self._unwritten.append(entry)
        return entry

    def _add(self, entry: Entry) -> None:
        self._tree.add(entry)
        self._answered = self._answered or has_assistant(entry)

    def _new_id(self) -> str:
        while (fresh := self._world.ids.hex(8)) in self._tree:
            pass
        return fresh

    async def _commit(self) -> None:
        if self._answered and self._unwritten:
            await self._writer.put(None)

    async def _write(self, batch: Sequence[None]) -> None:
        entries = tuple(self._unwritten)
        if not entries:
            return
        if not self._on_disk:
            await self._before_first_write()
        header = None if self._on_disk else self._header
        # A lone user message is in the inbox journal already: it need not wait for the disk twice.
        fsync = self._durable and any(_worth_fsync(entry) for entry in entries)
        await self._world.disk.run(self._file.append, header, entries, fsync=fsync)
        self._on_disk = True
        del self._unwritten[: len(entries)]


def _worth_fsync(entry: Entry) -> bool:
    return has_assistant(entry) or isinstance(entry.message, ToolResultMessage)


def _guarded(message: Message) -> Message:
    return capped(message) if isinstance(message, ToolResultMessage) else message
