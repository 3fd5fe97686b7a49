"""The end of the engine's log, piece by piece, as `logs.tail` has it (gateway digest §1.11).

Needs no engine: `claw logs` reads with it after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from claw_engine.world import Disk

LIMIT = 500
MAX_BYTES = 250_000


class LogTail:
    """`folder` holds a file for each day."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._folder = folder

    async def tail(
        self, cursor: int | None = None, limit: int = LIMIT, max_bytes: int = MAX_BYTES
    ) -> Mapping[str, object]:
        """Lines after `cursor` (a byte of the newest file), at most `limit`, the last ones.

        `reset`: the cursor is of another file or too far back, so this is the tail. `truncated`:
        lines before these were left out. `start`: the byte at which they begin.
        """
        return await self._disk.run(self.read, cursor, limit, max_bytes)

    def read(
        self, cursor: int | None = None, limit: int = LIMIT, max_bytes: int = MAX_BYTES
    ) -> Mapping[str, object]:
        """`tail`, blocking."""
        path = self._newest()
        if path is None:
            return {"file": str(self._folder), "cursor": 0, "size": 0, "lines": [],
                    "truncated": False, "reset": bool(cursor), "start": 0}  # fmt: skip
        size = self._disk.stat(path).st_size
        reset = cursor is not None and (cursor > size or size - cursor > max_bytes)
        start = max(0, size - max_bytes) if cursor is None or reset else cursor
        # One byte more tells whether the first line is whole.
        from_byte = start - 1 if start else 0
        data = self._disk.read_from(path, from_byte, size - from_byte)
        truncated = bool(start) and (cursor is None or reset)
        if start:
            whole = data[:1] == b"\n"
            data = data[1:] if whole else data.partition(b"\n")[2]
        end = data.rfind(b"\n") + 1  # what has no end yet comes with the next piece
        lines, left = _pieces(data[:end]), 0
        if len(lines) > limit:
            left = sum(map(len, lines[:-limit]))
            lines, truncated = lines[-limit:], True
        return {
            "file": str(path),
            "cursor": size - (len(data) - end),
            "size": size,
            "lines": _decoded(lines),
            "truncated": truncated,
            "reset": reset,
            "start": size - len(data) + left,
        }

    async def page(
        self, file: str, at: int, *, older: bool, limit: int = LIMIT, max_bytes: int = MAX_BYTES
    ) -> Mapping[str, object]:
        """Lines beside byte `at` of `file` (a name that an answer had): the last ones before it,
        or the first ones from it on. Past the end of a file the day beside it goes on.

        `start` and `end`: where they stand in the `file` of the answer; `newest`: no later file is
        there. No lines: nothing more that way. Raises FileNotFoundError for any other file.
        """
        return await self._disk.run(self.read_page, file, at, older, limit, max_bytes)

    def read_page(
        self, file: str, at: int, older: bool, limit: int = LIMIT, max_bytes: int = MAX_BYTES
    ) -> Mapping[str, object]:
        """`page`, blocking."""
        names = self._names()
        name = Path(file).name
        if name not in names:
            raise FileNotFoundError(2, "no such file among the logs", name)
        place, size = names.index(name), self._size(name)
        at = min(at, size)
        if older and at == 0 and place > 0:
            place -= 1
            at = size = self._size(names[place])
        elif not older and at == size and place + 1 < len(names):
            place += 1
            at, size = 0, self._size(names[place])
        path, last = self._folder / names[place], place + 1 == len(names)
        read = self._before if older else self._after
        start, lines = read(path, at, max_bytes, last)
        if len(lines) > limit:
            start += sum(map(len, lines[:-limit])) if older else 0
            lines = lines[-limit:] if older else lines[:limit]
        end = start + sum(map(len, lines))
        return {"file": str(path), "start": start, "end": end, "size": size,
                "newest": last, "lines": _decoded(lines)}  # fmt: skip

    def _before(self, path: Path, at: int, max_bytes: int, last: bool) -> tuple[int, list[bytes]]:
        start = max(0, at - max_bytes)
        # One byte more tells whether the first line is whole, as above.
        first = max(0, start - 1)
        data = self._disk.read_from(path, first, at - first)
        if start:
            cut = data.find(b"\n", 0, len(data) - 1) + 1
            # A line longer than the piece comes in parts: else there would be no way past it.
            data = data[cut or 1 :]
        return at - len(data), _pieces(data)

    def _after(self, path: Path, at: int, max_bytes: int, last: bool) -> tuple[int, list[bytes]]:
        data = self._disk.read_from(path, at, max_bytes)
        end = data.rfind(b"\n") + 1
        if not end and (len(data) == max_bytes or not last):
            return at, _pieces(data)
        return at, _pieces(data[:end])

    def _size(self, name: str) -> int:
        return self._disk.stat(self._folder / name).st_size

    def _newest(self) -> Path | None:
        names = self._names()
        return self._folder / names[-1] if names else None

    def _names(self) -> list[str]:
        """The files, the oldest first."""
        try:
            return sorted(n for n in self._disk.listdir(self._folder)
                          if n.startswith("claw-") and n.endswith(".log"))  # fmt: skip
        except FileNotFoundError:
            return []


def _pieces(data: bytes) -> list[bytes]:
    """Lines with their ends; what is left over has none."""
    *lines, rest = data.split(b"\n")
    out = [line + b"\n" for line in lines]
    return [*out, rest] if rest else out


def _decoded(lines: Sequence[bytes]) -> list[str]:
    return [line.decode("utf-8", "replace").rstrip("\r\n") for line in lines]
