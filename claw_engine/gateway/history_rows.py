"""Messages of a history in the shape each kind of client reads. Pure.

Ours (they follow the trace) get everything; OpenClaw's clients what their gateway would send
(gateway digest §1.11 chat.history, protocol digest §2.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from claw_engine.gateway.wire_events import json_bytes

MAX_CHARS = 12_000
"""Characters of one text."""
MAX_MESSAGE = 128 * 1024
"""Bytes of one message."""
MAX_TOTAL = 6 * 1024 * 1024
"""Bytes of all messages."""
CUT = "\n…(truncated)…"
TOO_LARGE = "[chat.history omitted: message too large]"

Row = dict[str, object]


def rows_for(
    messages: Sequence[Mapping[str, object]], protocol: int, *, max_chars: int = MAX_CHARS,
    max_bytes: int = MAX_TOTAL,
) -> list[Row]:  # fmt: skip
    """The newest messages that fit into `max_bytes`, oldest first."""
    rows: list[Row] = []
    room = min(max_bytes, MAX_TOTAL)
    for message in reversed(messages):
        row = row_for(message, protocol, max_chars=max_chars)
        size = len(json_bytes(row))
        if size > MAX_MESSAGE:
            row = _placeholder(row)
            size = len(json_bytes(row))
        room -= size
        if room < 0 and rows:
            break
        rows.append(row)
    return rows[::-1]


def row_for(message: Mapping[str, object], protocol: int, *, max_chars: int = MAX_CHARS) -> Row:
    """One message for a client that is not ours."""
    place = message.get("__openclaw")
    if isinstance(place, Mapping) and place.get("kind") == "compaction":
        return {
            "role": "system",
            "content": [{"type": "text", "text": "Compaction"}],
            "timestamp": message.get("timestamp"),
            "__openclaw": dict(place),
        }
    row = {name: value for name, value in message.items() if name not in ("__claw", "details")}
    if protocol < 4:
        row.pop("usage", None)
    content = row.get("content")
    if isinstance(content, list):
        blocks = [_block(block, max_chars) for block in content if isinstance(block, Mapping)]
        row["content"] = blocks
        if protocol >= 4 and row.get("role") == "user" and _only_text(blocks):
            row["content"] = "\n".join(str(block["text"]) for block in blocks)
    return row


def _only_text(blocks: Sequence[Mapping[str, object]]) -> bool:
    return bool(blocks) and all(block.get("type") == "text" for block in blocks)


def _block(block: Mapping[str, object], max_chars: int) -> Row:
    out = {name: value for name, value in block.items() if name != "thinkingSignature"}
    if out.get("type") == "image" and isinstance(data := out.pop("data", None), str):
        return {**out, "omitted": True, "bytes": len(data) * 3 // 4}
    for name in ("text", "thinking"):
        text = out.get(name)
        if isinstance(text, str) and len(text) > max_chars:
            out[name] = text[:max_chars] + CUT
    return out


def _placeholder(row: Row) -> Row:
    place = row.get("__openclaw")
    known = dict(place) if isinstance(place, Mapping) else {}
    return {
        "role": row.get("role"),
        "content": [{"type": "text", "text": TOO_LARGE}],
        "timestamp": row.get("timestamp"),
        "__openclaw": {**known, "truncated": True, "reason": "oversized"},
    }
