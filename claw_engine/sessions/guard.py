"""The last guard before a tool result is kept: a size no transcript line should pass. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from claw_engine.messages import Block, Message, TextBlock, ToolResultMessage

MAX_RESULT_CHARS = 400_000
"""Text of one tool result on disk, in characters (agent digest §3.3)."""
MIN_KEPT_CHARS = 2_000
"""At least this much of each text block stays, in characters (agent digest §3.3)."""


def guarded(message: Message) -> Message:
    """A message as it may be kept."""
    return capped(message) if isinstance(message, ToolResultMessage) else message


def capped(message: ToolResultMessage, limit: int = MAX_RESULT_CHARS) -> ToolResultMessage:
    """The result with its text cut to `limit` characters, each block in proportion."""
    total = sum(len(b.text) for b in message.content if isinstance(b, TextBlock))
    if total <= limit:
        return message
    return replace(message, content=tuple(_cut(b, limit, total) for b in message.content))


def _cut(block: Block, limit: int, total: int) -> Block:
    if not isinstance(block, TextBlock):
        return block
    keep = max(MIN_KEPT_CHARS, limit * len(block.text) // total)
    if keep >= len(block.text):
        return block
    lost = len(block.text) - keep
    return TextBlock(f"{block.text[:keep]}\n[cut: {lost} more characters were not kept]")
