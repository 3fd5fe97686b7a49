"""What should go from a sessions folder: entries, archives, leftovers. Pure; decides, does nothing.

Rules: OpenClaw 2026.2.26 (gateway digest §3.7): prune by age, cap by number, purge old archives,
rotate the store, keep a disk budget. Only files with a name of our own kind are ever named, never
a symlink, never what a running session uses (case DL-03).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.patterns import late
from claw_engine.sessions.archive import is_draft, read_archive, repair_ms
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.rebuild import is_transcript

if TYPE_CHECKING:
    from claw_engine.config.sections.session import Maintenance

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
DRAFT_MS = HOUR_MS
"""A temporary file or an unlisted transcript younger than this may still be in use (ours)."""
ROTATE_EVERY_MS = DAY_MS
"""A store that stays large is not copied more often than this (ours)."""
STORE = "sessions.json"

_DURATION = {"ms": 1, "s": 1000, "m": 60_000, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_SIZE = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_AMOUNT = late(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)


class Limits(Struct, frozen=True):
    """Times in ms, sizes in bytes; None = no limit."""

    enforce: bool = False
    prune_after: int = 30 * DAY_MS
    max_entries: int = 500
    rotate_bytes: int = 10 << 20
    reset_retention: int | None = 30 * DAY_MS
    max_disk: int | None = None
    high_water: int = 0


class FileInfo(Struct, frozen=True):
    """A file of the folder; `regular` is false for links, folders, sockets."""

    name: str
    size: int
    modified_ms: int
    regular: bool = True


class Deed(StrEnum):
    """What happens: a session goes (its transcript archived, or dropped too), a file goes, the
    store is copied."""

    REMOVE = "remove"
    DROP = "drop"
    DELETE = "delete"
    ROTATE = "rotate"


class Action(Struct, frozen=True):
    """One step of a cleanup; `target` is a session key or a file name."""

    deed: Deed
    target: str
    why: str
    size: int = 0


def limits_of(settings: Maintenance) -> Limits:
    """The limits of one configuration; what cannot be read keeps its default."""
    default = Limits()
    days = f"{settings.prune_days}d" if settings.prune_days else None
    prune = duration_ms(settings.prune_after or days) or default.prune_after
    kept = settings.reset_archive_retention
    max_disk = size_bytes(settings.max_disk_bytes) or None
    high = size_bytes(settings.high_water_bytes)
    if max_disk is not None and (high is None or high > max_disk):
        high = max_disk * 8 // 10
    return Limits(
        enforce=settings.mode == "enforce",
        prune_after=prune,
        max_entries=settings.max_entries,
        rotate_bytes=size_bytes(settings.rotate_bytes) or default.rotate_bytes,
        reset_retention=None if kept is False else duration_ms(kept) or prune,
        max_disk=max_disk,
        high_water=high or 0,
    )


def duration_ms(text: str | None) -> int | None:
    """`30d`, `12h`, `500ms`; a bare number means days. None when it is nothing of the kind."""
    return _amount(text, {**_DURATION, "": DAY_MS})


def size_bytes(text: str | None) -> int | None:
    """`10mb`, `512k`; a bare number means bytes. None when it is nothing of the kind."""
    short = text.strip().lower().removesuffix("ib").removesuffix("b") if text else None
    return _amount(short, _SIZE)


def _amount(text: str | None, units: Mapping[str, int]) -> int | None:
    found = _AMOUNT.fullmatch(text.strip().lower()) if text else None
    if found is None or found[2] not in units:
        return None
    return int(float(found[1]) * units[found[2]])


def plan(
    entries: Sequence[SessionEntry],
    files: Sequence[FileInfo],
    names: Mapping[str, str],
    limits: Limits,
    now_ms: int,
    active: Collection[str] = (),
) -> tuple[Action, ...]:
    """Every step, in order. `names` gives each key's transcript file, `active` keys are in use."""
    own = {file.name: file for file in files if file.regular}
    removed = _too_old(entries, limits, now_ms, active)
    removed |= _too_many(entries, limits, removed, active)
    actions = [
        Action(Deed.REMOVE, key, why, _size(own, names.get(key))) for key, why in removed.items()
    ]
    purged = {name: why for name, file in own.items() if (why := _leftover(file, limits, now_ms))}
    actions += [Action(Deed.DELETE, name, why, own[name].size) for name, why in purged.items()]
    store = own.get(STORE)
    if store is not None and store.size > limits.rotate_bytes:
        actions += _rotation(own, purged, store, now_ms)
    if limits.max_disk is not None:
        left = {name: file for name, file in own.items() if name not in purged}
        kept = [e for e in entries if e.key not in removed]
        actions += _budget(kept, left, names, limits, now_ms, active)
    return tuple(actions)


def _too_old(
    entries: Sequence[SessionEntry], limits: Limits, now_ms: int, active: Collection[str]
) -> dict[str, str]:
    cutoff = now_ms - limits.prune_after
    old = [e for e in entries if 0 < e.updated_at < cutoff and e.key not in active]
    return {e.key: f"unused for {(now_ms - e.updated_at) // DAY_MS} days" for e in old}


def _too_many(
    entries: Sequence[SessionEntry],
    limits: Limits,
    removed: Mapping[str, str],
    active: Collection[str],
) -> dict[str, str]:
    left = sorted(
        (e for e in entries if e.key not in removed),
        key=lambda e: (e.key in active, e.updated_at),
        reverse=True,
    )
    beyond = [e for e in left[: limits.max_entries - 1 : -1] if e.key not in active]
    return {e.key: f"more than {limits.max_entries} sessions" for e in beyond}


def _leftover(file: FileInfo, limits: Limits, now_ms: int) -> str:
    """Why a file is old enough to go; empty when it stays."""
    archive = read_archive(file.name)
    if archive is not None:
        keep = limits.reset_retention if archive.reason == "reset" else limits.prune_after
        if keep is not None and archive.at_ms < now_ms - keep:
            return f"{archive.reason} {(now_ms - archive.at_ms) // DAY_MS} days ago"
        return ""
    at = repair_ms(file.name)
    if at is not None and not _BACKUP.fullmatch(file.name):
        return "kept by a repair long ago" if at < now_ms - limits.prune_after else ""
    if is_draft(file.name) and file.modified_ms < now_ms - DRAFT_MS:
        return "left by a writer that died"
    return ""


_BACKUP = late(r"sessions\.json\.bak\.\d+", re.ASCII)
BACKUPS = 3
"""Rotated stores that are kept (gateway digest §3.7)."""


def _rotation(
    own: Mapping[str, FileInfo], purged: Mapping[str, str], store: FileInfo, now_ms: int
) -> list[Action]:
    backups = sorted(
        (name for name in own if _BACKUP.fullmatch(name) and name not in purged),
        key=lambda name: repair_ms(name) or 0,
        reverse=True,
    )
    if backups and (repair_ms(backups[0]) or 0) > now_ms - ROTATE_EVERY_MS:
        return []
    surplus = backups[BACKUPS - 1 :]
    return [
        Action(Deed.ROTATE, STORE, "the store is large", store.size),
        *(Action(Deed.DELETE, name, "an older copy", own[name].size) for name in surplus),
    ]


def _budget(
    entries: Sequence[SessionEntry],
    files: Mapping[str, FileInfo],
    names: Mapping[str, str],
    limits: Limits,
    now_ms: int,
    active: Collection[str],
) -> list[Action]:
    total = sum(file.size for file in files.values())
    if limits.max_disk is None or total <= limits.max_disk:
        return []
    actions: list[Action] = []
    listed = {names[e.key] for e in entries if e.key in names}
    spare = [f for f in files.values() if _is_spare(f, listed, now_ms)]
    for file in sorted(spare, key=lambda f: f.modified_ms):
        if total <= limits.high_water:
            return actions
        actions.append(Action(Deed.DELETE, file.name, _FULL, file.size))
        total -= file.size
    for entry in sorted(entries, key=lambda e: e.updated_at):
        if total <= limits.high_water:
            break
        size = _size(files, names.get(entry.key))
        if entry.key not in active and size:
            actions.append(Action(Deed.DROP, entry.key, _FULL, size))
            total -= size
    return actions


_FULL = "the disk budget is used up"


def _is_spare(file: FileInfo, listed: Collection[str], now_ms: int) -> bool:
    """An archive, or a transcript that no entry names and nobody has just made."""
    if read_archive(file.name) is not None:
        return True
    unlisted = is_transcript(file.name) and file.name not in listed
    return unlisted and file.modified_ms < now_ms - DRAFT_MS


def _size(files: Mapping[str, FileInfo], name: str | None) -> int:
    file = files.get(name) if name is not None else None
    return file.size if file is not None else 0
