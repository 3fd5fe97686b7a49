"""The live trace: what a run does, step by step, as our own `trace` event carries it.

`data` by kind (every text comes from outside and is never markup):

    run.queued    message, source, lane, waitingBehind, steeredInto?
    run.started   model, provider, isAI, waitMs, cause, messages[], answeredBy?
    run.state     prev, new, reason
    call.started  callId, cause, model, parts[{id,kind,name,source,bytes,tokens}], bytes, tokens,
                  ratio, estimated
    reasoning     callId, delta
    text          callId, delta
    call.ended    callId, stopReason, usage|null, spent|null, ttftMs|null, durationMs,
                  error{kind,message}|null
    tool.started  callId, toolCallId, name, args
    tool.waiting  toolCallId, approvalId, expiresAtMs
    tool.decided  toolCallId, approvalId, decision|null, by, reason
    tool.output   toolCallId, delta
    tool.ended    toolCallId, name, status, text, exitCode|null, durationMs, decision|null
    retry         reason, delayMs, attempt
    notice        level, text
    run.ended     status, stopReason, text, error{title,hint}|null, durationMs, usage, answeredBy?

`messages` are the ids a run answers; a message that another run answers has `answeredBy`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import StrEnum
from typing import ClassVar

from claw_engine.events import Event


class CallCause(StrEnum):
    """Why a model is called. There is no call without one."""

    TURN = "turn"
    TOOL_ROUND = "tool_round"
    STEER = "steer"
    RETRY = "retry"
    RESUME = "resume"
    FAILOVER = "failover"
    FLUSH = "flush"
    COMPACTION = "compaction"
    HEARTBEAT = "heartbeat"
    CRON = "cron"
    HOOK = "hook"
    SUBAGENT = "subagent"
    TITLE = "title"
    MEMORY = "memory"


FIRST_CAUSES: Mapping[str, CallCause] = {
    "cron": CallCause.CRON,
    "heartbeat": CallCause.HEARTBEAT,
    "hook": CallCause.HOOK,
    "subagent": CallCause.SUBAGENT,
}
"""By the source of a run's message: the cause of its first call; `turn` for all others."""


class TraceKind(StrEnum):
    RUN_QUEUED = "run.queued"
    RUN_STARTED = "run.started"
    RUN_STATE = "run.state"
    CALL_STARTED = "call.started"
    REASONING = "reasoning"
    TEXT = "text"
    CALL_ENDED = "call.ended"
    TOOL_STARTED = "tool.started"
    TOOL_WAITING = "tool.waiting"
    TOOL_DECIDED = "tool.decided"
    TOOL_OUTPUT = "tool.output"
    TOOL_ENDED = "tool.ended"
    RETRY = "retry"
    NOTICE = "notice"
    RUN_ENDED = "run.ended"


DELTA_OWNER: Mapping[TraceKind, str] = {
    TraceKind.REASONING: "callId",
    TraceKind.TEXT: "callId",
    TraceKind.TOOL_OUTPUT: "toolCallId",
}
"""Kinds that carry a `delta`, and the field that says whose it is."""


class TraceEvent(Event, frozen=True):
    """One step of a run. `seq` counts within the run from 1, `ts` is ms since the epoch."""

    topic: ClassVar[str] = "trace"
    run_id: str
    session_key: str
    seq: int
    ts: int
    kind: TraceKind
    data: Mapping[str, object]

    def merge_key(self) -> Hashable | None:
        owner = DELTA_OWNER.get(self.kind)
        return None if owner is None else (self.run_id, self.kind, self.data.get(owner))

    def merge(self, newer: Event) -> Event | None:
        if not isinstance(newer, TraceEvent):
            return None
        delta = f"{self.data.get('delta', '')}{newer.data.get('delta', '')}"
        return TraceEvent(
            newer.run_id,
            newer.session_key,
            newer.seq,
            newer.ts,
            newer.kind,
            {**newer.data, "delta": delta},
        )

    def to_json(self) -> dict[str, object]:
        return {
            "runId": self.run_id,
            "sessionKey": self.session_key,
            "seq": self.seq,
            "ts": self.ts,
            "kind": self.kind.value,
            "data": dict(self.data),
        }


def trace_from_json(raw: Mapping[str, object]) -> TraceEvent:
    """A trace event from the wire. Raises ValueError for an unknown kind or a wrong shape."""
    data, seq, ts = raw.get("data"), raw.get("seq"), raw.get("ts")
    if not isinstance(data, dict) or not isinstance(seq, int) or not isinstance(ts, int):
        raise ValueError("trace event without seq, ts or data")
    return TraceEvent(
        str(raw.get("runId", "")),
        str(raw.get("sessionKey", "")),
        seq,
        ts,
        TraceKind(str(raw.get("kind", ""))),
        data,
    )
