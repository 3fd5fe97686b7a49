"""Calling one tool without a run: what the gateway needs of the rooms below for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct


class ToolInvocation(Struct, frozen=True):
    """`denied` are tools that this way in may never call, with the rule that says so."""

    call_id: str
    tool: str
    args: Mapping[str, object]
    session_key: str
    action: str = ""
    denied: Mapping[str, str] = {}


class ToolAnswer(Struct, frozen=True):
    """`denied` and `not_found` name rule or tools in `text`; `error` is the tool's own."""

    status: Literal["ok", "error", "denied", "not_found", "bad_input"]
    text: str
    details: Mapping[str, object] | None = None


class ToolsPort(Protocol):
    async def invoke(self, call: ToolInvocation) -> ToolAnswer:
        """The same policy and approvals as in a run of that session. Raises ClawError."""
        ...
