"""`usage.*`, `sessions.usage*`: what calls to models cost, and where the budgets stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.methods.sessions import full_key
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Params, Text
from claw_engine.protocol.names import Scope

if TYPE_CHECKING:
    from claw_engine.gateway.usage_port import UsagePort
    from claw_engine.usage.days import Day

Offset = Annotated[str, Meta(pattern=r"^UTC[+-]\d{1,2}(:[0-5]\d)?$")]
LOG_CHARS = 2_000
"""Characters of a message that `sessions.usage.logs` shows."""
SESSIONS = 50
_ROW = (
    "label", "displayName", "channel", "chatType", "origin", "modelProvider", "model",
)  # fmt: skip


class SpanParams(Params, frozen=True, kw_only=True):
    """Days: `mode` says whose, utc unless `gateway` (the person's) or `specific` (`utcOffset`)."""

    start_date: Text | None = None
    end_date: Text | None = None
    days: Annotated[int, Meta(ge=1, le=1100)] | None = None
    mode: Literal["utc", "gateway", "specific"] = "utc"
    utc_offset: Offset | None = None


class SessionsUsageParams(SpanParams, frozen=True, kw_only=True):
    """`includeContextWeight` is read and not acted on: `prompt.*` has it, to the byte."""

    key: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = SESSIONS
    include_context_weight: bool = False


class TotalsParams(SpanParams, frozen=True, kw_only=True):
    mode: Literal["utc", "gateway", "specific"] = "gateway"
    by: Literal["day", "session", "model", "cause", "agent"] = "day"
    session_key: Text | None = None


class KeyParams(Params, frozen=True, kw_only=True):
    key: Text


class LogsParams(KeyParams, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 200


class StatusParams(Params, frozen=True, kw_only=True):
    session_key: Text | None = None


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    if parts.usage is None:
        return ()
    usage = parts.usage.desk

    async def status(call: Call, params: StatusParams) -> Payload:
        key = full_key(parts, params.session_key, None) if params.session_key else ""
        return {
            "updatedAt": parts.clock.now_ms(),
            # No provider is asked for its quota: none is known.
            "providers": [],
            "budgets": list(await usage().budgets(key, _session_id(parts, key))),
            "calibration": dict(usage().ratios),
        }

    async def cost(call: Call, params: SpanParams) -> Payload:
        return await usage().daily(_days(usage(), params))

    async def totals(call: Call, params: TotalsParams) -> Payload:
        key = full_key(parts, params.session_key, None) if params.session_key else None
        return await usage().totals(_days(usage(), params), params.by, key)

    async def sessions(call: Call, params: SessionsUsageParams) -> Payload:
        key = full_key(parts, params.key, None) if params.key else None
        found = await usage().sessions(_days(usage(), params), key)
        rows = found["sessions"]
        assert isinstance(rows, list)
        return {**found, "sessions": [_with_row(parts, row) for row in rows[: params.limit]]}

    async def course(call: Call, params: KeyParams) -> Payload:
        return await usage().course(_known(parts, full_key(parts, params.key, None)))

    async def logs(call: Call, params: LogsParams) -> Payload:
        key = full_key(parts, params.key, None)
        _known(parts, key)
        history = await parts.sessions.history(key, params.limit)
        return {"logs": [_log(message) for message in history.messages]}

    return (
        method("usage.status", Scope.READ, StatusParams, status),
        method("usage.cost", Scope.READ, SpanParams, cost),
        method("usage.totals", Scope.READ, TotalsParams, totals),
        method("sessions.usage", Scope.READ, SessionsUsageParams, sessions),
        method("sessions.usage.timeseries", Scope.READ, KeyParams, course),
        method("sessions.usage.logs", Scope.READ, LogsParams, logs),
    )


def _days(usage: UsagePort, params: SpanParams) -> Sequence[Day]:
    where = {"utc": "UTC", "gateway": None, "specific": params.utc_offset or "UTC"}[params.mode]
    try:
        return usage.days(params.start_date, params.end_date, params.days, where)
    except ValueError as error:
        raise InvalidRequest(f"{error}.") from error


def _session_id(parts: GatewayParts, key: str) -> str:
    row = parts.sessions.row(key) if key else None
    return (row.session_id or "") if row is not None else ""


def _known(parts: GatewayParts, key: str) -> str:
    """The id of a session. Raises InvalidRequest when there is none."""
    found = _session_id(parts, key)
    if not found:
        raise InvalidRequest(f"There is no session {key}.")
    return found


def _with_row(parts: GatewayParts, found: Mapping[str, object]) -> dict[str, object]:
    row = parts.sessions.row(str(found["key"]))
    if row is None:
        return dict(found)
    more = {name: row.fields[name] for name in _ROW if row.fields.get(name) is not None}
    return {**found, **more, "sessionId": row.session_id, "updatedAt": row.updated_at}


def _log(message: Mapping[str, object]) -> dict[str, object]:
    blocks = message.get("content")
    texts = [blocks] if isinstance(blocks, str) else [
        str(block["text"])
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and block.get("type") == "text" and "text" in block
    ]  # fmt: skip
    out: dict[str, object] = {
        "timestamp": message.get("timestamp"),
        "role": message.get("role"),
        "content": "\n".join(texts)[:LOG_CHARS],
    }
    usage = message.get("usage")
    if isinstance(usage, dict) and usage.get("totalTokens"):
        out["tokens"] = usage["totalTokens"]
        cost = usage.get("cost")
        if isinstance(cost, dict) and cost.get("total"):
            out["cost"] = cost["total"]
    return out
