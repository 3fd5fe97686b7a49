"""The state of the watched files at one moment, and what differs between two moments.

Change events only say *look again*; what changed is always read off the disk here, so a lost or
doubled event does no harm.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field

T = TypeVar("T")

Stamp = tuple[int, int, int, int]
"""Modified and changed time (ns), size (bytes), inode."""


class WatchTargets(Struct, frozen=True):
    """`config` names files; of each folder in `workspaces` the `*.md` files are followed."""

    config: tuple[Path, ...] = ()
    workspaces: tuple[Path, ...] = ()


class Snapshot(Struct, frozen=True):
    """Stamps of the files that are there. `loops` are paths that are circles of symlinks."""

    config: dict[Path, Stamp] = field(default_factory=dict)
    workspace: dict[Path, Stamp] = field(default_factory=dict)
    loops: frozenset[Path] = frozenset()


def take_snapshot(targets: WatchTargets) -> Snapshot:
    """Look at all targets now. Missing and unreadable files count as not there."""
    loops: set[Path] = set()
    config = {path: stamp for path in targets.config if (stamp := _stamp(path, loops))}
    workspace = {
        path: stamp
        for folder in targets.workspaces
        for path in _markdown(folder, loops)
        if (stamp := _stamp(path, loops))
    }
    return Snapshot(config, workspace, frozenset(loops))


def differing(old: dict[Path, Stamp], new: dict[Path, Stamp]) -> tuple[Path, ...]:
    """Paths that appeared, vanished or changed, sorted."""
    return tuple(sorted(path for path in {*old, *new} if old.get(path) != new.get(path)))


def folders_to_watch(targets: WatchTargets) -> dict[Path, tuple[int, int]]:
    """Folders whose events matter, with device and inode: a change of these means arming anew.

    The folder above each target folder is among them, since it tells when the target itself is
    made, moved or removed; where neither is there, the nearest ancestor that is. The targets' own
    come first, in their order.
    """
    held = dict.fromkeys([*(path.parent for path in targets.config), *targets.workspaces])
    wanted = dict.fromkeys([*held, *(folder.parent for folder in held)])
    found: dict[Path, tuple[int, int]] = {}
    for folder in wanted:
        known = _nearest(folder)
        if known is not None:
            found[known[0]] = known[1]
    return found


def _nearest(folder: Path) -> tuple[Path, tuple[int, int]] | None:
    for candidate in (folder, *folder.parents):
        try:
            info = candidate.stat()
        except OSError:
            continue
        if stat.S_ISDIR(info.st_mode):
            return candidate, (info.st_dev, info.st_ino)
    return None


def _markdown(folder: Path, loops: set[Path]) -> list[Path]:
    names = _quietly(lambda: os.listdir(folder), folder, loops)  # noqa: PTH208 - names only
    return [folder / name for name in names or () if name.lower().endswith(".md")]


def _stamp(path: Path, loops: set[Path]) -> Stamp | None:
    info = _quietly(path.stat, path, loops)
    if info is None or not stat.S_ISREG(info.st_mode):
        return None
    return (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)


def _quietly(look: Callable[[], T], path: Path, loops: set[Path]) -> T | None:
    try:
        return look()
    except OSError as error:
        if error.errno == errno.ELOOP:
            loops.add(path)
        return None
