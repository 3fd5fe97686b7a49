"""Reading a conversation: `chat.history`, `chat.startup`, `chat.metadata` (protocol digest §2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.history_rows import MAX_CHARS, MAX_TOTAL, rows_for
from claw_engine.gateway.methods.commands import command_rows
from claw_engine.gateway.methods.models import model_rows
from claw_engine.gateway.methods.sessions import full_key
from claw_engine.gateway.peer import CAP_TRACE, Peer
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.session_rows import defaults4, session_row
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Count, Millis, Params, Text
from claw_engine.protocol.names import Scope
from claw_engine.protocol.trace import TraceEvent, TraceKind

MOST = 1000
"""Messages of one answer (gateway digest §1.11)."""


class HistoryParams(Params, frozen=True, kw_only=True):
    """`offset` counts messages from the newest. What a run was given (`input_run_ids`) and what
    waits (`pending_before`) is told by the messages and the trace; both are read and not used."""

    session_key: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 200
    agent_id: Text | None = None
    offset: Millis = 0
    max_bytes: Annotated[int, Meta(ge=1024)] = MAX_TOTAL
    max_chars: Count = MAX_CHARS
    message_id: Text | None = None
    session_id: Text | None = None
    cursor: str | None = None
    pending_before: object = None
    input_run_ids: Annotated[list[Text], Meta(min_length=1, max_length=50)] | None = None


class StartupParams(HistoryParams, frozen=True, kw_only=True):
    short_id: Text | None = None
    slug_hint: str | None = None


class MetadataParams(Params, frozen=True, kw_only=True):
    agent_id: Text | None = None
    session_key: Text | None = None
    auth_profile_id: Text | None = None


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def history(call: Call, params: HistoryParams) -> Payload:
        if params.session_key is None:
            message = "invalid chat.history params: must have required property 'sessionKey'"
            raise InvalidRequest(message)
        return await history_payload(parts, call.peer, params, params.session_key)

    async def startup(call: Call, params: StartupParams) -> Payload:
        key = params.session_key or await _by_short_id(parts, params)
        return await history_payload(parts, call.peer, params, key)

    async def metadata(call: Call, params: MetadataParams) -> Payload:
        return {
            "models": model_rows(parts),
            "commands": command_rows(parts),
            "swarmEnabled": False,
            "runtimeSelectionLocked": False,
        }

    return (
        method("chat.history", Scope.READ, HistoryParams, history),
        method("chat.startup", Scope.READ, StartupParams, startup),
        method("chat.metadata", Scope.READ, MetadataParams, metadata),
    )


async def history_payload(
    parts: GatewayParts, peer: Peer, params: HistoryParams, session_key: str
) -> Payload:
    """The answer of `chat.history`; a cursor is never ours, so it is told to begin anew."""
    if params.cursor is not None:
        return {"kind": "reset"}
    key = full_key(parts, session_key, params.agent_id)
    four = peer.identity.protocol >= 4
    # One more than asked for says whether there are older ones.
    found = await parts.sessions.history(key, params.limit + params.offset + 1)
    messages = list(found.messages)
    if params.offset:
        messages = messages[: -params.offset]
    more = len(messages) > params.limit
    messages = messages[-params.limit :]
    if params.message_id is not None:
        messages = _up_to(messages, params.message_id)
    out: dict[str, object] = {
        "sessionKey": key,
        "sessionId": found.session_id,
        "thinkingLevel": found.thinking_level,
    }
    if CAP_TRACE in peer.identity.caps:
        return {**out, "messages": [dict(message) for message in messages]}
    rows = rows_for(
        messages, peer.identity.protocol, max_chars=params.max_chars, max_bytes=params.max_bytes
    )
    out["messages"] = rows
    if found.verbose_level is not None:
        out["verboseLevel"] = found.verbose_level
    if not four:
        return out
    row = session_row(parts, key)
    more = more or len(rows) < len(messages)
    out |= {
        "hasMore": more,
        "defaults": defaults4(parts),
        "pendingInputs": {"items": [], "total": 0},
    }
    if more:
        out["nextOffset"] = params.offset + len(rows)
    if row is not None:
        out["sessionInfo"] = row
    if (flying := _in_flight(parts, key)) is not None:
        out["inFlightRun"] = flying
    return {name: value for name, value in out.items() if value is not None}


async def _by_short_id(parts: GatewayParts, params: StartupParams) -> str:
    if not params.short_id:
        raise InvalidRequest("chat.startup needs a sessionKey or a shortId")
    for row in await parts.sessions.rows():
        if row.session_id and row.session_id.startswith(params.short_id):
            return row.key
    raise InvalidRequest(f"No session found with shortId: {params.short_id}")


def _up_to(messages: list[Mapping[str, object]], message_id: str) -> list[Mapping[str, object]]:
    """The messages up to the named one; all of them where it is not among them."""
    for number, message in enumerate(messages):
        place = message.get("__openclaw")
        if isinstance(place, Mapping) and place.get("id") == message_id:
            return messages[: number + 1]
    return messages


def _in_flight(parts: GatewayParts, key: str) -> dict[str, object] | None:
    """The run that answers now and its words so far."""
    for events in parts.intake.live(key):
        kinds = {event.kind for event in events}
        if TraceKind.RUN_STARTED in kinds and TraceKind.RUN_ENDED not in kinds:
            return {"runId": events[0].run_id, "text": _words(events)}
    return None


def _words(events: Sequence[TraceEvent]) -> str:
    texts: dict[str, list[str]] = {}
    for event in events:
        if event.kind is TraceKind.TEXT:
            call = str(event.data.get("callId", ""))
            texts.setdefault(call, []).append(str(event.data.get("delta", "")))
    return "\n\n".join(text for parts in texts.values() if (text := "".join(parts)).strip())
