"""Who may write the state directory: our lock, held for life, and OpenClaw's lock files.

Ours is a `flock` on one file that also says who holds it. OpenClaw's are files created beside
transcripts and stores (`x.jsonl.lock`, `sessions.json.lock`); they are read here, and made in
foreign_lock.py.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.storage.errors import LockUnsupported, disk_error

FOREIGN_STALE_MS = 30 * 60 * 1000
"""OpenClaw takes a lock file older than 30 minutes for abandoned (gateway digest §3.6)."""

EMPTY_STALE_MS = 10_000
"""OpenClaw writes a lock's owner right after it made the file. One that is still empty after the
time it would wait for another was left by a gateway that stopped in between (seen with 2026.2.26
at SIGTERM, docs/interop)."""

OURS = "claw-tui"
"""Lock files that an engine of ours made say so in `by`."""

Identity: TypeAlias = tuple[int, int, int]
"""Device, inode and mtime (ns) of a file."""

_BUSY = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})


class HeldBy(Struct, frozen=True):
    """Another process holds the lock: its pid (0 = unknown) and what it wrote about itself."""

    pid: int
    info: Mapping[str, object]


class ForeignLock(Struct, frozen=True):
    """A lock file: who made it (pid 0 = it does not say), since when (wall ms).

    Without a readable date `created_ms` is the file's mtime. `ours`: an engine of this program
    made it.
    """

    path: Path
    pid: int
    created_ms: int
    ours: bool = False
    identity: Identity = (0, 0, 0)
    empty: bool = False


class Lock:
    """The held lock; it ends with `release` or with the process. Children do not inherit it."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def describe(self, info: Mapping[str, object]) -> None:
        """Write who holds the lock: {pid, startedAt, host, door}. Raises StateDiskError."""
        text = json.dumps({"pid": os.getpid(), **info}).encode() + b"\n"
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, text, 0)
            os.fsync(self._fd)
        except OSError as error:
            raise disk_error(error, self.path) from error

    def release(self) -> None:
        """Give the lock back; the file stays, empty. Safe to call twice."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            os.ftruncate(fd, 0)
        except OSError:
            pass  # an old description is harmless: readers check that the pid lives
        finally:
            os.close(fd)


def acquire(path: Path, info: Mapping[str, object]) -> Lock | HeldBy:
    """Take the lock without waiting, or say who has it.

    Raises LockUnsupported when the file system has no working flock, StateDiskError otherwise.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            fd = os.open(path, flags, 0o600)
        except OSError as error:
            raise disk_error(error, path) from error
        keep = False
        try:
            if not _flock(fd, path):
                # Its pid may be unknown here (another container): what it wrote still counts.
                return _described(path) or HeldBy(0, {})
            if _same_file(fd, path):  # else it was replaced meanwhile: try the new one
                _prove_it_keeps_others_out(path, flags)
                lock = Lock(path, fd)
                lock.describe(info)
                keep = True
                return lock
        finally:
            if not keep:
                os.close(fd)


def holder(path: Path) -> HeldBy | None:
    """Who wrote the lock file last and still lives; None when nobody does. Takes no lock."""
    held = _described(path)
    return held if held is not None and pid_alive(held.pid) else None


def _described(path: Path) -> HeldBy | None:
    try:
        value = json.loads(path.read_bytes() or b"null")
    except (OSError, ValueError):
        return None
    pid = value.get("pid") if isinstance(value, dict) else None
    return HeldBy(pid, value) if isinstance(pid, int) else None


def pid_alive(pid: int) -> bool:
    """Whether a process of that id exists (of any user)."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        return False
    except PermissionError:
        return True
    return True


def foreign_locks(
    state_dir: Path, now_ms: int, alive: Callable[[int], bool] = pid_alive
) -> list[ForeignLock]:
    """OpenClaw's lock files below `state_dir` that are in force; those of our engines excluded.

    `now_ms` is wall time.
    """
    patterns = ("agents/*/sessions/*.jsonl.lock", "agents/*/sessions/sessions.json.lock")
    paths = sorted(p for pattern in patterns for p in state_dir.glob(pattern))
    locks = [lock for path in paths if (lock := read_foreign(path)) is not None]
    return [
        lock
        for lock in locks
        if lock.pid not in (0, os.getpid()) and not lock.ours
        if not is_stale(lock, now_ms, alive)
    ]


def is_stale(lock: ForeignLock, now_ms: int, alive: Callable[[int], bool] = pid_alive) -> bool:
    """Whether a lock counts for nothing: its process is gone, or it is older than 30 minutes.

    One that names no process is judged by its age alone (gateway digest §3.6).
    """
    if lock.empty and now_ms - lock.created_ms > EMPTY_STALE_MS:
        return True
    if now_ms - lock.created_ms > FOREIGN_STALE_MS:
        return True
    return lock.pid != 0 and not alive(lock.pid)


def identity_of(stat: os.stat_result) -> Identity:
    """Which file this is: an inode number alone is given out again at once."""
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns


def read_foreign(path: Path) -> ForeignLock | None:
    """What a lock file says; None when there is none."""
    try:
        stat = path.stat(follow_symlinks=False)
        text = path.read_bytes()
    except OSError:
        return None
    identity = identity_of(stat)
    since = int(stat.st_mtime * 1000)
    unreadable = ForeignLock(path, 0, since, identity=identity, empty=not text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return unreadable
    pid = value.get("pid") if isinstance(value, dict) else None
    if not isinstance(pid, int) or isinstance(pid, bool):
        return unreadable
    ours = value.get("by") == OURS
    try:
        created = datetime.fromisoformat(str(value.get("createdAt")))
    except ValueError:
        return replace(unreadable, pid=pid, ours=ours)
    return ForeignLock(path, pid, int(created.timestamp() * 1000), ours, identity)


def _flock(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise _unsupported(path, error.strerror or str(error), error.errno or 0) from error
    return True


def _same_file(fd: int, path: Path) -> bool:
    try:
        there = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _prove_it_keeps_others_out(path: Path, flags: int) -> None:
    """A second open of the file must be refused: some network mounts grant every lock."""
    probe = os.open(path, flags, 0o600)
    try:
        if _flock(probe, path):
            raise _unsupported(path, "a second lock on the same file was granted", 0)
    finally:
        os.close(probe)


def _unsupported(path: Path, why: str, number: int) -> LockUnsupported:
    return LockUnsupported(
        f"The file system of {path.parent} keeps no locks: {why}.",
        hint="Put the state directory on a local disk (--state-dir), then start again.",
        path=path,
        number=number,
    )
