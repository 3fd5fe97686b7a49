"""Reads and replaces files under a guard: blocking work of the file tools, run in a thread.

Every function opens what the guard decided about and nothing else. Knows no tool call and no
approval.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
from typing import BinaryIO

from msgspec import Struct

from claw_engine.tools import pages
from claw_engine.tools.guard import Access, Guard, PathChanged, Target

EDIT_BYTES = 10 * 1024 * 1024
"""Largest file that is edited, and largest UTF-16 file that is read."""

_SKIP_BYTES = 1024 * 1024
_LISTED = 50
_NEAR = 5


class FileProblem(Exception):
    """The file cannot be read or written as asked; the message is for the model."""


class Written(Struct, frozen=True):
    """What a write left behind: size in bytes, and whether the file is new."""

    size: int
    created: bool


def read_page(guard: Guard, target: Target, offset: int, limit: int | None) -> pages.Page:
    """One page from 1-based line `offset`. Raises FileProblem, PathChanged, OSError."""
    if target.identity is None:
        raise FileProblem(_missing(target))
    with guard.open_read(target) as fd:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise FileProblem(_is_directory(target))
        with open(fd, "rb", closefd=False) as file:
            return _page(file, target, offset, limit)


def read_whole(guard: Guard, target: Target) -> bytes:
    """All bytes of a file of at most 10 MB. Raises FileProblem, PathChanged, OSError."""
    if target.identity is None:
        raise FileProblem(_missing(target))
    with guard.open_read(target) as fd:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            raise FileProblem(_is_directory(target))
        if found.st_size > EDIT_BYTES:
            raise FileProblem(f"{target.given} has {found.st_size:,} bytes; the limit is 10 MB.")
        with open(fd, "rb", closefd=False) as file:
            return file.read(EDIT_BYTES + 1)


def digest(guard: Guard, target: Target) -> str | None:
    """SHA-256 (hex) of the file now, None when there is none, it is a directory or too large."""
    if target.identity is None:
        return None
    try:
        return hashlib.sha256(read_whole(guard, target)).hexdigest()
    except (FileProblem, PathChanged, OSError):
        return None


def write_whole(guard: Guard, target: Target, data: bytes, tag: str) -> Written:
    """Replace the file atomically (temporary file, fsync, rename), creating missing directories.

    Mode and owner of a file that is there are kept, without set-id bits. A target that needed an
    answer must still be the file that was shown. Raises FileProblem, PathChanged, OSError.
    """
    name = target.real.name
    with guard.parent(target, create=True) as parent:
        before = _stat_in(parent, name)
        if before is not None:
            if stat.S_ISDIR(before.st_mode):
                raise FileProblem(_is_directory(target))
            if not stat.S_ISREG(before.st_mode):
                raise PathChanged(f"{target.given} is not a regular file any more.")
        now = None if before is None else (before.st_dev, before.st_ino)
        if target.access is Access.ASK and now != target.identity:
            raise PathChanged(f"{target.given} is another file than the one that was checked.")
        temporary = f".{name[:200]}.{tag}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o666 if before is None else 0o600, dir_fd=parent)
        try:
            try:
                fill(fd, data, before)
            finally:
                os.close(fd)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise
        fsync_dir(parent)
    return Written(len(data), before is None)


def _page(file: BinaryIO, target: Target, offset: int, limit: int | None) -> pages.Page:
    head = file.read(8192)
    if pages.looks_binary(head):
        size = os.fstat(file.fileno()).st_size
        raise FileProblem(
            f"{target.given} is a binary file ({size:,} bytes); read shows text only. Look at it "
            "with a command (file, xxd, strings) if you need to."
        )
    file.seek(0)
    source: BinaryIO = file
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = file.read(EDIT_BYTES + 1)
        if len(data) > EDIT_BYTES:
            raise FileProblem(f"{target.given} is UTF-16 text of more than 10 MB.")
        source = io.BytesIO(pages.decode(data).encode("utf-8", errors="replace"))
    counted = _skip_lines(source, offset - 1)
    if counted is not None:
        raise FileProblem(
            f"offset={offset} is beyond the end of {target.given}, which has {counted} lines."
        )
    window = source.read(2 * pages.PAGE_BYTES)
    more = bool(source.read(1))
    if not window and offset == 1:
        return pages.Page("(empty file)", 1, 0, None)
    text = pages.decode(window)
    lines = _lines(text)
    if more and len(lines) > 1:
        lines.pop()
    return pages.cut(lines, first=offset, more=more, limit=limit)


def _lines(text: str) -> list[str]:
    """Lines with their ends, `\\r\\n` shown as `\\n`; other separators do not end a line."""
    pieces = text.replace("\r\n", "\n").split("\n")
    lines = [piece + "\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def _skip_lines(file: BinaryIO, count: int) -> int | None:
    """Move past `count` lines. Returns the number of lines when the file has no more than that."""
    left = count
    total = 0
    last = b"\n"
    while left > 0:
        start = file.tell()
        chunk = file.read(_SKIP_BYTES)
        if not chunk:
            return total + (last != b"\n")
        found = chunk.count(b"\n")
        total += found
        last = chunk[-1:]
        if found < left:
            left -= found
            continue
        at = -1
        for _ in range(left):
            at = chunk.index(b"\n", at + 1)
        file.seek(start + at + 1)
        total += left - found
        left = 0
    if count and not file.read(1):
        return total
    if count:
        file.seek(-1, os.SEEK_CUR)
    return None


def fill(fd: int, data: bytes, before: os.stat_result | None) -> None:
    """Write all of it; mode and owner as `before`, without set-id bits; then fsync."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    if before is not None:
        made = os.fstat(fd)
        if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
            with contextlib.suppress(OSError):
                os.fchown(fd, before.st_uid, before.st_gid)
        with contextlib.suppress(OSError):
            os.fchmod(fd, before.st_mode & 0o777)
    os.fsync(fd)


def _stat_in(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def fsync_dir(parent: int) -> None:
    """Make names in a directory last, where the file system can."""
    # Some file systems refuse it; the rename stands all the same.
    with contextlib.suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _missing(target: Target) -> str:
    sentence = f"{target.given} does not exist."
    if target.access is not Access.FREE:
        return sentence
    names = _names(target, of_parent=True)
    if names is None:
        return f"{sentence} Its directory {target.real.parent} does not exist either."
    import difflib  # only for a file that is not there

    near = difflib.get_close_matches(target.real.name, names, n=_NEAR, cutoff=0.5)
    if near:
        return f"{sentence} Similar names there: {', '.join(near)}."
    return f"{sentence} {target.real.parent} has no similar name."


def _is_directory(target: Target) -> str:
    sentence = f"{target.given} is a directory, not a file."
    if target.access is not Access.FREE:
        return sentence
    names = _names(target, of_parent=False) or []
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{sentence} It holds: {', '.join(names[:_LISTED])}{more}." if names else sentence


def _names(target: Target, *, of_parent: bool) -> list[str] | None:
    folder = target.real.parent if of_parent else target.real
    try:
        return sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return None
