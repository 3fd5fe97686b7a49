"""What the trace store answers with: runs, calls, parts, tools, events.

Times are ms since the epoch, spans of time in ms, sizes in bytes of the wire; tokens are estimated
unless they stand in a `Usage`, which the provider counted. `wire` gives JSON with camelCase names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

RunStatus: TypeAlias = Literal["running", "done", "failed", "aborted", "interrupted"]
CallStatus: TypeAlias = Literal["running", "ok", "error", "aborted", "interrupted"]
Basis: TypeAlias = Literal["measured", "estimated"]


class Record(Struct, frozen=True, rename="camel", omit_defaults=False):
    """Base: the JSON names are the camelCase of these."""


class CallUsage(Record, frozen=True):
    """What the provider counted. `input` leaves out what it read from its cache."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


class CallRecord(Record, frozen=True):
    """One call to a model.

    `id` is `<runId>/<callId of the live trace>`; in a second life of a run (resumed after a
    restart) `@2` follows. `cause` is a `CallCause`, `parent_id` the call that led to this one, for
    the first of a run the run's parent. `queue_ms` is the wait for a place in the lanes before the
    run, `parked_ms` what the run has waited for the operator so far. `tokens` and `basis`: the
    input as counted by the provider, or estimated while it has not said. `ratio`: estimates were
    drawn by it towards what the provider had counted so far.
    """

    id: str
    run_id: str
    session_key: str
    agent_id: str
    seq: int
    cause: str
    parent_id: str | None
    model: str
    provider: str
    api: str
    attempt: int
    started_ms: int
    first_token_ms: int | None
    ended_ms: int | None
    queue_ms: int
    parked_ms: int
    status: CallStatus
    error: str | None
    finish: str | None
    body_bytes: int
    body_hash: str
    estimated_tokens: int
    tokens: int
    basis: Basis
    usage: CallUsage | None = None
    cost: float | None = None
    ratio: float = 1.0


class PartRow(Record, frozen=True):
    """One part of a request as it stands in the body, in wire order.

    `hash` names the encoded bytes, so equal hashes are equal bytes. `start:end` are offsets in the
    body. `is_new`: the call before it in the session did not have it. `cached`: it lies in the
    part of the body that begins as the call before did, which is what a provider can reuse.
    Kind `envelope` is all that belongs to no part: keys, punctuation, parameters.
    """

    id: str
    kind: str
    name: str
    source: str
    bytes: int
    tokens: int
    hash: str
    cached: bool
    is_new: bool
    start: int
    end: int
    basis: Basis = "estimated"


class SourceDelta(Record, frozen=True):
    """How much one source grew or shrank since the call before; `label` is for people."""

    source: str
    kind: str
    label: str
    bytes: int
    tokens: int


class ToolRow(Record, frozen=True):
    """One tool call; `call_id` is the call that asked for it."""

    id: str
    run_id: str
    call_id: str
    name: str
    status: str
    started_ms: int
    ended_ms: int | None
    duration_ms: int | None
    waited_ms: int
    exit_code: int | None
    decision: str | None


class RunRow(Record, frozen=True):
    """One run. `title` is the beginning of what was asked; `usage` sums all of its calls.

    `answered_by`: another run answered this message with its own, so this one made no call.
    """

    id: str
    session_key: str
    agent_id: str
    parent_id: str | None
    answered_by: str | None
    source: str
    cause: str
    title: str
    model: str
    status: RunStatus
    stop_reason: str
    started_ms: int
    ended_ms: int | None
    queue_ms: int
    parked_ms: int
    calls: int
    tools: int
    body_bytes: int
    estimated_tokens: int
    usage: CallUsage | None = None
    cost: float | None = None
    error: str | None = None


class EventRow(Record, frozen=True):
    """One step of a run, as the live trace told it."""

    run_id: str
    session_key: str
    seq: int
    ts: int
    kind: str
    data: Mapping[str, object]


class Answer(Record, frozen=True):
    """What a model answered; a tool call is {id, name, arguments} with the arguments' text."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, str], ...] = ()


def wire(record: Record) -> dict[str, object]:
    """A record as JSON values."""
    made: dict[str, object] = msgspec.to_builtins(record)
    return made
