"""What can go wrong with the state disk, in words for the operator.

ClawError
└── StateDiskError       any read or write of the state directory that failed
    ├── StateDiskFull    ENOSPC, EDQUOT, EFBIG: space is missing
    └── LockUnsupported  the file system keeps no locks (see locks.py)
"""

from __future__ import annotations

import errno
from pathlib import Path

from claw_engine.errors import ClawError


class StateDiskError(ClawError):
    """A read or write of the state directory failed; nothing half-written was left behind.

    `path` is the file, `number` the errno (0 = unknown). Retryable: the same call may work later.
    """

    retryable = True

    def __init__(self, title: str, *, hint: str = "", path: Path, number: int = 0) -> None:
        name = errno.errorcode.get(number, "")
        super().__init__(title, hint=hint, details={"path": str(path), "errno": name})
        self.path = path
        self.number = number


class StateDiskFull(StateDiskError):
    """No space left (or no quota) where the state directory lives."""


class LockUnsupported(StateDiskError):
    """The file system cannot hold the engine's lock, so two engines could not see each other."""

    retryable = False


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_WORDS: dict[int, tuple[str, str]] = {
    errno.EIO: ("The state disk reports input/output errors", "Check the disk (dmesg, SMART)."),
    errno.EROFS: ("The state directory is on a read-only file system", "Mount it writable."),
    errno.EACCES: ("No permission for the state directory", "Check owner and mode of this file."),
    errno.EPERM: ("No permission for the state directory", "Check owner and mode of this file."),
    errno.ENOENT: ("A file or folder of the state directory is missing", "Was it moved away?"),
}


def disk_error(error: OSError, path: Path) -> StateDiskError:
    """The typed error for an OSError met at `path`."""
    number = error.errno or 0
    if number in _FULL:
        return StateDiskFull(
            f"The state disk is full: could not write {path}.",
            hint="Free some space, then send again; nothing was half-written.",
            path=path,
            number=number,
        )
    words, hint = _WORDS.get(number, (f"The state disk failed ({error.strerror or error})", ""))
    return StateDiskError(f"{words}: {path}.", hint=hint, path=path, number=number)
