"""The file of a transcript: open and mend it, append to it. Synchronous: runs on the disk executor.

Nothing is lost silently: cut bytes and rewritten files are kept beside the transcript.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from claw_engine.sessions.entries import Entry, Header, Json
from claw_engine.storage.errors import disk_error
from claw_engine.storage.jsonl import LineFile, repair
from claw_engine.storage.text import to_line
from claw_engine.world import Disk


@dataclass(frozen=True, slots=True)
class Opened:
    """Bytes of a transcript after its end was mended; None = there is no file yet."""

    data: bytes | None
    repairs: tuple[str, ...] = ()


class TranscriptFile:
    """One transcript on disk."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._lines = LineFile(disk, path)
        self.path = path

    def load(self, now_ms: int) -> Opened:
        """Mend the torn end, if any, and read the file. Raises StateDiskError."""
        mended = repair(self._disk, self.path, now_ms)
        notes = (mended.sentence(),) if mended is not None else ()
        try:
            if not self._disk.exists(self.path):
                return Opened(None, notes)
            return Opened(self._disk.read_bytes(self.path) or None, notes)
        except OSError as error:
            raise disk_error(error, self.path) from error

    def rewrite(self, old: bytes, header: Header, lines: Iterable[Json], now_ms: int) -> Path:
        """Give the file a header and whole lines; the old file is kept, its path returned.

        The name of the kept file is OpenClaw's for repaired transcripts. Raises StateDiskError.
        """
        backup = self.path.with_name(f"{self.path.name}.bak-{os.getpid()}-{now_ms}")
        try:
            self._disk.replace(backup, old)
            self._disk.replace(self.path, b"".join(map(to_line, (header.to_json(), *lines))))
        except OSError as error:
            raise disk_error(error, self.path) from error
        return backup

    def append(self, header: Header | None, entries: Sequence[Entry], *, fsync: bool) -> None:
        """Append entries in one piece, behind a header for a new file. Raises StateDiskError."""
        if header is not None:
            try:
                self._disk.mkdir(self.path.parent, 0o700)
            except OSError as error:
                raise disk_error(error, self.path) from error
        first = [header.to_json()] if header is not None else []
        lines = [*first, *(entry.to_json() for entry in entries)]
        self._lines.append(b"".join(map(to_line, lines)), fsync=fsync)
