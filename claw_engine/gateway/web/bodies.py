"""The bodies of HTTP requests as pydantic models, and what is wrong with one in OpenAI's shape.

The only module that imports pydantic (0.2 s): `reading.py` loads it with the first such request, in
a thread. Knows no run and no socket.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from claw_engine.gateway.web.http import HttpError

MAX_SAID = 5
"""Faults that one answer names."""


class Body(BaseModel):
    """What else a client sends (temperature, tools, …) is for other servers, and ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class ContentPart(Body):
    """A piece of a message; only text is read."""

    type: str
    text: str | None = None


class ChatMessage(Body):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(p.text for p in self.content if p.type == "text" and p.text)
        return self.content or ""


class StreamOptions(Body):
    include_usage: bool | None = None


class ChatRequest(Body):
    """POST /v1/chat/completions (gateway digest §1.12)."""

    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    model: str = ""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None


class ToolRequest(Body):
    """POST /tools/invoke (gateway digest §1.12)."""

    tool: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    args: dict[str, Any] | None = None  # a tool's own shape
    action: str | None = None
    session_key: Annotated[str | None, Field(alias="sessionKey")] = None


B = TypeVar("B", bound=Body)


def parse(kind: type[B], data: bytes) -> B:
    """A body as an object. Raises HttpError 400."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise _problem(error) from None


def _problem(error: ValidationError) -> HttpError:
    """Every fault with its place; `param` is the first one's, as OpenAI's clients show it."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    first = faults[0]
    param = ".".join(str(step) for step in first["loc"]) or None
    if first["type"] == "json_invalid":
        message = "The body is no JSON."
    elif param is None:
        message = "The body must be a JSON object."
    else:
        said = [f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in faults[:MAX_SAID]]
        if len(faults) > MAX_SAID:
            said.append(f"{len(faults) - MAX_SAID} more")
        message = "; ".join(said)
    return HttpError(400, {
        "error": {
            "message": message, "type": "invalid_request_error", "param": param, "code": None,
        },
    })  # fmt: skip
