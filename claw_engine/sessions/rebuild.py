"""Entries for transcripts that no index names: what is left when sessions.json is lost.

Our own headers carry the session key. Transcripts of other writers cannot tell theirs: they get a
key `agent:<agent>:recovered:<sessionId>` and are listed, so nothing is out of reach.
Synchronous: runs on the disk executor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct

from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.errors import InvalidSessionKey
from claw_engine.sessions.keys import canonical, valid_session_id
from claw_engine.storage.jsonl import parse_line
from claw_engine.world import Disk

HEADER_BYTES = 16 * 1024
"""How much of a file is read to find its header line."""

SUFFIX = ".jsonl"


class Found(Struct, frozen=True):
    """A transcript on disk: its file name, session id, last change (wall ms), key if it says."""

    name: str
    session_id: str
    modified_ms: int
    key: str


def transcript_names(disk: Disk, sessions_dir: Path) -> list[str]:
    """Names of the live transcripts of a folder (archives and locks excluded), sorted."""
    if not disk.exists(sessions_dir):
        return []
    return sorted(filter(is_transcript, disk.listdir(sessions_dir)))


def is_transcript(name: str) -> bool:
    """Whether a file name is that of a live transcript."""
    return name.endswith(SUFFIX) and valid_session_id(name[: -len(SUFFIX)])


def inspect(disk: Disk, sessions_dir: Path, names: Collection[str]) -> list[Found]:
    """What these files say about themselves; empty and unreadable ones are left out."""
    found = [_inspect(disk, sessions_dir / name) for name in names]
    return [item for item in found if item is not None]


def entries_for(
    found: Collection[Found], agent_id: str, known: Collection[str]
) -> dict[str, SessionEntry]:
    """New entries by key for found transcripts; the newest wins a key, `known` keys are taken."""
    entries: dict[str, SessionEntry] = {}
    for item in sorted(found, key=lambda f: (-f.modified_ms, f.name)):
        fields: dict[str, object] = {
            "sessionId": item.session_id,
            "updatedAt": item.modified_ms,
            "sessionFile": item.name,
        }
        key = item.key
        if not key or key in known or key in entries:
            key = canonical(f"agent:{agent_id}:recovered:{item.session_id}").text
            fields["displayName"] = f"Recovered {item.session_id[:8]}"
        entries.setdefault(key, SessionEntry(key, fields))
    return entries


def _inspect(disk: Disk, path: Path) -> Found | None:
    try:
        stat = disk.stat(path)
        head = disk.read_from(path, 0, HEADER_BYTES)
    except OSError:
        return None
    if not head.strip(b"\0 \r\n"):
        return None
    header = parse_line(head.split(b"\n", 1)[0])
    stem = path.name[: -len(SUFFIX)]
    modified = int(stat.st_mtime * 1000)
    if isinstance(header, str) or header.get("type") != "session":
        return Found(path.name, stem, modified, "")
    told = header.get("id")
    session_id = told if isinstance(told, str) and valid_session_id(told) else stem
    return Found(path.name, session_id, modified, _key(header))


def _key(header: Mapping[str, object]) -> str:
    raw = header.get("sessionKey")
    if not isinstance(raw, str):
        return ""
    try:
        return canonical(raw).text
    except InvalidSessionKey:
        return ""
