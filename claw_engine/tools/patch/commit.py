"""Carries out several changes of files as one: all of them, or none.

Everything new is written beside its place first; then names are switched, and switched back if one
of them fails. A power cut in between can leave some files new and some old, each of them whole.
Blocking; opens only what the guard decided about. Knows no patch and no approval.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence

from msgspec import Struct

from claw_engine.tools.fileio import FileProblem, fill, fsync_dir
from claw_engine.tools.guard import Guard, Identity, PathChanged, Target


class Change(Struct, frozen=True):
    """`data` None = the file goes. `found` is the file as it was read, None = there was none.

    `like` gives mode and owner to a file under a new name.
    """

    target: Target
    data: bytes | None
    found: Identity | None
    like: os.stat_result | None = None


class _Step(Struct):
    """One name while it is switched."""

    change: Change
    parent: int
    staged: str | None = None
    backup: str | None = None
    done: bool = False

    @property
    def name(self) -> str:
        return self.change.target.real.name


def commit(guard: Guard, changes: Sequence[Change], tag: str) -> None:
    """Make all changes. `tag` makes names of temporary files.

    Raises PathChanged when a file is not the one that was read any more, FileProblem and OSError
    for what cannot be done; then nothing is changed. What could not be put back is said.
    """
    with contextlib.ExitStack() as open_folders:
        steps: list[_Step] = []
        try:
            for number, change in enumerate(changes):
                create = change.data is not None
                parent = open_folders.enter_context(guard.parent(change.target, create=create))
                step = _Step(change, parent)
                steps.append(step)
                _check(step)
                if change.data is not None:
                    _stage(step, change.data, f"{tag}{number}")
            for number, step in enumerate(steps):
                _switch(step, f"{tag}{number}")
        except BaseException as error:
            lost = [step.change.target.given for step in reversed(steps) if not _undo(step)]
            if lost:
                raise FileProblem(
                    f"{error} Could not be put back as they were: {', '.join(lost)}."
                ) from error
            raise
        for step in steps:
            if step.backup is not None:
                with contextlib.suppress(OSError):
                    os.unlink(step.backup, dir_fd=step.parent)
            fsync_dir(step.parent)


def _check(step: _Step) -> None:
    now = _look(step.parent, step.name)
    found = step.change.found
    given = step.change.target.given
    if now is not None and not stat.S_ISREG(now.st_mode):
        raise FileProblem(f"{given} is not a regular file.")
    if (None if now is None else (now.st_dev, now.st_ino)) != found:
        raise PathChanged(f"{given} is another file than the one that was checked.")


def _stage(step: _Step, data: bytes, tag: str) -> None:
    like = step.change.like
    name = f".{step.name[:200]}.{tag}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o666 if like is None else 0o600, dir_fd=step.parent)
    step.staged = name
    try:
        fill(fd, data, like)
    finally:
        os.close(fd)


def _switch(step: _Step, tag: str) -> None:
    _check(step)
    parent, name = step.parent, step.name
    if step.change.found is not None:
        backup = f".{name[:200]}.{tag}.old"
        if step.staged is None:
            os.rename(name, backup, src_dir_fd=parent, dst_dir_fd=parent)
        else:
            try:
                # A second name, so that there is no moment without the file.
                os.link(name, backup, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
            except OSError:
                os.rename(name, backup, src_dir_fd=parent, dst_dir_fd=parent)
        step.backup = backup
    if step.staged is not None:
        os.rename(step.staged, name, src_dir_fd=parent, dst_dir_fd=parent)
        step.staged = None
    step.done = True


def _undo(step: _Step) -> bool:
    """Put a name back as it was; False if that failed."""
    try:
        if step.staged is not None:
            os.unlink(step.staged, dir_fd=step.parent)
        if step.backup is not None:
            os.rename(step.backup, step.name, src_dir_fd=step.parent, dst_dir_fd=step.parent)
            # Two names of one file: such a rename does nothing, and leaves both.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(step.backup, dir_fd=step.parent)
        elif step.done:
            os.unlink(step.name, dir_fd=step.parent)
    except OSError:
        return False
    return True


def _look(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
