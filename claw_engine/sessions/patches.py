"""Changes of the index that sessions.json does not hold yet, and the side journal that does.

The journal is ours (`inbox/sessions-<agent>.jsonl`; OpenClaw never looks there). Each line is one
change of one entry, as fields; replaying a line twice is harmless. The file is emptied whenever
sessions.json was rewritten. Synchronous: runs on the disk executor.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field

from claw_engine.sessions.entry import SessionEntry
from claw_engine.storage.errors import disk_error
from claw_engine.storage.jsonl import LineFile, iterate, parse_line, repair
from claw_engine.storage.text import to_line
from claw_engine.world import Disk

log = logging.getLogger(__name__)

VERSION = 1


class Patch(Struct, frozen=True):
    """Fields of one entry to set and to take away, or the entry's end. `at` is its `updatedAt`."""

    key: str
    at: int
    fields: Mapping[str, object] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    deleted: bool = False

    def then(self, newer: Patch) -> Patch:
        """Both changes as one."""
        if newer.deleted or self.deleted:
            return newer  # what follows an end begins with a whole entry
        fields = {k: v for k, v in self.fields.items() if k not in newer.gone}
        gone = (self.gone | newer.gone) - newer.fields.keys()
        return Patch(self.key, newer.at, {**fields, **newer.fields}, gone)

    def applied(self, entry: SessionEntry | None) -> SessionEntry | None:
        """The entry with this change; None when it ends here."""
        if self.deleted:
            return None
        raw = dict(entry.raw) if entry is not None else {}
        raw.update(self.fields)
        return SessionEntry(self.key, {k: v for k, v in raw.items() if k not in self.gone})

    def to_json(self) -> dict[str, object]:
        out: dict[str, object] = {"v": VERSION, "key": self.key, "at": self.at}
        if self.deleted:
            out["deleted"] = True
        if self.fields:
            out["set"] = dict(self.fields)
        if self.gone:
            out["unset"] = sorted(self.gone)
        return out


def difference(old: SessionEntry | None, new: SessionEntry) -> Patch:
    """What turns `old` into `new`."""
    if old is None:
        return Patch(new.key, new.updated_at, dict(new.raw))
    before = old.raw
    changed = {
        name: value
        for name, value in new.raw.items()
        if name not in before or (before[name] is not value and before[name] != value)
    }
    gone = frozenset(name for name in before if name not in new.raw)
    return Patch(new.key, new.updated_at, changed, gone)


def joined(older: Mapping[str, Patch], newer: Mapping[str, Patch]) -> dict[str, Patch]:
    """One change for each key."""
    out = dict(older)
    for key, patch in newer.items():
        out[key] = out[key].then(patch) if key in out else patch
    return out


class IndexJournal:
    """The side journal of one agent's index."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._lines = LineFile(disk, path)
        self.path = path

    def load(self, now_ms: int) -> dict[str, Patch]:
        """The changes that a dead engine left; a torn last line is cut. Raises StateDiskError."""
        mended = repair(self._disk, self.path, now_ms)
        if mended is not None:
            log.warning("session index journal: %s", mended.sentence())
        if not self._disk.exists(self.path):
            return {}
        found: dict[str, Patch] = {}
        for _, line in iterate(self._disk, self.path):
            raw = parse_line(line)
            patch = _read(raw) if isinstance(raw, dict) else None
            if patch is not None:
                found = joined(found, {patch.key: patch})
        return found

    def append(self, patches: Iterable[Patch]) -> None:
        """Keep changes, durably. Raises StateDiskError."""
        try:
            self._disk.mkdir(self.path.parent, 0o700)
        except OSError as error:
            raise disk_error(error, self.path) from error
        self._lines.append(b"".join(to_line(p.to_json()) for p in patches), fsync=True)

    def clear(self) -> None:
        """Forget everything: sessions.json holds it. Raises StateDiskError."""
        try:
            if self._disk.exists(self.path) and self._disk.stat(self.path).st_size:
                self._disk.truncate(self.path, 0)
        except OSError as error:
            raise disk_error(error, self.path) from error


def _read(raw: Mapping[str, object]) -> Patch | None:
    key, at, fields, gone = raw.get("key"), raw.get("at"), raw.get("set", {}), raw.get("unset", [])
    if raw.get("v") != VERSION or not isinstance(key, str) or not isinstance(at, int):
        return None
    if not isinstance(fields, dict) or not isinstance(gone, list):
        return None
    return Patch(key, at, fields, frozenset(map(str, gone)), raw.get("deleted") is True)
