"""A piece of a model request that knows where it came from.

Prompt builder, codecs and the prompt view all speak of parts; nothing here knows any of them.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class PartKind(StrEnum):
    """What a part is, as the prompt view groups it."""

    SECTION = "section"
    FILE = "file"
    SKILL = "skill"
    TOOL = "tool"
    USER = "user"
    ASSISTANT = "assistant"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


class Part(Struct, frozen=True):
    """One piece of text of a request.

    `id` is unique within the request, `source` says where the text comes from (a file path,
    `section:Tooling`, a transcript entry id), `name` is what a person calls it.
    """

    id: str
    kind: PartKind
    source: str
    text: str
    name: str = ""
