"""Looks through the folders and reads each SKILL.md once: again only when the file is another.

Blocking: for the disk's thread. A link may lead anywhere inside its root, nowhere else. Knows no
settings but limits, and decides about no skill.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from claw_engine.config.sections.skills import SkillsLimits
from claw_engine.skills.frontmatter import read_front
from claw_engine.skills.model import BadSkill, Found
from claw_engine.skills.roots import Root
from claw_engine.world import Disk

FILE = "SKILL.md"
_KEPT = 4096
"""Files that are remembered."""
MAX_DEPTH = 6
"""Levels of folders that only group others."""
_IGNORED = frozenset({"node_modules", "__pycache__", "venv", "dist", "build"})

_Identity = tuple[str, int, int, int, int]


class _Folder(Struct, frozen=True):
    """A folder with a SKILL.md, and the latter as it lies there, links not followed."""

    path: str
    link: bool
    file: os.stat_result


class Scanner:
    """Remembers what it read, by file identity. One thread only."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._known: dict[tuple[str, str], tuple[_Identity, int, Found]] = {}

    def scan(self, roots: Sequence[Root], limits: SkillsLimits) -> tuple[Found, ...]:
        """Everything in these folders, in their order. Raises nothing for what is on the disk."""
        out: list[Found] = []
        for root in roots:
            out += self._root(root, limits)
        return tuple(out)

    def _root(self, root: Root, limits: SkillsLimits) -> list[Found]:
        if not _is_folder(root.path):
            return []  # most of them are not there
        real = os.path.realpath(root.path)
        found: list[Found] = []
        good = 0
        for folder in self._folders(root, real, limits.max_candidates_per_root, found):
            one = self._one(root, folder, real, limits)
            good += one.front is not None
            if good > limits.max_skills_loaded_per_source:
                found.append(_cut(root, f"more than {limits.max_skills_loaded_per_source} skills"))
                break
            found.append(one)
        return found

    def _folders(self, root: Root, real: str, most: int, found: list[Found]) -> Iterator[_Folder]:
        """Folders with a SKILL.md: the root itself, or those below it, by name."""
        start = root.path
        nested = f"{start}/skills"
        if any(_file_in(f"{nested}/{name}") for name, _ in _entries(nested)):
            start = nested
        if (file := _file_in(start)) is not None:
            yield _Folder(start, False, file)
            return
        looked = 0
        visited: set[tuple[int, int]] = set()
        pending = [(start, 0)]
        while pending:
            folder, depth = pending.pop(0)
            for name, link in _entries(folder):
                child = f"{folder}/{name}"
                file = _file_in(child)
                if file is None and not (
                    depth + 1 < MAX_DEPTH and _may_group(child, link, real, visited)
                ):
                    continue
                looked += 1
                if looked > most:
                    found.append(_cut(root, f"more than {most} folders"))
                    return
                if file is not None:
                    yield _Folder(child, link, file)
                else:
                    pending.append((child, depth + 1))

    def _one(self, root: Root, folder: _Folder, real: str, limits: SkillsLimits) -> Found:
        path, facts, target = f"{folder.path}/{FILE}", folder.file, ""
        # A grouping folder above may be a link too, but it was checked when it was entered.
        if folder.link or stat.S_ISLNK(facts.st_mode):
            target = os.path.realpath(path)
            if not _inside(real, target):
                problem = f"it leads out of {root.path}"
                return Found(root.source, path, folder.path, problem=problem)
            try:
                facts = self._disk.stat(Path(path))
            except OSError as error:
                return Found(root.source, path, folder.path, problem=_unreadable(error))
        if not stat.S_ISREG(facts.st_mode):
            problem = f"{FILE} is not a regular file"
            return Found(root.source, path, folder.path, problem=problem)
        identity = (target, facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
        most = limits.max_skill_file_bytes
        known = self._known.get((root.source, path))
        if known is not None and known[0] == identity and known[1] == most:
            return known[2]
        try:
            found = self._read(root, path, folder.path, facts.st_size, most)
        except OSError as error:  # not remembered: a permission changes without the file's time
            return Found(root.source, path, folder.path, problem=_unreadable(error))
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[root.source, path] = (identity, most, found)
        return found

    def _read(self, root: Root, path: str, folder: str, size: int, most: int) -> Found:
        if size > most:
            problem = f"{FILE} has {size:,} bytes, more than {most:,}"
            return Found(root.source, path, folder, problem=problem)
        try:
            # As plain text: a byte that is none shows as such and harms nothing.
            text = self._disk.read_from(Path(path), 0, most).decode("utf-8", "replace")
            front = read_front(text, folder.rpartition("/")[2])
        except BadSkill as error:
            return Found(root.source, path, folder, problem=str(error))
        return Found(root.source, path, folder, front)


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 - a Path a file costs too much
    except (OSError, ValueError):
        return False


def _entries(folder: str) -> list[tuple[str, bool]]:
    """Names that may be skills or hold some, in order, and whether each is a link."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_symlink()) for entry in entries]
    except OSError:
        return []
    return sorted(f for f in found if not f[0].startswith(".") and f[0] not in _IGNORED)


def _file_in(folder: str) -> os.stat_result | None:
    """The SKILL.md of a folder, of whatever kind it is."""
    try:
        return os.lstat(f"{folder}/{FILE}")
    except (OSError, ValueError):
        return None


def _may_group(folder: str, link: bool, real: str, visited: set[tuple[int, int]]) -> bool:
    """Whether it is a directory inside the root that was not looked at before."""
    try:
        seen = os.stat(folder)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return False
    here = (seen.st_dev, seen.st_ino)
    if not stat.S_ISDIR(seen.st_mode) or here in visited:
        return False
    if link and not _inside(real, os.path.realpath(folder)):
        return False
    visited.add(here)
    return True


def _inside(root: str, path: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _cut(root: Root, what: str) -> Found:
    return Found(root.source, root.path, root.path, problem=f"{what}: the rest is left out")


def _unreadable(error: OSError) -> str:
    return f"{FILE} cannot be read: {error.strerror or error}"
