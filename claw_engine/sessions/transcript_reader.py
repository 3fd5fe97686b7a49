"""Reads a transcript into entries: a small file whole, a large one from its end backwards.

What a model reads stands at the end of the file: from the last compaction on, or as much as its
window holds. So opening a transcript of 50 MB costs what opening a small one does. Work is sliced;
the loop is never held.
"""

from __future__ import annotations

import asyncio
from time import perf_counter

from msgspec import Struct, field
from msgspec.structs import replace

from claw_engine.sessions.entries import (
    VERSION,
    Entry,
    Header,
    Json,
    parse,
    read_entry,
    read_header,
)
from claw_engine.sessions.transcript_file import Mark, Opened, TranscriptFile
from claw_engine.sessions.tree import Tree
from claw_engine.storage.jsonl import parse_line
from claw_engine.world import World

WHOLE = 256 * 1024
"""Bytes of a file that is always read whole."""
FIRST = 32 * 1024
"""Bytes read first from the end of a large file; each further step reads twice as many."""
OPEN_CHARS = 100_000
"""Characters of a talk that has no summary which are read first; who needs more asks for it."""
HEAD = 16 * 1024
"""Bytes read to find the header of a large file."""
SLICE_S = 0.002
"""Seconds of parsing before other tasks get a turn."""


class Loaded(Struct):
    """A transcript as read. Entries are in file order; those of an old file got ids.

    `rest` is the offset before which nothing was read (0 = all is here). `sound` says whether
    the file is version 3 with its header first; `bad` are the numbers of unreadable lines.
    `data` is the whole file, if it was read whole.
    """

    header: Header | None = None
    entries: list[Entry] = field(default_factory=list)
    sound: bool = True
    bad: list[int] = field(default_factory=list)
    data: bytes | None = None
    rest: int = 0
    mark: Mark = None
    repairs: tuple[str, ...] = ()


class TranscriptReader:
    """Reads one file. Loop thread; the file itself is touched on the disk executor."""

    def __init__(self, world: World, file: TranscriptFile, whole: int = WHOLE) -> None:
        self._world = world
        self._file = file
        self._whole = whole

    async def load_whole(self) -> Loaded:
        """The whole file. Raises StateDiskError."""
        return await self._all(await self._open(self._world.clock.now_ms(), 1 << 62))

    async def load(self) -> Loaded:
        """Everything a model reads or OPEN_CHARS of it, or the whole file. Raises
        StateDiskError."""
        now = self._world.clock.now_ms()
        opened = await self._open(now, self._whole)
        if opened.start:
            loaded = await self._from_the_end(opened)
            if loaded is not None:
                return loaded
            again = await self._open(now, 1 << 62)
            opened = replace(again, repairs=opened.repairs + again.repairs)
        return await self._all(opened)

    async def _open(self, now: int, whole: int) -> Opened:
        opened = await self._world.disk.run(self._file.load, now, whole, FIRST, HEAD)
        if opened.data and b"\0" in opened.data:  # no JSON holds one
            said = f"{self._file.path.name}: NUL bytes of a power loss; whole lines were read."
            opened = replace(opened, repairs=(*opened.repairs, said))
        return opened

    async def _all(self, opened: Opened) -> Loaded:
        loaded = Loaded(data=opened.data, mark=opened.mark, repairs=opened.repairs)
        previous: str | None = None
        seen: set[str] = set()
        began = perf_counter()
        for number, _, raw in parse(opened.data or b""):
            if perf_counter() - began > SLICE_S:
                await asyncio.sleep(0)
                began = perf_counter()
            if isinstance(raw, str):
                loaded.bad.append(number)
                continue
            found = read_header(raw)
            if found is not None:  # a later header is noise: OpenClaw's injector leaves some
                loaded.sound = loaded.sound and (loaded.header is not None or number == 1)
                loaded.header = loaded.header or found
                continue
            entry = read_entry(raw, previous)
            if not entry.id:
                loaded.sound = False
                entry = replace(entry, id=self._new_id(seen), parent_id=previous)
            loaded.entries.append(entry)
            seen.add(entry.id)
            previous = entry.id
        header = loaded.header
        loaded.sound = loaded.sound and header is not None and header.version >= VERSION
        return loaded

    def _new_id(self, seen: set[str]) -> str:
        while (fresh := self._world.ids.hex(8)) in seen:
            pass
        return fresh

    async def _from_the_end(self, opened: Opened) -> Loaded | None:
        """The end of a large file as far as a model reads it; None: it must be read whole."""
        head = opened.head.partition(b"\n")
        raw = parse_line(head[0]) if head[1] else "the header is too long"
        header = read_header(raw) if isinstance(raw, dict) else None
        if header is None or header.version < VERSION:
            return None
        data = opened.data or b""
        end = opened.start + len(data)
        loaded = Loaded(header, mark=opened.mark, rest=end, repairs=opened.repairs)
        step = await self._taken(loaded, data, opened.start)
        size = FIRST
        while step:
            tree = Tree(partial=bool(loaded.rest))
            for entry in loaded.entries:
                tree.add(entry)
            if tree.context_reaches(OPEN_CHARS):
                return loaded
            size *= 2
            step = await self.older(loaded, size)
        return None

    async def older(self, loaded: Loaded, size: int) -> bool:
        """Put about `size` bytes of older lines before what is loaded.

        False when the file must be read whole instead. Raises StateDiskError.
        """
        start = max(0, loaded.rest - size)
        data = await self._world.disk.run(self._file.read, start, loaded.rest)
        return await self._taken(loaded, data, start)

    async def _taken(self, loaded: Loaded, data: bytes, start: int) -> bool:
        cut = data.find(b"\n") + 1 if start else 0
        if start and not cut:  # one line is longer than the piece: the next piece is larger
            return True
        found: list[Entry] = []
        began = perf_counter()
        for _, _, raw in parse(data[cut:]):
            if perf_counter() - began > SLICE_S:
                await asyncio.sleep(0)
                began = perf_counter()
            if isinstance(raw, str) or raw.get("type") == "session":
                continue
            if not _is_linked(raw):
                return False
            found.append(read_entry(raw, None))
        loaded.entries[:0] = found
        loaded.rest = start + cut if start else 0
        return True


def _is_linked(raw: Json) -> bool:
    return bool(raw.get("id")) and "parentId" in raw
