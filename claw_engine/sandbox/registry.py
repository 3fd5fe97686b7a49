"""The containers we made: who they are for, since when, when last used. And which are too old.

`<state>/sandbox/containers.json`, OpenClaw 2026.2.26's names; fields we do not know are kept.
Pure except for reading and writing that file through the disk handed in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field

from claw_engine.world import Disk

HOUR_MS = 3_600_000


class Entry(Struct, frozen=True):
    """One container; times in ms since the epoch."""

    name: str
    key: str
    image: str
    made_ms: int
    used_ms: int
    digest: str
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def engine(self) -> str:
        """The program that made it (ours)."""
        return str(self.extra.get("engine", "auto"))

    def to_json(self) -> dict[str, object]:
        return {
            **self.extra,
            "containerName": self.name,
            "sessionKey": self.key,
            "createdAtMs": self.made_ms,
            "lastUsedAtMs": self.used_ms,
            "image": self.image,
            "configHash": self.digest,
        }


def stale(entries: Iterable[Entry], now_ms: int, idle_hours: int, max_age_days: int) -> list[Entry]:
    """Those unused or alive for too long; 0 means no limit."""
    return [
        entry
        for entry in entries
        if (idle_hours and now_ms - entry.used_ms > idle_hours * HOUR_MS)
        or (max_age_days and now_ms - entry.made_ms > max_age_days * 24 * HOUR_MS)
    ]


class Registry:
    """Blocking: call it on the disk executor. Raises OSError."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._path = path

    def read(self) -> dict[str, Entry]:
        """By container name; a file that is none counts as empty."""
        try:
            data = json.loads(self._disk.read_bytes(self._path))
        except (FileNotFoundError, ValueError):
            return {}
        rows = data.get("entries") if isinstance(data, dict) else None
        entries = map(_entry, rows if isinstance(rows, list) else ())
        return {entry.name: entry for entry in entries if entry is not None}

    def put(self, entry: Entry) -> None:
        self._write({**self.read(), entry.name: entry})

    def drop(self, name: str) -> None:
        entries = self.read()
        if entries.pop(name, None) is not None:
            self._write(entries)

    def _write(self, entries: Mapping[str, Entry]) -> None:
        rows = {"entries": [entry.to_json() for entry in entries.values()]}
        self._disk.mkdir(self._path.parent)
        self._disk.replace(self._path, (json.dumps(rows, indent=2) + "\n").encode())


def _entry(row: object) -> Entry | None:
    if not isinstance(row, dict) or not isinstance(row.get("containerName"), str):
        return None
    known = {"containerName", "sessionKey", "createdAtMs", "lastUsedAtMs", "image", "configHash"}
    return Entry(
        row["containerName"],
        str(row.get("sessionKey", "")),
        str(row.get("image", "")),
        _ms(row.get("createdAtMs")),
        _ms(row.get("lastUsedAtMs")),
        str(row.get("configHash", "")),
        {name: value for name, value in row.items() if name not in known},
    )


def _ms(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
