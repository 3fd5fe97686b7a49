"""Whether change events arrive for a folder: they do not on network and most FUSE mounts.

Reads the kernel's mount table text; knows no watcher.
"""

from __future__ import annotations

import re
from pathlib import Path

MOUNT_TABLE = Path("/proc/self/mountinfo")

_EVENTLESS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "virtiofs", "vboxsf", "prl_fs", "ncpfs"}
)
_ESCAPE = re.compile(r"\\([0-7]{3})")


def mount_table() -> str:
    """The table of this process; empty where there is none (not Linux)."""
    try:
        return MOUNT_TABLE.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""


def eventless_kind(path: Path, table: str) -> str | None:
    """The file system type when `path` (real, absolute) lies on one without events, else None."""
    kind = _kind_of(path, table)
    return kind if kind in _EVENTLESS or kind.startswith("fuse.") else None


def _kind_of(path: Path, table: str) -> str:
    """Type of the mount that holds `path`; the last of equally deep mounts is on top."""
    best, kind = -1, ""
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = Path(_ESCAPE.sub(lambda m: chr(int(m.group(1), 8)), fields[4]))
        depth = len(point.parts)
        if depth >= best and (point == path or point in path.parents):
            best, kind = depth, right.split(" ")[0]
    return kind
