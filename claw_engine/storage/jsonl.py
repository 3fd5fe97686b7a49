"""Files of whole JSON lines: read, tail, append, and mend after a crash.

A line counts once its newline is on disk. What a crash leaves behind the last newline is cut (and
kept beside the file), NUL runs of a power loss are skipped, and a failed append leaves no half
line. Functions are synchronous: call them through `Disk.run` or at start-up. Knows no record kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from claw_engine.storage.errors import StateDiskError, disk_error
from claw_engine.world import Disk

CHUNK = 256 * 1024
"""Bytes read at a time by `iterate`."""
TAIL = 16 * 1024
"""Bytes `tail` reads first; each further try reads four times as many."""


class Skipped(Struct, frozen=True):
    """A line that is no JSON object: its byte offset, size and what is wrong with it."""

    offset: int
    size: int
    reason: str


class Torn(Struct, frozen=True):
    """What stands behind the last whole line: cut at `offset`, `size` bytes, or only unfinished.

    `complete` means that the last record is whole and merely lacks its newline.
    """

    offset: int
    size: int
    complete: bool


class Repair(Struct, frozen=True):
    """A torn end that was mended; `backup` holds the bytes that were cut, if any were."""

    path: Path
    offset: int
    size: int
    backup: Path | None

    def sentence(self) -> str:
        """What happened, for a log or a notice."""
        if self.backup is None:
            return f"{self.path.name}: the last line lacked its newline; it was added."
        return (
            f"{self.path.name}: {self.size} bytes of a torn last line were cut"
            f" and kept in {self.backup.name}."
        )


def parse_line(line: bytes) -> dict[str, object] | str:
    """The JSON object of one line, or the reason why it is none. NUL padding is stripped."""
    text = line.strip(b"\0 \t\r\n")
    if not text:
        return "only NUL bytes" if b"\0" in line else "empty line"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON ({type(error).__name__})"
    return value if isinstance(value, dict) else "not a JSON object"


def find_torn(data: bytes) -> Torn | None:
    """What is wrong with the end of `data` (a whole file, or its part from a line start on)."""
    start = data.rfind(b"\n") + 1
    if start == len(data):
        return None
    rest = data[start:]
    complete = rest[-1:] == b"}" and rest[:1] == b"{" and isinstance(parse_line(rest), dict)
    return Torn(start, len(rest), complete)


def repair(disk: Disk, path: Path, now_ms: int) -> Repair | None:
    """Mend the end of a file; None when it needs nothing or does not exist.

    A last record that only lacks its newline gets it. Anything else behind the last newline is
    first copied to `<name>.torn-<now_ms>`, then cut. Raises StateDiskError.
    """
    try:
        if not disk.exists(path):
            return None
        size = disk.stat(path).st_size
        start, data = _last_line_start(disk, path, size)
        torn = find_torn(data)
        if torn is None:
            return None
        offset = start + torn.offset
        if torn.complete:
            disk.append(path, b"\n", fsync=True)
            return Repair(path, offset, torn.size, None)
        backup = path.with_name(f"{path.name}.torn-{now_ms}")
        disk.replace(backup, data[torn.offset :])
        disk.truncate(path, offset)
        return Repair(path, offset, torn.size, backup)
    except OSError as error:
        raise disk_error(error, path) from error


def _last_line_start(disk: Disk, path: Path, size: int) -> tuple[int, bytes]:
    """Offset and bytes of the shortest known suffix that begins at a line start."""
    block = CHUNK // 4
    while True:
        start = max(0, size - block)
        data = disk.read_from(path, start, size - start)
        newline = data.find(b"\n")
        if start == 0:
            return 0, data
        if newline >= 0:
            return start + newline + 1, data[newline + 1 :]
        block *= 4


def iterate(disk: Disk, path: Path, *, chunk: int = CHUNK) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of every whole line (newline stripped), oldest first, in bounded memory.

    An unfinished last line is not yielded. Raises StateDiskError.
    """
    offset, rest = 0, b""
    while True:
        try:
            data = disk.read_from(path, offset + len(rest), chunk)
        except OSError as error:
            raise disk_error(error, path) from error
        if not data:
            return
        *lines, tail_ = (rest + data).split(b"\n")
        for line in lines:
            yield offset, line
            offset += len(line) + 1
        rest = tail_


def tail(disk: Disk, path: Path, lines: int) -> list[bytes]:
    """The last whole lines of a file (newlines stripped), oldest first; reads only its end.

    An unfinished last line does not count. Raises StateDiskError.
    """
    if lines <= 0:
        return []
    try:
        size = disk.stat(path).st_size
        block = TAIL
        while True:
            start = max(0, size - block)
            data = disk.read_from(path, start, size - start)
            if start == 0 or data.count(b"\n") > lines:
                break
            block *= 4
    except OSError as error:
        raise disk_error(error, path) from error
    whole = data.split(b"\n")[:-1]
    return whole[-lines:] if start == 0 else whole[1:][-lines:]


class LineFile:
    """An append-only file whose failed appends leave no trace.

    Synchronous and single-threaded: every call runs on the disk executor. Another writer's bytes
    are never cut: the good size is looked up before each append.
    """

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._good: int | None = None
        self.path = path

    def append(self, data: bytes, *, fsync: bool) -> int:
        """Append whole lines; the file's new size in bytes.

        Raises StateDiskError after the file was cut back to what it was (if even that fails, the
        cut is made up for before the next append).
        """
        try:
            if self._good is not None:  # an earlier cut is still owed
                self._disk.truncate(self.path, self._good)
            base = self._disk.stat(self.path).st_size
        except FileNotFoundError:
            base = 0
        except OSError as error:
            raise disk_error(error, self.path) from error
        self._good = base
        try:
            self._disk.append(self.path, data, fsync=fsync)
        except OSError as error:
            self._cut(base)
            raise disk_error(error, self.path) from error
        self._good = None
        return base + len(data)

    def _cut(self, base: int) -> None:
        try:
            if self._disk.exists(self.path):
                self._disk.truncate(self.path, base)
        except OSError:
            return  # still owed: self._good stays set
        self._good = None


__all__ = [
    "CHUNK",
    "LineFile",
    "Repair",
    "Skipped",
    "StateDiskError",
    "Torn",
    "find_torn",
    "iterate",
    "parse_line",
    "repair",
    "tail",
]
