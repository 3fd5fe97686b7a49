"""One session's entry in sessions.json: the fields we read by name, all others kept as they are.

Field names: OpenClaw 2026.2.26 (gateway digest §3.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from claw_engine.paths import contains
from claw_engine.sessions.errors import ForeignTranscript
from claw_engine.sessions.keys import valid_session_id


class SessionEntry(Struct, frozen=True):
    """An entry; `raw` holds every field as written in the file. Change it through `replace`."""

    key: str
    raw: Mapping[str, object] = field(default_factory=dict)

    @property
    def session_id(self) -> str:
        """The transcript's id; empty when the entry has none that can be a file name."""
        value = self.raw.get("sessionId")
        return value if isinstance(value, str) and valid_session_id(value) else ""

    @property
    def updated_at(self) -> int:
        """Wall ms of the last change; 0 = unknown."""
        value = self.raw.get("updatedAt")
        return int(value) if isinstance(value, int | float) else 0

    @property
    def session_file(self) -> str:
        return self.text("sessionFile")

    @property
    def aborted_last_run(self) -> bool:
        return self.raw.get("abortedLastRun") is True

    def text(self, name: str) -> str:
        """A text field, or the empty string."""
        value = self.raw.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int | None:
        """A whole-number field, or None."""
        value = self.raw.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def replace(self, **fields: object) -> SessionEntry:
        """The entry with these fields set (file spelling); None removes a field."""
        raw = {**self.raw, **fields}
        return SessionEntry(self.key, {k: v for k, v in raw.items() if v is not None})


def transcript_path(sessions_dir: Path, entry: SessionEntry) -> Path:
    """Where the entry's transcript is: always a `.jsonl` inside `sessions_dir` (case ST-03).

    A relative path inside the folder counts; of any other path only the file name does, so that a
    moved state directory still finds its files. Raises ForeignTranscript when a symlink leads out
    or when the entry names no transcript at all.
    """
    path = named_path(sessions_dir, entry)
    if path is None:
        raise ForeignTranscript(f"Session {entry.key} names no transcript file.")
    if not contains(sessions_dir, path):
        raise ForeignTranscript(
            f"The transcript of {entry.key} leads out of the sessions folder: {path}.",
            hint="Move the file into the sessions folder; it is not opened where it is.",
            details={"path": str(path)},
        )
    return path


def named_path(sessions_dir: Path, entry: SessionEntry) -> Path | None:
    """The path an entry means, symlinks unchecked; None when it names none. Pure."""
    return _named(sessions_dir, entry.session_file, entry.session_id)


@lru_cache(maxsize=1024)
def _named(sessions_dir: Path, session_file: str, session_id: str) -> Path | None:
    """Asked for every message; making paths costs more than all else of the question."""
    written = session_file.replace("\\", "/")
    pure = PurePosixPath(written)
    if written and pure.suffix == ".jsonl" and "\0" not in written:
        if not pure.is_absolute() and ".." not in pure.parts and ":" not in pure.parts[0]:
            return sessions_dir / pure
        return sessions_dir / pure.name
    return sessions_dir / f"{session_id}.jsonl" if session_id else None
