"""What may be on the disk after a power cut, given what was done before it. Pure but for `write`.

The model is the strict one: a byte is safe once its file was fsynced, a name once its folder was.
Of everything else any part may survive: writes in any combination, torn at any byte, with NUL
bytes where an earlier one is missing; names in any combination, each name's changes in order.
New folders are the exception, see `strict_folders`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.crash_disk import (
    Created,
    Cut,
    MadeFolder,
    Removed,
    Renamed,
    Step,
    Synced,
    SyncedFolder,
    Wrote,
)


@dataclass(eq=False, slots=True)
class _File:
    """An inode: what is safe, and what waits in the page cache."""

    mode: int
    safe: bytes = b""
    waiting: list[Wrote | Cut] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Name:
    """A change of one name in a folder: it means `file` now; None = it is gone."""

    path: str
    file: _File | None


@dataclass(frozen=True, slots=True)
class _Move:
    """A rename: one change of two names, lost or kept as a whole."""

    source: str
    target: str
    file: _File


class PlatterModel:
    """Takes steps up to the cut; then `survivors` draws a legal state of the disk.

    `strict_folders`: a new folder may vanish too unless its parent was fsynced. Without it a
    folder counts as safe once something in it was fsynced, as ext4, XFS and btrfs have it.
    """

    def __init__(self, *, strict_folders: bool = False) -> None:
        self._strict = strict_folders
        self._safe: dict[str, _File] = {}
        self._now: dict[str, _File] = {}
        self._waiting: dict[str, list[_Name | _Move]] = {}
        self._folders: dict[str, bool] = {}  # path -> its own name is safe

    def take(self, step: Step) -> None:
        """One step that was done before the power went."""
        match step:
            case Created(path, mode):
                file = self._now[path] = _File(mode)
                self._name(path, _Name(path, file))
            case Wrote(path) | Cut(path):
                self._now[path].waiting.append(step)
            case Synced(path):
                file = self._now[path]
                file.safe = _apply(file.safe, file.waiting)
                file.waiting = []
            case Renamed(source, target):
                file = self._now.pop(source)
                self._now[target] = file
                self._name(target, _Move(source, target, file))
            case Removed(path):
                self._now.pop(path)
                self._name(path, _Name(path, None))
            case MadeFolder(path):
                self._folders.setdefault(path, False)
            case SyncedFolder(path):
                for change in self._waiting.pop(path, []):
                    _change(self._safe, change)
                self._safe_folder(path)

    def survivors(self, rng: random.Random) -> dict[str, tuple[bytes, int]]:
        """Path -> bytes and mode of a state the disk may be in when the power is back."""
        names = dict(self._safe)
        for changes in self._waiting.values():
            keep = _chooser(rng)
            for change in changes:
                if keep():
                    _change(names, change)
        unsafe = [folder for folder, safe in self._folders.items() if not safe]
        lost = {folder for folder in unsafe if self._strict and rng.random() < 0.3}
        out = {}
        for path, file in names.items():
            if not any(path.startswith(f"{folder}/") for folder in lost):
                out[path] = (_apply(file.safe, _surviving(file.waiting, rng)), file.mode)
        return out

    def _name(self, path: str, change: _Name | _Move) -> None:
        self._waiting.setdefault(path.rpartition("/")[0], []).append(change)

    def _safe_folder(self, path: str) -> None:
        # fsync of a folder makes the names in it safe: those of its sub-folders.
        for folder in self._folders:
            if folder.rpartition("/")[0] == path:
                self._folders[folder] = True


def _change(names: dict[str, _File], change: _Name | _Move) -> None:
    match change:
        case _Name(path, None):
            names.pop(path, None)
        case _Name(path, file):
            names[path] = file
        case _Move(source, target, file):
            names.pop(source, None)
            names[target] = file


def _chooser(rng: random.Random) -> Callable[[], bool]:
    """All, none, a first part, or any subset: how a cache may have been written back."""
    match rng.randrange(4):
        case 0:
            return lambda: True
        case 1:
            return lambda: False
        case 2:
            left = [rng.randrange(1, 4)]

            def first() -> bool:
                left[0] -= 1
                return left[0] >= 0

            return first
        case _:
            return lambda: rng.random() < 0.5


def _surviving(waiting: Sequence[Wrote | Cut], rng: random.Random) -> list[Wrote | Cut]:
    keep = _chooser(rng)
    kept: list[Wrote | Cut] = []
    for step in waiting:
        if keep():
            kept.append(step)
        elif isinstance(step, Wrote) and rng.random() < 0.5:
            kept.append(Wrote(step.path, step.offset, step.data[: rng.randrange(len(step.data))]))
    return kept


def _apply(data: bytes, steps: Iterable[Wrote | Cut]) -> bytes:
    out = bytearray(data)
    for step in steps:
        match step:
            case Cut(_, size):
                del out[size:]
                out.extend(bytes(max(0, size - len(out))))
            case Wrote(_, offset, piece):
                out.extend(bytes(max(0, offset - len(out))))
                out[offset : offset + len(piece)] = piece
    return bytes(out)


def write(state: dict[str, tuple[bytes, int]], old_root: Path, new_root: Path) -> None:
    """Put a drawn state below `new_root`; only paths below `old_root` are taken."""
    for text, (data, mode) in state.items():
        path = Path(text)
        if path.is_relative_to(old_root):
            target = new_root / path.relative_to(old_root)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(mode)
