"""A disk that fails the hard way: half lines stay behind, and even the cut may fail."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from claw_engine.world import RealDisk


class HalfLineDisk(RealDisk):
    """While `broken`, an append leaves `short` bytes and raises; `uncuttable` fails truncation."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.uncuttable = False
        self.short = 0
        self.error = errno.ENOSPC
        self.appends: list[tuple[str, bool]] = []

    def append(self, path: Path, data: bytes, *, fsync: bool, mode: int = 0o600) -> None:
        self.appends.append((path.name, fsync))
        if not self.broken:
            super().append(path, data, fsync=fsync, mode=mode)
            return
        super().append(path, data[: self.short], fsync=False, mode=mode)
        raise OSError(self.error, os.strerror(self.error), str(path))

    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        if self.broken:
            raise OSError(self.error, os.strerror(self.error), str(path))
        super().replace(path, data, mode=mode)

    def truncate(self, path: Path, size: int) -> None:
        if self.uncuttable:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        super().truncate(path, size)
