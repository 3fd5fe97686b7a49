"""Conversation messages in the shapes of OpenClaw's version-3 transcripts, typed.

Shapes: user, assistant and toolResult messages with text, thinking, toolCall and image blocks
(field names as OpenClaw 2026.2.26 writes them). Unknown fields are kept in `extra` and written
back. Knows no file and no provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, field

Json: TypeAlias = dict[str, object]


class TextBlock(Struct, frozen=True):
    text: str


class ThinkingBlock(Struct, frozen=True):
    thinking: str
    signature: str | None = None


class ToolCallBlock(Struct, frozen=True):
    """A call the model asked for; `error` says why its arguments could not be read."""

    id: str
    name: str
    arguments: Mapping[str, object]
    error: str | None = None


class ImageBlock(Struct, frozen=True):
    """Base64 image data."""

    data: str
    mime_type: str


class OtherBlock(Struct, frozen=True):
    """A block of a kind we do not know, kept as it was."""

    raw: Mapping[str, object]


Block: TypeAlias = TextBlock | ThinkingBlock | ToolCallBlock | ImageBlock | OtherBlock


class Usage(Struct, frozen=True):
    """Tokens of one model call, as the provider counted them.

    `cost` is money by the names of the transcript (`total` among them), None where a price is not
    known.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0
    cost: Mapping[str, float] | None = None

    def to_json(self) -> Json:
        """The five counters with the protocol's names (no cost)."""
        return {
            "input": self.input,
            "output": self.output,
            "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write,
            "totalTokens": self.total,
        }


class UserMessage(Struct, frozen=True):
    content: tuple[Block, ...]
    timestamp: int = 0
    extra: Mapping[str, object] = field(default_factory=dict)


class AssistantMessage(Struct, frozen=True):
    """`stop_reason`: stop, length, toolUse, error or aborted."""

    content: tuple[Block, ...]
    api: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage = Usage()
    stop_reason: str = "stop"
    timestamp: int = 0
    error_message: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls in this message, in order."""
        return tuple(b for b in self.content if isinstance(b, ToolCallBlock))


class ToolResultMessage(Struct, frozen=True):
    tool_call_id: str
    tool_name: str
    content: tuple[Block, ...]
    is_error: bool = False
    timestamp: int = 0
    details: Mapping[str, object] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage

# Spellings of a tool call block that older files hold (gateway digest §3.8).
_TOOL_CALL_TYPES = frozenset({"toolCall", "tool_call", "toolUse", "tool_use", "functionCall"})
_ZERO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}


def text_of(message: Message) -> str:
    """All text blocks of a message, joined without a separator."""
    return "".join(b.text for b in message.content if isinstance(b, TextBlock))


def block_to_json(block: Block) -> Json:
    """One content block as the transcript stores it."""
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text}
        case ThinkingBlock(thinking, signature):
            out: Json = {"type": "thinking", "thinking": thinking}
            if signature is not None:
                out["thinkingSignature"] = signature
            return out
        case ToolCallBlock(id_, name, arguments, error):
            out = {"type": "toolCall", "id": id_, "name": name, "arguments": dict(arguments)}
            if error is not None:
                out["argumentsError"] = error
            return out
        case ImageBlock(data, mime_type):
            return {"type": "image", "data": data, "mimeType": mime_type}
        case OtherBlock(raw):
            return dict(raw)


def block_from_json(raw: object) -> Block:
    """A block from a transcript; never raises, unknown kinds become OtherBlock."""
    if isinstance(raw, str):
        return TextBlock(raw)
    if not isinstance(raw, dict):
        return OtherBlock({"type": "unknown", "value": raw})
    kind = raw.get("type")
    if kind == "text" and isinstance(raw.get("text"), str) and len(raw) == 2:
        return TextBlock(raw["text"])
    if kind == "thinking" and isinstance(raw.get("thinking"), str):
        signature = raw.get("thinkingSignature")
        return ThinkingBlock(raw["thinking"], signature if isinstance(signature, str) else None)
    if kind in _TOOL_CALL_TYPES:
        arguments = raw.get("arguments", raw.get("input"))
        error = raw.get("argumentsError")
        return ToolCallBlock(
            str(raw.get("id", "")),
            str(raw.get("name", "")),
            arguments if isinstance(arguments, dict) else {},
            error if isinstance(error, str) else None,
        )
    if kind == "image" and isinstance(raw.get("data"), str):
        return ImageBlock(raw["data"], str(raw.get("mimeType", "")))
    if kind == "text" and isinstance(raw.get("text"), str):
        return TextBlock(raw["text"])
    return OtherBlock(raw)


def message_to_json(message: Message) -> Json:
    """The message object of a transcript line."""
    content = [block_to_json(b) for b in message.content]
    match message:
        case UserMessage():
            return {
                "role": "user",
                "content": content,
                "timestamp": message.timestamp,
                **message.extra,
            }
        case AssistantMessage():
            cost = dict(message.usage.cost or _ZERO_COST)
            out: Json = {
                "role": "assistant",
                "content": content,
                "api": message.api,
                "provider": message.provider,
                "model": message.model,
                "usage": {**message.usage.to_json(), "cost": cost},
                "stopReason": message.stop_reason,
                "timestamp": message.timestamp,
            }
            if message.error_message is not None:
                out["errorMessage"] = message.error_message
            return {**out, **message.extra}
        case ToolResultMessage():
            out = {
                "role": "toolResult",
                "toolCallId": message.tool_call_id,
                "toolName": message.tool_name,
                "content": content,
                "isError": message.is_error,
                "timestamp": message.timestamp,
            }
            if message.details is not None:
                out["details"] = dict(message.details)
            return {**out, **message.extra}


def message_from_json(raw: Mapping[str, object]) -> Message:
    """A typed message; raises ValueError for a role we do not know."""
    content_raw = raw.get("content", [])
    items = content_raw if isinstance(content_raw, list) else [content_raw]
    content = tuple(block_from_json(item) for item in items if item is not None)
    timestamp = _int(raw.get("timestamp"))
    match raw.get("role"):
        case "user":
            return UserMessage(content, timestamp, _rest(raw, _USER_KEYS))
        case "assistant":
            error = raw.get("errorMessage")
            return AssistantMessage(
                content,
                str(raw.get("api", "")),
                str(raw.get("provider", "")),
                str(raw.get("model", "")),
                usage_from_json(raw.get("usage")),
                str(raw.get("stopReason", "stop")),
                timestamp,
                error if isinstance(error, str) else None,
                _rest(raw, _ASSISTANT_KEYS),
            )
        case "toolResult":
            details = raw.get("details")
            return ToolResultMessage(
                str(raw.get("toolCallId", "")),
                str(raw.get("toolName", "")),
                content,
                raw.get("isError") is True,
                timestamp,
                details if isinstance(details, dict) else None,
                _rest(raw, _RESULT_KEYS),
            )
        case role:
            raise ValueError(f"unknown message role {role!r}")


def usage_from_json(raw: object) -> Usage:
    """Counters from a transcript's usage object; missing ones are 0."""
    if not isinstance(raw, dict):
        return Usage()
    return Usage(
        _int(raw.get("input")),
        _int(raw.get("output")),
        _int(raw.get("cacheRead")),
        _int(raw.get("cacheWrite")),
        _int(raw.get("totalTokens", raw.get("total"))),
        _cost(raw.get("cost")),
    )


_USER_KEYS = frozenset({"role", "content", "timestamp"})
_ASSISTANT_KEYS = _USER_KEYS | {
    "api",
    "provider",
    "model",
    "usage",
    "stopReason",
    "errorMessage",
}
_RESULT_KEYS = _USER_KEYS | {"toolCallId", "toolName", "isError", "details"}


def _rest(raw: Mapping[str, object], known: frozenset[str]) -> Json:
    return {key: value for key, value in raw.items() if key not in known}


def _cost(raw: object) -> Mapping[str, float] | None:
    """A known cost; all zeros are what is written where none is known."""
    if not isinstance(raw, dict):
        return None
    known = {
        name: float(raw[name])
        for name in _ZERO_COST
        if isinstance(raw.get(name), int | float) and not isinstance(raw[name], bool)
    }
    return known if any(known.values()) else None


def _int(value: object) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0
