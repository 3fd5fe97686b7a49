"""One conversation on disk: a version-3 JSONL tree with one writer.

The file is first written as header + user + assistant in one append (OpenClaw empties a file that
holds no answer); until then the lines wait in memory while the inbox journal keeps the message.
Giving up the wait never gives up the write; a failed write leaves no half line and is made up for
by the next one. Each write holds OpenClaw's lock on the file, and what another process appended
meanwhile is read first. Knows no run and no model.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from msgspec.structs import replace

from claw_engine.messages import Message
from claw_engine.sessions.entries import (
    VERSION,
    Entry,
    Header,
    StoredMessage,
    has_assistant,
    iso,
    parse,
    stored,
    worth_fsync,
)
from claw_engine.sessions.errors import SessionEnded
from claw_engine.sessions.guard import guarded
from claw_engine.sessions.transcript_file import Mark, TranscriptFile
from claw_engine.sessions.transcript_reader import FIRST, WHOLE, Loaded, TranscriptReader
from claw_engine.sessions.tree import Tree
from claw_engine.storage.foreign_lock import FileLocks
from claw_engine.storage.text import to_line
from claw_engine.storage.writer import BatchWriter
from claw_engine.world import Timer, World

log = logging.getLogger(__name__)

OUTSIDERS = 5
"""Times a write is tried again because another process wrote to the file in between."""
MIN_LINE = 64  # bytes: no line with a message is shorter
Told = Callable[[int, StoredMessage], None]
SOON_S = 0.05
"""Seconds that what is added by `append_soon` may wait for another write to go out with."""


async def _nothing_first() -> None:
    """Default for `before_first_write`."""


class Transcript:
    """A session's messages. Loop thread only; `open` before anything else.

    `durability` is `power` (answers and tool results are fsynced) or `process`.
    `before_first_write` is awaited before the file comes into being: the index entry must be
    durable first, else a crash leaves a transcript that no session names (case CH-01). Without
    `locks` the caller answers for nobody else writing the file. Of a file larger than `whole`
    bytes only the end is read, as far as a model needs it. `told` gets each message that is added
    here and its number (see `first_number`).
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
        locks: FileLocks | None = None,
        whole: int = WHOLE,
        told: Told | None = None,
    ) -> None:
        self._world = world
        self._told = told
        self._before = 0
        self._file = TranscriptFile(world.disk, path)
        self._reader = TranscriptReader(world, self._file, whole)
        self._header = Header(session_id, "", cwd, VERSION, session_key)
        self._durable = durability == "power"
        self._before_first_write = before_first_write
        self._locks = locks
        self._tree = Tree()
        self._rest = 0
        self._reached = 0
        self._mark: Mark = None
        self._ended = False
        self._answered = False
        self._unwritten: list[Entry] = []
        self._soon: Timer | None = None
        self._writer: BatchWriter[None] = BatchWriter(self._write, f"transcript:{session_id}")
        self.path = path
        self.session_id = session_id
        self.repairs: tuple[str, ...] = ()

    # -- reading -------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read the file, mending what a crash left. Raises StateDiskError.

        `repairs` then tells in sentences what was mended or skipped.
        """
        loaded = await self._reader.load()
        self.repairs = loaded.repairs
        if loaded.bad:
            numbers = ", ".join(map(str, loaded.bad[:10])) + (" …" if len(loaded.bad) > 10 else "")
            self.repairs += (f"{self.path.name}: skipped unreadable lines {numbers}.",)
        self._install(loaded)
        if loaded.data is not None and not loaded.sound:
            await self._give_header(loaded.data)

    async def refresh(self) -> bool:
        """Read what another process wrote since; whether it wrote. Raises StateDiskError."""
        if not await self._world.disk.run(self.changed):
            return False
        loaded = await self._reader.load()
        self._install(loaded)
        return True

    def changed(self) -> bool:
        """Whether another process has written; disk thread. Raises StateDiskError."""
        return self._file.changed(self._mark)

    def _install(self, loaded: Loaded) -> None:
        """Take what was read; lines that wait to be written follow behind it."""
        waiting, self._unwritten = self._unwritten, []
        own = {entry.id for entry in waiting}
        self._tree, self._rest = Tree(partial=bool(loaded.rest)), loaded.rest
        self._before = loaded.rest // MIN_LINE
        self._mark = loaded.mark if loaded.mark and loaded.mark[1] else None
        self._reached = 0
        self._answered = bool(loaded.rest)  # so long a file has an answer somewhere
        for entry in loaded.entries:
            if entry.id not in own:
                self._add(entry)
        for number, entry in enumerate(waiting):
            moved = replace(entry, parent_id=self._tree.leaf_id) if not number else entry
            self._add(moved)
            self._unwritten.append(moved)
        if loaded.header is not None:
            header = loaded.header
            self._header = replace(
                header,
                session_id=header.session_id or self.session_id,
                cwd=header.cwd or self._header.cwd,
                version=VERSION,
                session_key=header.session_key or self._header.session_key,
            )

    async def _give_header(self, old: bytes) -> None:
        now = self._world.clock.now_ms()
        entries = self._tree.in_file_order()
        if not self._header.timestamp:
            first = next((e.timestamp for e in entries if e.timestamp), iso(now))
            self._header = replace(self._header, timestamp=first)
        # Lines that have an id keep their bytes; only where some have none all are written anew.
        lines = old.split(b"\n")
        read = ((number, raw) for number, _, raw in parse(old) if not isinstance(raw, str))
        kept = [(number, raw) for number, raw in read if raw.get("type") != "session"]
        if all(raw.get("id") for _, raw in kept):
            whole = [lines[number - 1] + b"\n" for number, _ in kept]
        else:
            whole = [to_line(entry.to_json()) for entry in entries]
        rewrite = self._file.rewrite
        backup, self._mark = await self._world.disk.run(rewrite, old, self._header, whole, now)
        self.repairs += (
            f"{self.path.name}: had no valid version-3 header and was rewritten;"
            f" the old file is kept as {backup.name}.",
        )

    @property
    def leaf_id(self) -> str | None:
        """Id of the entry that the next one follows; None for an empty transcript."""
        return self._tree.leaf_id

    @property
    def cwd(self) -> str:
        """The working folder its header names."""
        return self._header.cwd

    @property
    def settled(self) -> bool:
        """Nothing waits to be written."""
        return not self._unwritten and self._writer.idle

    @property
    def whole(self) -> bool:
        """Whether all of the file is in memory."""
        return not self._rest

    def messages(self) -> tuple[StoredMessage, ...]:
        """What a model reads, oldest first: the path to the leaf, from its last compaction on.

        Of a large file without a compaction only the newest part; `reach` asks for more.
        """
        return self._tree.context()

    @property
    def first_number(self) -> int:
        """Number of the oldest message of `history`: above 1 where older ones are not in memory."""
        return self._before + 1

    def history(self) -> tuple[StoredMessage, ...]:
        """What a reader sees, oldest first; `recent` reads further back in a large file."""
        return self._tree.history()

    async def reach(self, chars: int) -> None:
        """Read on until `messages` holds `chars` characters, or all there is. Raises
        StateDiskError."""
        size = FIRST
        while self._rest and chars > self._reached and not self._tree.context_reaches(chars):
            base, size = self._rest, size * 2
            older = Loaded(rest=base)
            linked = await self._reader.older(older, size)
            if not linked:  # an old file: its lines do not say whom they follow
                self._install(await self._reader.load_whole())
            elif self._rest == base and older.rest != base:
                self._put_before(older)
        self._reached = max(self._reached, chars)

    async def recent(self, limit: int) -> tuple[StoredMessage, ...]:
        """The newest `limit` messages a reader sees. Raises StateDiskError."""
        size = FIRST
        while self._rest and len(self._tree.history()) < limit:
            older = Loaded(rest=self._rest)
            size *= 2
            if not await self._reader.older(older, size):
                break
            if older.rest != self._rest:
                self._put_before(older)
        return self._tree.history()[-limit:] if limit > 0 else ()

    def _put_before(self, older: Loaded) -> None:
        leaf, later = self._tree.leaf_id, self._tree.in_file_order()
        shown = self._tree.shown()
        self._rest = older.rest
        self._tree = Tree(partial=bool(older.rest))
        for entry in (*older.entries, *later):
            self._tree.add(entry)
        self._tree.move_leaf(leaf)
        self._before -= self._tree.shown() - shown

    def path_entries(self) -> tuple[Entry, ...]:
        """Every entry on the path to the leaf that is in memory, oldest first."""
        return tuple(self._tree.path())

    def customs(self, custom_type: str) -> tuple[Mapping[str, object], ...]:
        """Data of the `custom` entries of one type on the loaded path to the leaf, oldest first."""
        return tuple(
            data
            for entry in self._tree.path()
            if entry.kind == "custom" and entry.data.get("customType") == custom_type
            if isinstance(data := entry.data.get("data"), dict)
        )

    # -- writing -------------------------------------------------------------------------------

    def branch(self, entry_id: str | None) -> None:
        """Let the next entry follow another one (None: begin anew); the file keeps both branches.

        The last line of a file is its leaf, so the move counts once something was appended.
        Raises KeyError for an entry that is not in memory.
        """
        self._tree.move_leaf(entry_id)

    async def append(self, *messages: Message) -> tuple[str, ...]:
        """Add messages behind the leaf and wait until they are on disk; their entry ids.

        Before the first answer nothing is written and the call returns at once. Tool results are
        cut at 400,000 characters. Raises StateDiskError; the messages then stay in memory and go
        out with the next write.
        """
        self._must_live()
        made = [self._new("message", message=guarded(message)) for message in messages]
        await self._commit()
        return tuple(entry.id for entry in made)

    def append_soon(self, *messages: Message) -> None:
        """Add messages that are safe elsewhere: they go out with the next write, or by themselves
        within SOON_S. A failed write is made up for by the next one. Raises SessionEnded."""
        self._must_live()
        for message in messages:
            self._new("message", message=guarded(message))
        if self._answered and self._soon is None:
            self._soon = self._world.clock.call_later(SOON_S, self._write_soon)

    def _write_soon(self) -> None:
        self._soon = None
        if self._unwritten and self._writer.idle:
            self._writer.submit(None)

    async def append_custom(self, custom_type: str, data: Mapping[str, object]) -> str:
        """Add a `custom` entry (never part of a model's context); its id."""
        return await self.append_entry("custom", {"customType": custom_type, "data": dict(data)})

    async def append_entry(self, kind: str, data: Mapping[str, object]) -> str:
        """Add an entry of another kind (model_change, compaction …) by its fields; its id."""
        self._must_live()
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

    async def end(self) -> None:
        """Write what waits and take nothing more: the file becomes an archive. Never raises."""
        self._ended = True
        await self.close()

    def _must_live(self) -> None:
        if self._ended:
            raise SessionEnded(
                f"The session of {self.path.name} was reset or deleted meanwhile.",
                hint="Send the message again: it opens the new session.",
            )

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
        if self._told is not None and (made := stored(entry)) is not None:
            self._told(self._before + self._tree.shown(), made)
        return entry

    def _add(self, entry: Entry) -> None:
        self._tree.add(entry)
        self._answered = self._answered or has_assistant(entry)

    def _new_id(self) -> str:
        # A file that is not in memory whole may hold any short id already.
        length = 8 if self.whole else 16
        while (fresh := self._world.ids.hex(length)) in self._tree:
            pass
        return fresh

    async def _commit(self) -> None:
        if self._answered and self._unwritten:
            await self._writer.put(None)

    async def _write(self, batch: Sequence[None]) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if not self._unwritten:
            return
        try:
            await self._write_out()
        except Exception as error:  # its waiter gets it too, unless the wait was given up
            log.error("transcript write failed: %s", error)
            raise

    async def _write_out(self) -> None:
        if self._mark is None:
            await self._before_first_write()
        lock = self._locks.hold(self.path) if self._locks is not None else nullcontext()
        async with lock:
            for _ in range(OUTSIDERS):
                if await self._append():
                    return
                self._install(await self._reader.load())
                if not self._answered:
                    return  # somebody took the file away: a new one begins with an answer
        raise SessionEnded(f"{self.path.name} is written to by another process all the time.")

    async def _append(self) -> bool:
        entries = tuple(self._unwritten)
        header = None if self._mark is not None else self._header
        # A lone user message is in the inbox journal already: it need not wait for the disk twice.
        fsync = self._durable and any(worth_fsync(entry) for entry in entries)
        append = self._file.append
        mark = await self._world.disk.run(append, header, entries, self._mark, fsync=fsync)
        if mark is None:
            return False
        self._mark = mark
        del self._unwritten[: len(entries)]
        return True
