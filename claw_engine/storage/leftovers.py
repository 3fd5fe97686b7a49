"""Temporary files of atomic writes that a crash cut short: removed at the next start.

They hold nothing: the rename that would have made them count did not happen. Synchronous: runs on
the disk executor, and only in the process that holds the directory's lock.
"""

from __future__ import annotations

from pathlib import Path

from claw_engine.patterns import late
from claw_engine.world import Disk

_OURS = late(
    r".+\.\d+\.[0-9a-f]{8}\.tmp"
    r"|.*[a-z]\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.tmp"
)
"""`<name>.<pid>.<8 hex>.tmp` of `Disk.replace`, `<name>.<uuid>.tmp` of files written in pieces.
OpenClaw's carry a pid and a UUID."""


def sweep(disk: Disk, folder: Path) -> tuple[str, ...]:
    """Remove our temporary files from a folder; their names. A disk that refuses is no error."""
    gone = []
    try:
        for name in disk.listdir(folder) if disk.exists(folder) else ():
            if _OURS.fullmatch(name):
                disk.unlink(folder / name, missing_ok=True)
                gone.append(name)
    except OSError:
        pass  # they only take room; the next start tries again
    return tuple(gone)
