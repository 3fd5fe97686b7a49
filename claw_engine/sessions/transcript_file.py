"""The file of a transcript: open and mend it, append to it. Synchronous: runs on the disk executor.

Nothing is lost silently: cut bytes and rewritten files are kept beside the transcript.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from claw_engine.sessions.entries import Entry, Header
from claw_engine.storage.errors import disk_error
from claw_engine.storage.jsonl import LineFile, repair
from claw_engine.storage.text import to_line
from claw_engine.world import Disk

Mark: TypeAlias = tuple[int, int] | None
"""Which state of a file: inode and size; None = there is no file."""


class Opened(Struct, frozen=True):
    """A transcript after its end was mended: its bytes from `start` on (None = no file yet).

    `head` is the beginning of a file that was not read whole.
    """

    data: bytes | None
    repairs: tuple[str, ...] = ()
    mark: Mark = None
    start: int = 0
    head: bytes = b""


class TranscriptFile:
    """One transcript on disk."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._lines = LineFile(disk, path)
        self.path = path

    def load(self, now_ms: int, whole: int, first: int, head: int) -> Opened:
        """Mend the torn end, if any, and read the file: all of it up to `whole` bytes, else its
        last `first` and its first `head` bytes. Raises StateDiskError."""
        mended = repair(self._disk, self.path, now_ms)
        notes = (mended.sentence(),) if mended is not None else ()
        try:
            mark = self._mark()
            if mark is None or not mark[1]:
                return Opened(None, notes, mark)
            size = mark[1]
            if size <= whole:
                return Opened(self._disk.read_bytes(self.path) or None, notes, mark)
            start = max(0, size - first)
            data = self._disk.read_from(self.path, start, size - start)
            return Opened(data, notes, mark, start, self._disk.read_from(self.path, 0, head))
        except OSError as error:
            raise disk_error(error, self.path) from error

    def read(self, start: int, end: int) -> bytes:
        """A piece of the file. Raises StateDiskError."""
        try:
            return self._disk.read_from(self.path, start, end - start)
        except OSError as error:
            raise disk_error(error, self.path) from error

    def rewrite(
        self, old: bytes, header: Header, lines: Iterable[bytes], now_ms: int
    ) -> tuple[Path, Mark]:
        """Give the file a header and whole lines; the old file is kept, its path returned.

        The name of the kept file is OpenClaw's for repaired transcripts. Raises StateDiskError.
        """
        backup = self.path.with_name(f"{self.path.name}.bak-{os.getpid()}-{now_ms}")
        try:
            self._disk.replace(backup, old)
            self._disk.replace(self.path, to_line(header.to_json()) + b"".join(lines))
            return backup, self._mark()
        except OSError as error:
            raise disk_error(error, self.path) from error

    def append(
        self, header: Header | None, entries: Sequence[Entry], expected: Mark, *, fsync: bool
    ) -> Mark:
        """Append entries in one piece, behind a header for a new file; the file's new mark.

        Returns None and writes nothing when another process has changed the file since
        `expected`. Raises StateDiskError.
        """
        try:
            if self._is_other(expected):
                return None
            if header is not None:
                self._disk.mkdir(self.path.parent, 0o700)
            first = [header.to_json()] if header is not None else []
            lines = [*first, *(entry.to_json() for entry in entries)]
            self._lines.append(b"".join(map(to_line, lines)), fsync=fsync)
            return self._mark()
        except OSError as error:
            raise disk_error(error, self.path) from error

    def changed(self, expected: Mark) -> bool:
        """Whether another process has changed the file since `expected`. Raises StateDiskError."""
        try:
            return self._is_other(expected)
        except OSError as error:
            raise disk_error(error, self.path) from error

    def _is_other(self, expected: Mark) -> bool:
        mark = self._mark()
        if mark == expected:
            return False
        if mark is None or not mark[1]:
            return expected is not None and bool(expected[1])
        size = expected[1] if expected is not None else 0
        if size < mark[1] and (expected is None or mark[0] == expected[0]):
            # Half a line is what a failed append of ours left: it is cut before the next one.
            return self._disk.read_from(self.path, mark[1] - 1, 1) == b"\n"
        return True

    def _mark(self) -> Mark:
        try:
            stat = self._disk.stat(self.path)
        except FileNotFoundError:
            return None
        return stat.st_ino, stat.st_size
