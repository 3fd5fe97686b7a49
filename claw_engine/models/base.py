"""What the agent and a model say to each other: requests, spans, stream events, errors.

A codec turns a `Request` into an `Encoded` body whose spans say which byte belongs to which part;
a transport streams `ModelEvent`s back. Knows no agent and no session.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct, field

from claw_engine.errors import ClawError
from claw_engine.messages import Usage
from claw_engine.parts import Part

REHEARSAL_PROVIDER = "rehearsal"


class ModelRef(Struct, frozen=True):
    """A model that can be called. Token limits in tokens; `api_key` and `headers` never print."""

    provider: str
    id: str
    api: str
    base_url: str | None = None
    api_key: str | None = None
    context_window: int = 200_000
    max_tokens: int | None = None
    reasoning: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    cost: Mapping[str, float] | None = None

    def __repr__(self) -> str:
        return f"ModelRef({self.name!r}, api={self.api!r}, base_url={self.base_url!r})"

    @property
    def name(self) -> str:
        """`provider/id`, as configuration names it."""
        return f"{self.provider}/{self.id}"

    @property
    def is_ai(self) -> bool:
        """False for the rehearsal model, which only acts out a script."""
        return self.provider != REHEARSAL_PROVIDER


class ToolSpec(Struct, frozen=True):
    """A tool as the model sees it: `part.text` is JSON with name, description and parameters."""

    part: Part

    @property
    def name(self) -> str:
        return self.part.name


class WireToolCall(Struct, frozen=True):
    """A past call being replayed; `arguments.text` is the text of a JSON object."""

    id: str
    name: str
    arguments: Part


class Turn(Struct, frozen=True):
    """One message of the request, free of any provider's shape."""

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...]
    reasoning: tuple[Part, ...] = ()
    tool_calls: tuple[WireToolCall, ...] = ()
    tool_call_id: str = ""
    is_error: bool = False


class Request(Struct, frozen=True):
    """Everything one model call says.

    `trusted_origin` is true when the newest user turn was typed at the console or `claw agent`;
    only then may the rehearsal model read its verbs.
    """

    model: ModelRef
    system: tuple[Part, ...]
    tools: tuple[ToolSpec, ...]
    turns: tuple[Turn, ...]
    max_tokens: int | None = None
    thinking: str = "off"
    trusted_origin: bool = False


class Span(Struct, frozen=True):
    """Bytes `start:end` of a body; `part_id` None marks glue (keys, braces, separators)."""

    part_id: str | None
    start: int
    end: int
    encoding: Literal["json-string", "raw"] = "raw"


class Piece(Struct, frozen=True, eq=False):
    """A stretch of a body, encoded once and shared by all requests that say the same.

    `spans` name its parts' bytes, counted from its own start; what lies between them is glue.
    `parts` are all parts it was made from, whether the wire carries them or not.
    """

    data: bytes
    spans: tuple[Span, ...] = ()
    parts: tuple[Part, ...] = ()


class Encoded(Struct, frozen=True):
    """A request ready for the wire: `body` is the data of all pieces, one after the other.

    `headers` hold the credential and never print.
    """

    body: bytes
    pieces: tuple[Piece, ...]
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Encoded({len(self.body)} bytes, {len(self.pieces)} pieces, url={self.url!r})"

    @property
    def spans(self) -> tuple[Span, ...]:
        """Sorted, disjoint, and covering every byte of `body`. Worked out at each reading: most
        calls need sizes only, and a long talk has hundreds."""
        out: list[Span] = []
        base = covered = 0
        for piece in self.pieces:
            for span in piece.spans:
                start, end = base + span.start, base + span.end
                if covered < start:
                    out.append(Span(None, covered, start))
                out.append(Span(span.part_id, start, end, span.encoding))
                covered = end
            base += len(piece.data)
        if covered < base:
            out.append(Span(None, covered, base))
        return tuple(out)


def decode_span(body: bytes, span: Span) -> str:
    """The text that a span of `body` stands for."""
    raw = body[span.start : span.end]
    if span.encoding == "raw":
        return raw.decode("utf-8")
    text: str = json.loads(b'"' + raw + b'"')
    return text


class TextDelta(Struct, frozen=True):
    text: str


class ReasoningDelta(Struct, frozen=True):
    """`name` is the wire field it came in, for whoever gives it back to the provider later."""

    text: str
    name: str = ""


class ToolCallStart(Struct, frozen=True):
    """`index` identifies the call within this answer; calls may interleave."""

    index: int
    id: str
    name: str


class ToolCallDelta(Struct, frozen=True):
    index: int
    arguments: str


class UsageSeen(Struct, frozen=True):
    usage: Usage


class Finished(Struct, frozen=True):
    """The answer is complete: stop, length or toolUse."""

    stop_reason: Literal["stop", "length", "toolUse"]


ModelEvent: TypeAlias = (
    TextDelta | ReasoningDelta | ToolCallStart | ToolCallDelta | UsageSeen | Finished
)


class ModelErrorKind(StrEnum):
    """Why a call failed, judged from transport and provider error only, never from messages."""

    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    TIMEOUT = "timeout"
    CONTEXT_OVERFLOW = "context_overflow"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    NETWORK = "network"
    CUT = "cut"
    CONFIG = "config"


_RETRYABLE = frozenset(
    {
        ModelErrorKind.RATE_LIMIT,
        ModelErrorKind.OVERLOADED,
        ModelErrorKind.SERVER,
        ModelErrorKind.TIMEOUT,
        ModelErrorKind.NETWORK,
        ModelErrorKind.CUT,
    }
)


class ModelError(ClawError):
    """A call to a model failed. `status` is the HTTP status, `retry_after_ms` what it asked for."""

    def __init__(
        self,
        title: str,
        *,
        kind: ModelErrorKind,
        hint: str = "",
        status: int | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(title, hint=hint, details={"kind": kind.value, "status": status})
        self.kind = kind
        self.status = status
        self.retry_after_ms = retry_after_ms
        self.retryable = kind in _RETRYABLE


class ModelConfigError(ModelError):
    """The configured model cannot be used; the message names the setting."""

    def __init__(self, title: str, *, hint: str = "") -> None:
        super().__init__(title, kind=ModelErrorKind.CONFIG, hint=hint)


class Model(Protocol):
    """A model that can be asked."""

    @property
    def ref(self) -> ModelRef: ...

    def encode(self, request: Request) -> Encoded:
        """The exact bytes to send, and which part each belongs to. Pure."""
        ...

    def stream(self, encoded: Encoded, request: Request) -> AsyncIterator[ModelEvent]:
        """Send and yield events until `Finished`. Raises ModelError; closing it cancels."""
        ...
