"""From stored messages to turns a model may read again.

Drops what must not be replayed (half-written tool calls, images already seen, empty blocks) and
names each piece as a Part. In memory only: the transcript on disk stays as it is. Pairing of calls
and results is `pairing.py`'s business and comes later. Rules: agent digest §3.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from claw_engine.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from claw_engine.models.base import Turn, WireToolCall
from claw_engine.parts import Part, PartKind

IMAGE_NOTE = "[an image was here; it is no longer part of the context]"
UNFINISHED: Mapping[str, str] = {
    "aborted": "[stopped before an answer]",
    "error": "[no answer: the model call failed]",
}
"""Stop reasons whose tool calls may be half written: neither call nor result is replayed. The text
stands in for an answer without words, so that the next message is not taken for part of the last.
"""

_BAD_NAME = re.compile(r"[^A-Za-z0-9_-]")


class Stored(Protocol):
    """A message as the sessions room keeps it."""

    @property
    def entry_id(self) -> str: ...
    @property
    def message(self) -> Message: ...


def wire_name(name: str) -> str:
    """A tool name that every provider accepts: 1-64 of letters, digits, `_` and `-`."""
    return _BAD_NAME.sub("_", name)[:64] or "unknown"


class TurnCache:
    """Turns by message object: a long history is turned once, and its parts keep their identity."""

    def __init__(self, limit: int = 8192) -> None:
        self._limit = limit
        self._known: dict[int, tuple[Message, Turn | None]] = {}

    def turn(self, entry_id: str, message: Message) -> Turn | None:
        """Like `turn_of`; an entry's id belongs to its message for good."""
        known = self._known.get(id(message))
        if known is not None:
            return known[1]
        if len(self._known) >= self._limit:
            self._known.clear()
        turn = turn_of(entry_id, message)
        # The message is kept so that its id() cannot be reused.
        self._known[id(message)] = (message, turn)
        return turn

    def turns(self, messages: Sequence[Stored]) -> list[Turn]:
        """See `turns_of`; nearly all of a talk is known, and looked up without a call."""
        out: list[Turn] = []
        for stored in messages:
            message = stored.message
            known = self._known.get(id(message))
            turn = known[1] if known is not None else self.turn(stored.entry_id, message)
            if turn is not None:
                out.append(turn)
        return out


def turns_of(messages: Sequence[Stored], cache: TurnCache | None = None) -> list[Turn]:
    """One turn per message, in order; messages without anything to say give none."""
    if cache is not None:
        return cache.turns(messages)
    turns = (turn_of(m.entry_id, m.message) for m in messages)
    return [turn for turn in turns if turn is not None]


def turn_of(entry_id: str, message: Message) -> Turn | None:
    """The turn of one message, or None when it would be empty."""
    match message:
        case UserMessage(content=content):
            parts = _texts(entry_id, PartKind.USER, content)
            return Turn("user", parts) if parts else None
        case ToolResultMessage():
            return _result(entry_id, message)
        case AssistantMessage():
            return _assistant(entry_id, message)


def call_of(entry_id: str, block: ToolCallBlock) -> WireToolCall:
    """A past call; its arguments are always the text of a JSON object (case PR-01)."""
    name = wire_name(block.name)
    text = json.dumps(dict(block.arguments), ensure_ascii=False)
    part = Part(f"{entry_id}:call:{block.id}", PartKind.TOOL_CALL, entry_id, text, name)
    return WireToolCall(block.id, name, part)


def _assistant(entry_id: str, message: AssistantMessage) -> Turn | None:
    parts = _texts(entry_id, PartKind.ASSISTANT, message.content)
    calls: tuple[WireToolCall, ...] = ()
    if message.stop_reason not in UNFINISHED:
        calls = tuple(call_of(entry_id, b) for b in message.tool_calls() if b.id)
    if not parts and (stand_in := UNFINISHED.get(message.stop_reason)) is not None:
        parts = (Part(f"{entry_id}:end", PartKind.ASSISTANT, entry_id, stand_in, "assistant"),)
    if not parts and not calls:
        return None
    reasoning = tuple(
        Part(f"{entry_id}:think:{i}", PartKind.REASONING, entry_id, b.thinking, "reasoning")
        for i, b in enumerate(message.content)
        if isinstance(b, ThinkingBlock) and b.thinking
    )
    return Turn("assistant", parts, reasoning, calls)


def _result(entry_id: str, message: ToolResultMessage) -> Turn | None:
    if not message.tool_call_id:
        return None
    text = "\n".join(part.text for part in _texts(entry_id, PartKind.TOOL_RESULT, message.content))
    part = Part(
        f"{entry_id}:0", PartKind.TOOL_RESULT, entry_id, text or "(no output)", message.tool_name
    )
    return Turn("tool", (part,), tool_call_id=message.tool_call_id, is_error=message.is_error)


def _texts(entry_id: str, kind: PartKind, content: Iterable[Block]) -> tuple[Part, ...]:
    parts = []
    for i, block in enumerate(content):
        match block:
            case TextBlock(text) if text.strip():
                parts.append(Part(f"{entry_id}:{i}", kind, entry_id, text, kind.value))
            case ImageBlock():
                parts.append(Part(f"{entry_id}:{i}", kind, entry_id, IMAGE_NOTE, kind.value))
            case _:
                pass
    return tuple(parts)
