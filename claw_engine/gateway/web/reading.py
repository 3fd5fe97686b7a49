"""Bytes of a request into a checked body, off the loop. Knows no shape: those are in bodies.py."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claw_engine.gateway.web.bodies import ChatRequest, ToolRequest


async def chat_request(data: bytes) -> ChatRequest:
    """Raises HttpError."""
    return await asyncio.to_thread(_chat, data)


async def tool_request(data: bytes) -> ToolRequest:
    """Raises HttpError."""
    return await asyncio.to_thread(_tool, data)


def _chat(data: bytes) -> ChatRequest:
    from claw_engine.gateway.web import bodies  # pydantic: only for who sends such a request

    return bodies.parse(bodies.ChatRequest, data)


def _tool(data: bytes) -> ToolRequest:
    from claw_engine.gateway.web import bodies  # as above

    return bodies.parse(bodies.ToolRequest, data)
