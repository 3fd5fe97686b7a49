"""Blocks that stand before a user's text for the model: what the place it came from told of it.

Each is a title and a fenced JSON value (agent digest §2.6). Whoever shows a conversation takes
them out again. Pure.
"""

from __future__ import annotations

import re

from claw_engine.patterns import late

CONVERSATION = "Conversation info (untrusted metadata):"
SENDER = "Sender (untrusted metadata):"
THREAD = "Thread starter (untrusted, for context):"
REPLIED = "Replied message (untrusted, for context):"
FORWARDED = "Forwarded message context (untrusted metadata):"
HISTORY = "Chat history since last reply (untrusted, for context):"

TITLES = (CONVERSATION, SENDER, THREAD, REPLIED, FORWARDED, HISTORY)

_BLOCKS = late(
    "(?:(?:" + "|".join(re.escape(title) for title in TITLES) + r")\n```json\n(?:.*\n)*?```\n*)+"
)


def strip_blocks(text: str) -> str:
    """The text without the blocks it begins with; a block further down is the writer's own."""
    if not text.startswith(TITLES):
        return text
    found = _BLOCKS.match(text)
    return text[found.end() :] if found is not None else text
