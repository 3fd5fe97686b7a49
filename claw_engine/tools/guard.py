"""Which files the agent's file tools may touch: free, ask first, or never.

The state directory is never touched, except the files inside a workspace that lies in it. All
decisions are about real paths; opening walks those paths without following any link, so that what
was decided about is what is opened. Knows nothing of approvals or of what is done with a file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

_O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY)
_DIR_FLAGS = _O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_VIRTUAL = ("/proc", "/sys", "/dev")
_ENGINE_DIRS = frozenset(
    {
        "agents",
        "approvals",
        "credentials",
        "inbox",
        "logs",
        "trace",
        "devices",
        "identity",
        "subagents",
        "cron",
        "memory",
        "sandbox",
    }
)
"""Folders of the state directory that stay closed even if a workspace is put into one."""

_LINK_SCAN = 20_000
"""Files of the state directory compared with a hard-linked file; beyond it the file is refused."""


class Access(StrEnum):
    FREE = "free"
    ASK = "ask"


class PathRefused(Exception):
    """The path is never allowed; the message says why, in words for the model."""


class PathChanged(Exception):
    """Between the decision and the opening, the path came to mean something else."""


Identity = tuple[int, int]
"""Device and inode of a file."""


OUTSIDE = "outside the workspace"
LINKED = "a private file that has another name outside the workspace (a hard link)"


class Target(Struct, frozen=True):
    """A path as it was decided about: `real` has no link in it; `identity` None = no such file.

    `why` says what makes it a question.
    """

    given: str
    real: Path
    access: Access
    identity: Identity | None
    why: str = OUTSIDE


class Guard(Struct, frozen=True):
    """Decides for one workspace and one state directory (absolute paths)."""

    workspace: Path
    state_root: Path

    def decide(self, given: str) -> Target:
        """Resolve `given` (relative to the workspace, `~` allowed) and decide about it.

        Raises PathRefused for the state directory, for a hard link to one of its files, for
        devices, FIFOs and sockets, and for paths below /proc, /sys and /dev.
        """
        path = self._absolute(given)
        real = Path(os.path.realpath(path))
        if _is_virtual(Path(os.path.normpath(path))) or _is_virtual(real):
            raise PathRefused(f"{given}: paths below /proc, /sys and /dev are not files to edit.")
        workspace = Path(os.path.realpath(self.workspace))
        state = Path(os.path.realpath(self.state_root))
        inside = _within(workspace, real)
        if _within(state, real) and not (inside and _excepted(state, workspace)):
            raise PathRefused(
                f"{given} lies in the engine's state directory ({state}), which tools never read "
                "or write. Work in the workspace instead."
            )
        found = _lstat(real)
        if found is not None:
            self._refuse_special(given, found)
            if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
                self._refuse_hard_link(given, found, workspace, state)
        identity = None if found is None else (found.st_dev, found.st_ino)
        if inside and found is not None and _links_out(workspace, found):
            return Target(given, real, Access.ASK, identity, LINKED)
        return Target(given, real, Access.FREE if inside else Access.ASK, identity)

    @contextmanager
    def parent(self, target: Target, *, create: bool = False) -> Iterator[int]:
        """A descriptor of the directory that holds `target`, reached without following a link.

        `create` makes missing directories. Raises PathChanged when a component is a link now or
        the walk enters the state directory by another name (a bind mount, another spelling), and
        OSError (FileNotFoundError without `create`).
        """
        state = _identity(self.state_root)
        workspace = _identity(self.workspace)
        closed = False
        fd = os.open(target.real.anchor, _DIR_FLAGS)
        try:
            for part in ("", *target.real.parent.parts[1:]):
                if part:
                    step = _enter(fd, part, target, create=create)
                    os.close(fd)
                    fd = step
                here = os.fstat(fd)
                if (here.st_dev, here.st_ino) == state:
                    closed = True
                if closed and (here.st_dev, here.st_ino) == workspace != state:
                    closed = False
            if closed:
                raise PathChanged(f"{target.given} leads into the engine's state directory.")
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def open_read(self, target: Target) -> Iterator[int]:
        """The file itself, for reading: a regular file, the one that was decided about.

        Raises PathChanged when it is another file now, OSError as `open` does.
        """
        with self.parent(target) as parent:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                fd = os.open(target.real.name or ".", flags, dir_fd=parent)
            except OSError as error:
                if _is_link_error(error):
                    raise PathChanged(f"{target.given} became a symbolic link.") from error
                raise
            try:
                self.same(target, os.fstat(fd))
                yield fd
            finally:
                os.close(fd)

    def same(self, target: Target, now: os.stat_result) -> None:
        """Raises PathChanged unless `now` is the regular file that was decided about."""
        if not stat.S_ISREG(now.st_mode) and not stat.S_ISDIR(now.st_mode):
            raise PathChanged(f"{target.given} is not a regular file any more.")
        if (now.st_dev, now.st_ino) != target.identity:
            raise PathChanged(f"{target.given} is another file than the one that was checked.")
        if stat.S_ISREG(now.st_mode) and now.st_nlink > 1:
            workspace = Path(os.path.realpath(self.workspace))
            state = Path(os.path.realpath(self.state_root))
            self._refuse_hard_link(target.given, now, workspace, state)

    def _absolute(self, given: str) -> Path:
        if "\0" in given:
            raise PathRefused("The path contains a NUL character.")
        if not given.strip():
            raise PathRefused("The path is empty.")
        try:
            given.encode()
            return self.workspace / Path(given).expanduser()
        except UnicodeEncodeError:
            raise PathRefused("The path is not valid Unicode text.") from None
        except RuntimeError:
            raise PathRefused(f"{given}: there is no such user.") from None

    def _refuse_special(self, given: str, found: os.stat_result) -> None:
        mode = found.st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return
        kinds = ((stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"))
        kind = next((name for test, name in kinds if test(mode)), "a device")
        raise PathRefused(f"{given} is {kind}, not a regular file.")

    def _refuse_hard_link(
        self, given: str, found: os.stat_result, workspace: Path, state: Path
    ) -> None:
        """Refuse another name of a file that lies in the closed part of the state directory."""
        wanted = (found.st_dev, found.st_ino)
        skip = workspace if _within(state, workspace) and workspace != state else None
        for count, entry in enumerate(_files(state, skip)):
            if count >= _LINK_SCAN:
                raise PathRefused(f"{given} has several hard links; which ones is not known.")
            if entry == wanted:
                raise PathRefused(f"{given} is a hard link to a file of the state directory.")


def _enter(fd: int, part: str, target: Target, *, create: bool) -> int:
    try:
        return os.open(part, _DIR_FLAGS, dir_fd=fd)
    except FileNotFoundError:
        if not create:
            raise
        os.mkdir(part, 0o777, dir_fd=fd)
        return os.open(part, _DIR_FLAGS, dir_fd=fd)
    except OSError as error:
        found = os.stat(part, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            raise PathChanged(f"{target.given}: {part} became a symbolic link.") from error
        raise


def _files(root: Path, skip: Path | None) -> Iterator[Identity]:
    """Device and inode of every file below `root`, without `skip` (an allowed workspace)."""
    pending = [root]
    while pending:
        folder = pending.pop()
        if skip is not None and folder == skip and not _is_engine_dir(root, folder):
            continue
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(Path(entry.path))
                continue
            found = _lstat(Path(entry.path))
            if found is not None:
                yield (found.st_dev, found.st_ino)


def _links_out(workspace: Path, found: os.stat_result) -> bool:
    """Whether a file that not everybody may read has a name outside the workspace too.

    Package managers link what everybody may read out of their stores by the thousand.
    """
    several = stat.S_ISREG(found.st_mode) and found.st_nlink > 1
    if not several or found.st_mode & stat.S_IROTH:
        return False
    return _names_below(workspace, (found.st_dev, found.st_ino)) < found.st_nlink


def _names_below(root: Path, wanted: Identity) -> int:
    """How many names of a file lie below `root`, as far as a bounded look finds them."""
    count = 0
    for looked, entry in enumerate(_files(root, None)):
        if looked >= _LINK_SCAN:
            break
        count += entry == wanted
    return count


def folder_of(given: str, folders: Sequence[str]) -> Path | None:
    """The one of `folders` (absolute) that a path lies in as it is written."""
    path = os.path.normpath(os.path.expanduser(given))  # noqa: PTH111 - text paths throughout
    for folder in folders:
        if path == folder or path.startswith(f"{folder}/"):
            return Path(folder)
    return None


def workspace_is_closed(state_root: Path, workspace: Path) -> bool:
    """Whether a workspace lies in a folder of the engine, or is the state directory itself."""
    state, real = Path(os.path.realpath(state_root)), Path(os.path.realpath(workspace))
    return _within(state, real) and not _excepted(state, real)


def _excepted(state: Path, workspace: Path) -> bool:
    """Whether the workspace lies inside the state directory, and not in a folder of the engine."""
    return workspace != state and _within(state, workspace) and not _is_engine_dir(state, workspace)


def _is_engine_dir(state: Path, folder: Path) -> bool:
    parts = folder.relative_to(state).parts
    return bool(parts) and parts[0] in _ENGINE_DIRS


def _is_virtual(path: Path) -> bool:
    return any(_within(Path(root), path) for root in _VIRTUAL)


def _within(root: Path, path: Path) -> bool:
    return path == root or root in path.parents


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _is_link_error(error: OSError) -> bool:
    return error.errno in (errno.ELOOP, getattr(errno, "EMLINK", -1))
