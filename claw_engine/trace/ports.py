"""What the trace is told, in shapes of its own: it must not know models or the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from claw_engine.parts import Part
from claw_engine.protocol.trace import CallCause
from claw_engine.trace.records import CallUsage


class SpanLike(Protocol):
    """Bytes of one part, counted from the beginning of its piece."""

    @property
    def part_id(self) -> str | None: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def encoding(self) -> Literal["json-string", "raw"]: ...


class PieceLike(Protocol):
    """A stretch of a body; immutable and shared between calls, compared by identity."""

    @property
    def data(self) -> bytes: ...
    @property
    def spans(self) -> Sequence[SpanLike]: ...
    @property
    def parts(self) -> Sequence[Part]: ...


class Call(Struct, frozen=True):
    """A call as it begins; `call_id` is that of the live trace, `ts` ms since the epoch."""

    run_id: str
    session_key: str
    agent_id: str
    call_id: str
    cause: CallCause
    parent_id: str | None
    attempt: int
    model: str
    provider: str
    api: str
    ts: int
    estimated_tokens: int
    ratio: float = 1.0
    """What the provider counts a plainly estimated token for; `estimated_tokens` is plain."""


class CallEnd(Struct, frozen=True):
    """How a call ended. `tool_calls` are {id, name, arguments}, the arguments as text; `ttft_ms`
    counts from its beginning."""

    status: Literal["ok", "error", "aborted"]
    finish: str
    ts: int
    ttft_ms: int | None = None
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, str], ...] = ()
    usage: CallUsage | None = None
    cost: float | None = None
    error: str | None = None
