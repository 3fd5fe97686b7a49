"""Moves and removes files of a sessions folder. Synchronous: runs on the disk executor.

Decides nothing (see maintenance.py); never follows a symlink.
"""

from __future__ import annotations

import stat
from pathlib import Path

from msgspec import Struct

from claw_engine.sessions.archive import Reason, archive_path
from claw_engine.sessions.maintenance import STORE, Action, FileInfo
from claw_engine.storage.errors import disk_error
from claw_engine.storage.jsonl import parse_line
from claw_engine.storage.text import to_line
from claw_engine.world import Disk


class CleanupResult(Struct, frozen=True):
    """What a cleanup did, or would do (`done` false: dry run, or the mode is `warn`).

    `failed` are steps that did not work, each with the reason in words.
    """

    agent_id: str
    done: bool
    actions: tuple[Action, ...]
    failed: tuple[tuple[Action, str], ...] = ()

    @property
    def freed_bytes(self) -> int:
        failed = {action for action, _ in self.failed}
        return sum(a.size for a in self.actions if a.deed in ("delete", "drop") and a not in failed)


def survey(disk: Disk, folder: Path) -> list[FileInfo]:
    """Every file of the folder; links are not followed. Raises StateDiskError."""
    found: list[FileInfo] = []
    try:
        if not disk.exists(folder):
            return []
        for name in sorted(disk.listdir(folder)):
            try:
                info = (folder / name).lstat()
            except FileNotFoundError:
                continue
            regular = stat.S_ISREG(info.st_mode)
            found.append(FileInfo(name, info.st_size, info.st_mtime_ns // 1_000_000, regular))
    except OSError as error:
        raise disk_error(error, folder) from error
    return found


def archive(disk: Disk, path: Path, reason: Reason, now_ms: int) -> Path | None:
    """Rename a transcript to its archive name; None when there is none. Raises StateDiskError."""
    try:
        if path.is_symlink() or not disk.exists(path):
            return None
        number = 0
        while disk.exists(target := archive_path(path, reason, now_ms, number)):
            number += 1
        disk.rename(path, target)
    except OSError as error:
        raise disk_error(error, path) from error
    return target


def cut(disk: Disk, path: Path, max_lines: int, now_ms: int) -> tuple[int, Path] | None:
    """Keep the first line of a transcript and its newest `max_lines`, the old file as `.bak`.

    How many stayed and the old file's name; None when no line has to go. What followed a line that
    went follows nothing now. Raises StateDiskError.
    """
    try:
        if path.is_symlink() or not disk.exists(path):
            return None
        data = disk.read_bytes(path)
        head, *lines = data.splitlines(keepends=True) or [b""]
        if len(lines) <= max_lines:
            return None
        kept = _rejoined(lines[-max_lines:])
        number = 0
        while disk.exists(old := archive_path(path, "bak", now_ms, number)):
            number += 1
        disk.replace(old, data)
        disk.replace(path, head + b"".join(kept))
    except OSError as error:
        raise disk_error(error, path) from error
    return len(kept), old


def _rejoined(lines: list[bytes]) -> list[bytes]:
    out: list[bytes] = []
    known: set[object] = set()
    for line in lines:
        raw = parse_line(line)
        orphan = False
        if isinstance(raw, dict):
            orphan = raw.get("parentId") is not None and raw["parentId"] not in known
            known.add(raw.get("id"))
            raw["parentId"] = None if orphan else raw.get("parentId")
        out.append(to_line(raw) if orphan and isinstance(raw, dict) else line)
    return out


def delete(disk: Disk, path: Path) -> None:
    """Remove a plain file. Raises StateDiskError."""
    try:
        if path.is_symlink():
            return
        disk.unlink(path, missing_ok=True)
    except OSError as error:
        raise disk_error(error, path) from error


def rotate(disk: Disk, folder: Path, now_ms: int) -> None:
    """Keep a copy of the store. OpenClaw renames it; a copy leaves no moment without one."""
    source = folder / STORE
    try:
        disk.replace(folder / f"{STORE}.bak.{now_ms}", disk.read_bytes(source))
    except OSError as error:
        raise disk_error(error, source) from error
