"""The rows of the session list: made once, and again when something about a session changed.

Knows entries, open transcripts and the ends of files; not the index, and no run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from claw_engine.messages import Message
from claw_engine.paths import contains
from claw_engine.sessions.entries import read_entry
from claw_engine.sessions.entry import SessionEntry, named_path
from claw_engine.sessions.rows import SessionRow, preview_of, row
from claw_engine.sessions.transcript import Transcript
from claw_engine.storage.errors import StateDiskError
from claw_engine.storage.jsonl import parse_line, tail
from claw_engine.world import World

LOOKED_AGAIN_S = 2.0
"""Seconds for which a file is taken to be as it was. What this engine writes and what another
program tells in the index is seen at once; only a bare append by somebody else may wait so long."""
BATCH = 32
"""Ends of files read in one disk call."""
MADE = 64
"""Rows made before other tasks get a turn."""
PREVIEW_LINES = 12
"""Lines read from the end of a transcript to find something to show."""
NEVER = float("-inf")

Mark: TypeAlias = tuple[int, int]
"""Size and time of change of a file; two files with the same mark are taken for one."""
NO_MARK: Mark = (-1, -1)


class _End(Struct, eq=False):
    """What the end of one transcript says. `looked` is monotonic seconds."""

    folder: Path
    path: Path
    mark: Mark = NO_MARK
    text: str = ""
    looked: float = NEVER


class _Listed(Struct, eq=False):
    entry: SessionEntry
    end: _End | None
    row: SessionRow
    shown: str = ""


class Listing:
    """Loop thread only. `live` are the transcripts in memory."""

    def __init__(
        self,
        world: World,
        folder: Callable[[SessionEntry], Path],
        live: Mapping[Path, Transcript],
    ) -> None:
        self._world = world
        self._folder = folder
        self._live = live
        self._listed: dict[str, _Listed] = {}
        self._ends: dict[Path, _End] = {}

    async def rows(self, entries: Sequence[SessionEntry]) -> tuple[SessionRow, ...]:
        """A row for each entry, in the same order; the same object while nothing changed."""
        listed = []
        made = 0
        for entry in entries:
            known = self._listed.get(entry.key)
            if known is None or known.entry is not entry:
                known = self._make(entry)
                made += 1
                if made % MADE == 0:
                    await asyncio.sleep(0)
            listed.append(known)
        await self._look(listed)
        for known in listed:
            text = known.end.text if known.end is not None else ""
            if text != known.shown:
                known.row, known.shown = row(known.entry, text), text
        return tuple([known.row for known in listed])

    def look_again(self, path: Path) -> None:
        """The transcript is another one now, or written by others than its live object."""
        end = self._ends.get(path)
        if end is not None:
            end.mark, end.text, end.looked = NO_MARK, "", NEVER

    def keep(self, entries: Sequence[SessionEntry]) -> None:
        """Forget sessions that are no more, once they are many."""
        if len(self._listed) > 2 * len(entries) + MADE:
            wanted = {entry.key for entry in entries}
            self._listed = {k: known for k, known in self._listed.items() if k in wanted}
            ends = [known.end for known in self._listed.values()]
            self._ends = {end.path: end for end in ends if end is not None}

    def _make(self, entry: SessionEntry) -> _Listed:
        folder = self._folder(entry)
        path = named_path(folder, entry)
        end = self._ends.get(path) if path is not None else None
        if end is None and path is not None:
            end = self._ends[path] = _End(folder, path)
        if end is not None:
            end.looked = NEVER  # an entry changes with its transcript
        known = self._listed[entry.key] = _Listed(entry, end, row(entry))
        return known

    async def _look(self, listed: Sequence[_Listed]) -> None:
        """Bring the ends of these sessions up to date."""
        now = self._world.clock.monotonic()
        for path, talk in list(self._live.items()):
            if (end := self._ends.get(path)) is not None:
                end.text = preview_of(m.message for m in reversed(talk.history()))
                end.mark, end.looked = NO_MARK, now
        since = now - LOOKED_AGAIN_S
        old = [k.end for k in listed if k.end is not None and k.end.looked <= since]
        for start in range(0, len(old), BATCH):
            some = old[start : start + BATCH]
            marks = [(end.path, end.folder, end.mark) for end in some]
            found = await self._world.disk.run(self._read, marks)
            for end, read in zip(some, found, strict=True):
                if end.path not in self._live:
                    end.looked = now
                    if read is not None:
                        end.mark, end.text = read

    def _read(self, ends: Sequence[tuple[Path, Path, Mark]]) -> list[tuple[Mark, str] | None]:
        """Disk thread. None for a file that is as it was."""
        return [self._read_one(*one) for one in ends]

    def _read_one(self, path: Path, folder: Path, mark: Mark) -> tuple[Mark, str] | None:
        try:
            stat = self._world.disk.stat(path)
            new = (stat.st_size, stat.st_mtime_ns)
            if new == mark:
                return None
            if not contains(folder, path):  # a symlink out of the folder is never opened
                return NO_MARK, ""
            lines = tail(self._world.disk, path, PREVIEW_LINES)
        except (OSError, StateDiskError):
            return NO_MARK, ""
        return new, preview_of(_messages(reversed(lines)))


def _messages(lines: Iterable[bytes]) -> Iterator[Message]:
    for line in lines:
        raw = parse_line(line)
        message = read_entry(raw, None).message if isinstance(raw, dict) else None
        if message is not None:
            yield message
