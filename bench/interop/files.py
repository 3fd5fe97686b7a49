"""What lies in a sessions folder, and what must hold between two looks at it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Look:
    """A sessions folder at one moment: bytes of every file, the index parsed."""

    files: Mapping[str, bytes]
    index: Mapping[str, Mapping[str, Any]]

    def transcript(self, key: str) -> bytes:
        """The session's transcript; empty when it has none."""
        return self.files.get(f"{self.index[key]['sessionId']}.jsonl", b"")

    def lines(self, key: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.transcript(key).splitlines()]

    def archives(self, key: str, reason: str) -> list[bytes]:
        """Archived transcripts of the session's present id, oldest first."""
        return self.archives_of(str(self.index[key]["sessionId"]), reason)

    def archives_of(self, session_id: str, reason: str) -> list[bytes]:
        start = f"{session_id}.jsonl.{reason}."
        return [data for name, data in sorted(self.files.items()) if name.startswith(start)]


def look(state: Path, agent: str = "main") -> Look:
    """Read the sessions folder of an agent."""
    folder = state / "agents" / agent / "sessions"
    files = {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}
    index = json.loads(files.get("sessions.json", b"{}"))
    return Look(files, index)


def chain_faults(lines: Sequence[Mapping[str, Any]], leaf: str | None = None) -> list[str]:
    """What is wrong with the tree of a transcript; with `leaf`, of what was added behind it."""
    faults = []
    known: set[str] = set()
    entries = [line for line in lines if line.get("type") != "session"]
    if not lines or lines[0].get("type") != "session" or lines[0].get("version") != 3:
        faults.append("the first line is no version-3 header")
    for entry in entries:
        parent = entry.get("parentId")
        if parent is None and known:
            faults.append(f"{entry['type']} {entry['id']} begins a second root")
        if parent is not None and parent not in known:
            faults.append(f"{entry['type']} {entry['id']} follows the unknown {parent}")
        if entry["id"] in known:
            faults.append(f"the id {entry['id']} is used twice")
        known.add(entry["id"])
    if leaf is not None and leaf not in known:
        faults.append("the old leaf is gone")
    return faults


def leaf_of(data: bytes) -> str | None:
    """Id of the last line."""
    lines = data.splitlines()
    return json.loads(lines[-1]).get("id") if lines else None


def first_added(old: bytes, new: bytes) -> dict[str, Any] | None:
    """The first entry behind the old bytes; None when nothing was added."""
    added = new[len(old) :].splitlines()
    return json.loads(added[0]) if added else None


def spoken(messages: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """A history as both programs must tell it: role, and words, calls or results."""
    return [(str(m.get("role")), _words(m)) for m in messages]


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content", "")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts = []
    for block in blocks:
        match block.get("type"):
            case "text":
                parts.append(str(block.get("text", "")).strip())
            case "thinking":
                parts.append(f"(thinking) {block.get('thinking', '')}")
            case "toolCall":
                arguments = json.dumps(block.get("arguments"), sort_keys=True)
                parts.append(f"(call {block.get('id')}) {block.get('name')} {arguments}")
            case other:
                parts.append(f"({other})")
    result = message.get("toolCallId")
    if result is not None:
        parts.insert(0, f"(result of {result})")
    return "\n".join(parts)
