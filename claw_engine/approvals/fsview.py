"""How the decision core sees files: resolve, identify, hash, and who could write them.

`FsView` is the seam; `RealFs` reads the machine's file system. Blocking: call it on the disk
executor. It knows nothing of commands or rules.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

# Above this a file is identified by size, times and both ends instead of all of its bytes.
FULL_HASH_BYTES = 16 * 1024 * 1024
SHEBANG_BYTES = 256
"""As far as the kernel reads a script's first line."""
_EDGE_BYTES = 1024 * 1024
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/")
_LOCAL = "/usr/local/"


class FileId(Struct, frozen=True):
    """A regular file as found; `real` is its path with all symlinks resolved."""

    real: str
    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int
    executable: bool


class FsView(Protocol):
    """What the decision core may ask about files. No method raises OSError."""

    def file(self, path: str) -> FileId | None:
        """The regular file behind `path` (symlinks followed), None when there is none."""

    def file_in(self, folder: str, name: str) -> FileId | None:
        """The same for `name` in a folder whose real path is `folder`: cheaper."""

    def directory(self, path: str) -> tuple[str, int, int] | None:
        """Real path, device and inode of a directory, None when it is none."""

    def sha256(self, file: FileId) -> str | None:
        """Hex digest of the content, None when it cannot be read."""

    def shebang(self, file: FileId) -> tuple[str, ...]:
        """The words of the `#!` line of a script, empty for any other file."""

    def writable(self, file: FileId) -> bool:
        """Whether what the agent starts could change what this path holds."""

    def writable_folder(self, path: str) -> bool:
        """Whether what the agent starts could put files there (also when it does not exist)."""

    def is_system(self, file: FileId) -> bool:
        """Whether the file lies in a directory of the operating system."""


class RealFs:
    """The real file system; any thread. Hashes of system files are kept by identity and times.

    A hash is not cached for other files: a file rewritten twice within one tick of the kernel's
    clock keeps its times, and those are the files that an agent can rewrite.
    """

    def __init__(self, *, uid: int | None = None, cache_size: int = 512) -> None:
        self._uid = os.getuid() if uid is None else uid
        self._cache: OrderedDict[tuple[int, ...], str] = OrderedDict()
        self._cache_size = cache_size
        self._shebangs: dict[tuple[int, ...], tuple[str, ...]] = {}

    def file(self, path: str) -> FileId | None:
        real, info = _look(path)
        return _identified(real, info) if info and stat.S_ISREG(info.st_mode) else None

    def file_in(self, folder: str, name: str) -> FileId | None:
        path = f"{folder}/{name}" if folder != "/" else f"/{name}"
        try:
            info = os.lstat(path)
        except (OSError, ValueError):
            return None
        if stat.S_ISLNK(info.st_mode):
            return self.file(path)
        return _identified(path, info) if stat.S_ISREG(info.st_mode) else None

    def directory(self, path: str) -> tuple[str, int, int] | None:
        real, info = _look(path)
        if info is None or not stat.S_ISDIR(info.st_mode):
            return None
        return real, info.st_dev, info.st_ino

    def sha256(self, file: FileId) -> str | None:
        key = (file.dev, file.ino, file.size, file.mtime_ns, file.ctime_ns)
        cached = self._cache.get(key)
        if cached is not None:
            with contextlib.suppress(KeyError):  # another thread made room meanwhile
                self._cache.move_to_end(key)
            return cached
        try:
            digest = _digest(file)
        except OSError:
            return None
        if digest is not None and self.is_system(file):
            self._cache[key] = digest
            if len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return digest

    def shebang(self, file: FileId) -> tuple[str, ...]:
        key = (file.dev, file.ino, file.size, file.mtime_ns, file.ctime_ns)
        known = self._shebangs.get(key)
        if known is not None:
            return known
        try:
            found = _shebang(file)
        except OSError:
            # Where it runs all the same, it is no script: an interpreter could not read it either.
            return ()
        if self.is_system(file) and len(self._shebangs) < self._cache_size:
            self._shebangs[key] = found
        return found

    def writable(self, file: FileId) -> bool:
        """True when our user could write or replace the file.

        Root can write everything, so for root "cannot" means what the file tools' rules protect:
        the operating system's directories. `/usr/local` and `/opt` do not count, because package
        managers and install scripts of every kind put files there.
        """
        if self._uid == 0:
            return not self.is_system(file)
        return any(map(self._may_write, _upwards(file.real)))

    def writable_folder(self, path: str) -> bool:
        try:
            real = _real(path)
        except (OSError, ValueError):
            real = os.path.realpath(path)  # as far as it exists
        if self._uid == 0:
            return not f"{real}/".startswith(_SYSTEM) or f"{real}/".startswith(_LOCAL)
        return any(map(self._may_write, _upwards(real)))

    def is_system(self, file: FileId) -> bool:
        return file.real.startswith(_SYSTEM) and not file.real.startswith(_LOCAL)

    def _may_write(self, path: str) -> bool:
        try:
            owner = os.stat(path).st_uid
        except OSError:
            return True  # it changed under our eyes
        return owner == self._uid or os.access(path, os.W_OK)


def _look(path: str) -> tuple[str, os.stat_result | None]:
    """The real path and what is there; None when nothing is."""
    try:
        real = _real(path)
        return real, os.stat(real)
    except (OSError, ValueError):
        return path, None


def _identified(real: str, info: os.stat_result) -> FileId:
    return FileId(
        real,
        info.st_dev,
        info.st_ino,
        info.st_size,
        info.st_mtime_ns,
        info.st_ctime_ns,
        os.access(real, os.X_OK),
    )


def _real(path: str) -> str:
    """`path` with all symlinks resolved, as the kernel did it: a third of the time of a look at
    each part. Raises OSError when nothing is there, ValueError for a path that can be none."""
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)  # opens no device and waits for no pipe
    try:
        real = os.readlink(f"/proc/self/fd/{handle}")
    except FileNotFoundError:  # no /proc here
        real = ""
    finally:
        os.close(handle)
    return real if real.startswith("/") else os.path.realpath(path, strict=True)


def _upwards(path: str) -> Iterator[str]:
    """An absolute path, and each folder above it."""
    yield path
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _shebang(file: FileId) -> tuple[str, ...]:
    """As the kernel reads it: an interpreter and at most one argument. Raises OSError."""
    handle = os.open(file.real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        line = os.read(handle, SHEBANG_BYTES).partition(b"\n")[0]
    finally:
        os.close(handle)
    if not line.startswith(b"#!"):
        return ()
    return tuple(os.fsdecode(line[2:]).strip().split(None, 1)) or ("/bin/sh",)


def _digest(file: FileId) -> str | None:
    """None when the path holds another file by now."""
    # Non-blocking: a pipe that was put in the place of the file must not hold this thread.
    handle = os.open(file.real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or (info.st_dev, info.st_ino) != (file.dev, file.ino):
            return None
        digest = hashlib.sha256()
        if file.size <= FULL_HASH_BYTES:
            # At most its size: a file of /proc says 0 and may never end.
            digest.update(stream.read(file.size))
            return digest.hexdigest()
        digest.update(f"{file.size} {file.mtime_ns} {file.ctime_ns}".encode())
        digest.update(stream.read(_EDGE_BYTES))
        stream.seek(-_EDGE_BYTES, os.SEEK_END)
        digest.update(stream.read(_EDGE_BYTES))
    return "partial:" + digest.hexdigest()
