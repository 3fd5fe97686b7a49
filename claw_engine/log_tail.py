"""The end of the engine's log, piece by piece, as `logs.tail` has it (gateway digest §1.11).

Needs no engine: `claw logs` reads with it after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
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
        lines before these were left out.
        """
        return await self._disk.run(self.read, cursor, limit, max_bytes)

    def read(
        self, cursor: int | None = None, limit: int = LIMIT, max_bytes: int = MAX_BYTES
    ) -> Mapping[str, object]:
        """`tail`, blocking."""
        path = self._newest()
        if path is None:
            return {"file": str(self._folder), "cursor": 0, "size": 0, "lines": [],
                    "truncated": False, "reset": bool(cursor)}  # fmt: skip
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
        lines = data[:end].decode("utf-8", "replace").splitlines()
        if len(lines) > limit:
            lines, truncated = lines[-limit:], True
        return {
            "file": str(path),
            "cursor": size - (len(data) - end),
            "size": size,
            "lines": lines,
            "truncated": truncated,
            "reset": reset,
        }

    def _newest(self) -> Path | None:
        try:
            names = [n for n in self._disk.listdir(self._folder)
                     if n.startswith("claw-") and n.endswith(".log")]  # fmt: skip
        except FileNotFoundError:
            return None
        return self._folder / max(names) if names else None
