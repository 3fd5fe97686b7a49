"""What a session list shows of one session. Pure.

Row fields: `sessions.list` of OpenClaw 2026.2.26 (gateway digest §1.11); whoever owns runs adds
their state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from claw_engine.messages import AssistantMessage, Message, UserMessage, text_of
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.inbound_blocks import strip_blocks
from claw_engine.sessions.keys import BARE, SessionKey, chat_type

PREVIEW_CHARS = 240
"""Characters of a preview (OpenClaw's default for sessions.preview)."""

# "[Mon 2026-11-30 08:46 UTC] " before user text, as OpenClaw stamps it for the model.
_STAMP = re.compile(r"\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} \d{2}:\d{2}[^\]\n]{0,40}\] ")


class SessionRow(Struct, frozen=True):
    """One line of the session list; None = not known. `updated_at` is wall ms."""

    key: str
    session_id: str
    updated_at: int
    display_name: str | None = None
    last_message_preview: str | None = None
    aborted_last_run: bool = False
    model: str | None = None
    total_tokens: int | None = None
    context_tokens: int | None = None

    def to_wire(self) -> dict[str, object]:
        """The row with the protocol's names; fields without a value are left out."""
        fields: dict[str, object] = {
            "key": self.key,
            "sessionId": self.session_id,
            "updatedAt": self.updated_at,
            "displayName": self.display_name,
            "lastMessagePreview": self.last_message_preview,
            "abortedLastRun": True if self.aborted_last_run else None,
            "model": self.model,
            "totalTokens": self.total_tokens,
            "contextTokens": self.context_tokens,
        }
        return {name: value for name, value in fields.items() if value is not None}


def row(entry: SessionEntry, preview: str = "") -> SessionRow:
    """The row of an entry."""
    return SessionRow(
        entry.key,
        entry.session_id,
        entry.updated_at,
        entry.text("label") or entry.text("displayName") or None,
        preview or None,
        entry.aborted_last_run,
        entry.text("model") or None,
        entry.number("totalTokens"),
        entry.number("contextTokens"),
    )


_TEXTS = (
    "label", "channel", "subject", "groupChannel", "space", "thinkingLevel", "verboseLevel",
    "reasoningLevel", "elevatedLevel", "sendPolicy", "responseUsage", "modelProvider",
    "providerOverride", "modelOverride", "permissionMode", "spawnedBy", "lastChannel",
)  # fmt: skip
_NUMBERS = ("inputTokens", "outputTokens", "sessionStartedAt", "spawnDepth")
_FLAGS = ("systemSent", "totalTokensFresh", "forkedFromParent", "archived", "pinned")


def facts(entry: SessionEntry, key: SessionKey) -> dict[str, object]:
    """What an entry says of its session besides `SessionRow`, with the protocol's names.

    Plain fields only: they are read without parsing the rest of an entry.
    """
    kind = chat_type(key) if key.text not in BARE else key.text
    found: dict[str, object] = {
        "kind": kind if kind in BARE else "group" if kind in ("group", "channel") else "direct",
        "chatType": entry.text("chatType") or ("direct" if kind == "unknown" else kind),
    }
    found |= {name: value for name in _TEXTS if (value := entry.text(name))}
    found |= {n: number for n in _NUMBERS if (number := entry.number(n)) is not None}
    return found | {n: flag for n in _FLAGS if isinstance(flag := entry.raw.get(n), bool)}


def matches(entry: SessionEntry, search: str) -> bool:
    """Whether the words a person typed occur in the entry's names, id or key (any case)."""
    needle = search.strip().lower()
    names = ("displayName", "label", "subject", "sessionId")
    return needle in entry.key or any(needle in entry.text(name).lower() for name in names)


def strip_stamp(text: str) -> str:
    """User text without what was put before it for the model: blocks about it, the time."""
    text = strip_blocks(text)
    stamp = _STAMP.match(text)
    return text[stamp.end() :] if stamp is not None else text


def preview_of(newest_first: Iterable[Message]) -> str:
    """One line of the newest message that has text, of a person or the agent."""
    for message in newest_first:
        if not isinstance(message, UserMessage | AssistantMessage):
            continue
        text = text_of(message)
        if isinstance(message, UserMessage):
            text = strip_stamp(text)
        line = " ".join(text[: PREVIEW_CHARS * 4].split())
        if line:
            return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"
    return ""
