"""Looks through the folders and reads each SKILL.md once: again only when the file is another.

Blocking: for the disk's thread. A link may lead anywhere inside its root, nowhere else. Knows no
settings but limits, and decides about no skill.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from claw_engine.config.sections.skills import SkillsLimits
from claw_engine.skills.frontmatter import read_front
from claw_engine.skills.model import BadSkill, Found
from claw_engine.skills.roots import Root
from claw_engine.world import Disk

FILE = "SKILL.md"
MAX_DEPTH = 6
"""Levels of folders that only group others."""
_IGNORED = frozenset({"node_modules", "__pycache__", "venv", "dist", "build"})

_Identity = tuple[str, int, int, int, int]


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
        try:
            if not stat.S_ISDIR(self._disk.stat(Path(root.path)).st_mode):
                return []
        except OSError:
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

    def _folders(self, root: Root, real: str, most: int, found: list[Found]) -> Iterator[str]:
        """Folders with a SKILL.md: the root itself, or those below it, by name."""
        start = root.path
        nested = f"{start}/skills"
        if any(self._has(f"{nested}/{name}") for name in self._names(nested)):
            start = nested
        if self._has(start):
            yield start
            return
        looked = 0
        visited: set[tuple[int, int]] = set()
        pending = [(start, 0)]
        while pending:
            folder, depth = pending.pop(0)
            for name in self._names(folder):
                child = f"{folder}/{name}"
                if self._has(child):
                    looked += 1
                    if looked > most:
                        found.append(_cut(root, f"more than {most} folders"))
                        return
                    yield child
                elif depth + 1 < MAX_DEPTH and self._may_group(child, real, visited):
                    looked += 1
                    if looked > most:
                        found.append(_cut(root, f"more than {most} folders"))
                        return
                    pending.append((child, depth + 1))

    def _names(self, folder: str) -> list[str]:
        try:
            names = self._disk.listdir(Path(folder))
        except OSError:
            return []
        return sorted(n for n in names if not n.startswith(".") and n not in _IGNORED)

    def _has(self, folder: str) -> bool:
        """Whether there is a SKILL.md, of whatever kind."""
        try:
            os.lstat(f"{folder}/{FILE}")
        except (OSError, ValueError):
            return False
        return True

    def _may_group(self, folder: str, real: str, visited: set[tuple[int, int]]) -> bool:
        """Whether it is a directory inside the root that was not looked at before."""
        try:
            seen = self._disk.stat(Path(folder))
        except (OSError, ValueError):
            return False
        here = (seen.st_dev, seen.st_ino)
        if not stat.S_ISDIR(seen.st_mode) or here in visited:
            return False
        if os.path.islink(folder) and not _inside(real, os.path.realpath(folder)):  # noqa: PTH114 - text paths throughout
            return False
        visited.add(here)
        return True

    def _one(self, root: Root, folder: str, real: str, limits: SkillsLimits) -> Found:
        path = f"{folder}/{FILE}"
        try:
            facts = self._disk.stat(Path(path))
        except OSError as error:
            return Found(root.source, path, folder, problem=_unreadable(error))
        links = os.path.islink(folder) or os.path.islink(path)  # noqa: PTH114 - as above
        # A grouping folder above may be a link too, but it was checked when it was entered.
        target = os.path.realpath(path) if links else path
        if links and not _inside(real, target):
            return Found(root.source, path, folder, problem=f"it leads out of {root.path}")
        if not stat.S_ISREG(facts.st_mode):
            return Found(root.source, path, folder, problem=f"{FILE} is not a regular file")
        identity = (target, facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
        most = limits.max_skill_file_bytes
        known = self._known.get((root.source, path))
        if known is not None and known[0] == identity and known[1] == most:
            return known[2]
        found = self._read(root, path, folder, facts.st_size, most)
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
        except OSError as error:
            return Found(root.source, path, folder, problem=_unreadable(error))
        except BadSkill as error:
            return Found(root.source, path, folder, problem=str(error))
        return Found(root.source, path, folder, front)


def _inside(root: str, path: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _cut(root: Root, what: str) -> Found:
    return Found(root.source, root.path, root.path, problem=f"{what}: the rest is left out")


def _unreadable(error: OSError) -> str:
    return f"{FILE} cannot be read: {error.strerror or error}"
