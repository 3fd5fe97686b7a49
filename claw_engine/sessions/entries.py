"""Lines of a version-3 transcript as values: header, entries, and how old files become new. Pure.

Format: OpenClaw 2026.2.26 (gateway digest §3.8). Unknown entry types and fields are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

from msgspec import Struct, field

from claw_engine.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    block_from_json,
    message_from_json,
    message_to_json,
)
from claw_engine.storage.jsonl import parse_line

VERSION = 3
Json: TypeAlias = dict[str, object]

_FRAME = frozenset({"type", "id", "parentId", "timestamp", "message"})


class Header(Struct, frozen=True):
    """The first line; `extra` holds fields we do not know."""

    session_id: str
    timestamp: str
    cwd: str
    version: int = VERSION
    session_key: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> Json:
        out: Json = {
            "type": "session",
            "version": self.version,
            "id": self.session_id,
            "timestamp": self.timestamp,
            "cwd": self.cwd,
            **self.extra,
        }
        if self.session_key:
            out["sessionKey"] = self.session_key
        return out


class Entry(Struct, frozen=True):
    """One node of the tree. A `message` entry has a message (None for a role we do not know);
    every other kind keeps its fields in `data`. `timestamp` is ISO text."""

    id: str
    parent_id: str | None
    kind: str
    timestamp: str
    message: Message | None = None
    data: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> Json:
        """The line to append."""
        out: Json = {
            "type": self.kind,
            "id": self.id,
            "parentId": self.parent_id,
            "timestamp": self.timestamp,
            **self.data,
        }
        if self.message is not None:
            out["message"] = message_to_json(self.message)
        return out


class StoredMessage(Struct, frozen=True):
    """A message with its place in the transcript; `timestamp` is wall ms.

    `kind` is `message`, or the entry type a synthetic user message was made from.
    """

    entry_id: str
    parent_id: str | None
    message: Message
    timestamp: int
    kind: str = "message"


def read_header(raw: Mapping[str, object]) -> Header | None:
    """A header line as a value; None when the line is no header."""
    if raw.get("type") != "session":
        return None
    version = raw.get("version")
    known = {"type", "version", "id", "timestamp", "cwd", "sessionKey"}
    return Header(
        str(raw.get("id", "")),
        str(raw.get("timestamp", "")),
        str(raw.get("cwd", "")),
        version if isinstance(version, int) else 1,
        str(raw.get("sessionKey", "")),
        {key: value for key, value in raw.items() if key not in known},
    )


def read_entry(raw: Mapping[str, object], previous: str | None) -> Entry:
    """An entry line as a value. Without a `parentId` its parent is the line before (`previous`);
    a missing id stays empty (files before version 2)."""
    parent = raw.get("parentId", previous)
    kind = str(raw.get("type", ""))
    entry_id = raw.get("id")
    frame = (
        entry_id if isinstance(entry_id, str) else "",
        parent if isinstance(parent, str) else None,
        kind,
        str(raw.get("timestamp", "")),
    )
    inner = raw.get("message")
    if kind == "message" and isinstance(inner, dict):
        try:
            message = message_from_json(inner)
        except ValueError:
            return Entry(*frame, data={"message": inner, **_rest(raw)})
        return Entry(*frame, message=message, data=_rest(raw))
    return Entry(*frame, data={k: v for k, v in raw.items() if k == "message" or k not in _FRAME})


def parse(data: bytes) -> Iterator[tuple[int, int, Json | str]]:
    """Number (from 1) and size in bytes of each whole line, and its object or why it is none."""
    start = number = 0
    while start < len(data):  # no split: one call over a large file would hold the loop
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        if end > start:
            yield number, end - start, parse_line(data[start:end])
        start = end + 1


def has_assistant(entry: Entry) -> bool:
    """Whether this entry makes OpenClaw keep the file (it empties one without an answer)."""
    return isinstance(entry.message, AssistantMessage)


def worth_fsync(entry: Entry) -> bool:
    """Whether the entry must survive a power cut at once."""
    return has_assistant(entry) or isinstance(entry.message, ToolResultMessage)


def stored(entry: Entry) -> StoredMessage | None:
    """The entry as the model and a reader see it; None when it is not part of the talk."""
    made = entry.message or _as_user(entry)
    if made is None:
        return None
    when = made.timestamp or ms_of(entry.timestamp)
    return StoredMessage(entry.id, entry.parent_id, made, when, entry.kind)


def _as_user(entry: Entry) -> UserMessage | None:
    data, when = entry.data, ms_of(entry.timestamp)
    match entry.kind:
        case "compaction":
            text = f"Summary of the conversation before this point:\n\n{data.get('summary', '')}"
            return UserMessage((TextBlock(text),), when)
        case "branch_summary":
            text = f"Summary of a branch that was left:\n\n{data.get('summary', '')}"
            return UserMessage((TextBlock(text),), when)
        case "custom_message":
            content = data.get("content", "")
            items = content if isinstance(content, list) else [content]
            return UserMessage(tuple(block_from_json(item) for item in items), when)
        case _:
            return None


def iso(ms: int) -> str:
    """Wall ms as the transcript writes time: 2026-11-30T08:46:37.019Z."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def ms_of(timestamp: str) -> int:
    """Wall ms of an ISO time; 0 when unreadable."""
    try:
        return round(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except ValueError:
        return 0


def _rest(raw: Mapping[str, object]) -> Json:
    return {key: value for key, value in raw.items() if key not in _FRAME}
