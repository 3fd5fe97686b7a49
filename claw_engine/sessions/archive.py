"""Names of what is left of old transcripts and stores. Pure.

`<uuid>.jsonl.reset.2026-02-26T10-11-12.123Z`, reasons reset, deleted and bak: OpenClaw 2026.2.26
(gateway digest §3.7). `.torn-<ms>`, `.bak-<pid>-<ms>` and `sessions.json.broken-<time>` are what
repairs leave.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from claw_engine.patterns import late

Reason: TypeAlias = Literal["reset", "deleted", "bak"]

_STAMP = r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{1,3})?Z)"
_ARCHIVE = late(rf"(.+\.jsonl)\.(reset|deleted|bak)\.{_STAMP}(?:-\d+)?", re.ASCII)
_REPAIR = late(
    rf"(?:.+\.jsonl\.(?:torn-(\d+)|bak-\d+-(\d+))|sessions\.json\.(?:bak\.(\d+)|broken-{_STAMP}(?:-\d+)?))",
    re.ASCII,
)
_DRAFT = late(
    r"(?:sessions\.json|.+\.jsonl)(?:\.[^/]*)?\.(?:\d+\.)?[0-9a-f-]{8,36}\.tmp|.+\.lock\.\d+\.stale",
    re.ASCII,
)


class Archive(Struct, frozen=True):
    """An archive's name read: what it was, why it is one, when it became one (wall ms)."""

    transcript: str
    reason: str
    at_ms: int


def stamp(ms: int) -> str:
    """Wall ms as archives write it: ISO with dashes for colons."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z").replace(":", "-")


def archive_path(path: Path, reason: Reason, ms: int, number: int = 0) -> Path:
    """Where a transcript goes; `number` tells a second one of the same millisecond apart."""
    again = f"-{number}" if number else ""
    return path.with_name(f"{path.name}.{reason}.{stamp(ms)}{again}")


def read_archive(name: str) -> Archive | None:
    """An archive's name, or None for any other file."""
    found = _ARCHIVE.fullmatch(name)
    if found is None:
        return None
    at = _ms(found[3])
    return Archive(found[1], found[2], at) if at is not None else None


def repair_ms(name: str) -> int | None:
    """When a repair left this file (wall ms); None when none did."""
    found = _REPAIR.fullmatch(name)
    if found is None:
        return None
    if found[4]:
        return _ms(found[4])
    return int(next(group for group in found.groups() if group))


def is_draft(name: str) -> bool:
    """Whether this is a temporary file of a store, transcript or lock, ours or OpenClaw's."""
    return _DRAFT.fullmatch(name) is not None


def _ms(text: str) -> int | None:
    date, _, time = text.partition("T")
    try:
        at = datetime.fromisoformat(f"{date}T{time.replace('-', ':')}")
    except ValueError:
        return None
    return round(at.timestamp() * 1000)
