"""`exec.approval.*` and `approval.history`: what waits for a person, the answers, and questions
that clients bring about commands of their own."""

from __future__ import annotations

import asyncio

from msgspec import to_builtins

from claw_engine.approvals.answers import Answer
from claw_engine.approvals.clientask import client_ask
from claw_engine.approvals.errors import UnknownApproval
from claw_engine.approvals.grants import Covers, Span, Wanted
from claw_engine.approvals.model import ApprovalRecord, Decision
from claw_engine.approvals.wire import record_to_wire
from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.gateway.errors import to_shape
from claw_engine.gateway.methods.chat import known_as
from claw_engine.gateway.peer import CAP_TRACE
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Answer as Result
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import (
    ApprovalBatchParams,
    ApprovalHistoryParams,
    ApprovalIdParams,
    ApprovalRequestParams,
    ApprovalResolveParams,
    GrantParams,
    NoParams,
)
from claw_engine.protocol.names import Scope

CLIENT_TIMEOUT_MS = 120_000
"""How long a client's question waits when it does not say (gateway digest §1.11)."""


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    approvals = parts.approvals

    async def list_pending(call: Call, params: NoParams) -> Result:
        rows = [record_to_wire(record) for record in approvals.pending()]
        who = call.peer.identity
        # OpenClaw's clients of protocol 4 want a bare list; our own console speaks it too.
        bare = who.protocol >= 4 and CAP_TRACE not in who.caps
        return rows if bare else {"approvals": rows}

    async def get(call: Call, params: ApprovalIdParams) -> Payload:
        record = approvals.get(params.id)
        if record is None:
            raise InvalidRequest("unknown approval id")
        return record_to_wire(record)

    async def resolve(call: Call, params: ApprovalResolveParams) -> Payload:
        who, decision = known_as(call.peer), Decision(params.decision)
        grant = _wanted(params.grant)
        record = await approvals.resolve(params.id, decision, who, params.reason, grant)
        return {"ok": True, "record": record_to_wire(record)}

    async def resolve_many(call: Call, params: ApprovalBatchParams) -> Payload:
        answer = Answer(
            Decision(params.decision), known_as(call.peer), params.reason, _wanted(params.grant)
        )
        found = await approvals.resolve_many(params.ids, answer)
        rows = [_row(wanted, one) for wanted, one in zip(params.ids, found, strict=True)]
        return {"ok": all(row["ok"] for row in rows), "results": rows}

    async def history(call: Call, params: ApprovalHistoryParams) -> Payload:
        records = await approvals.history(params.limit)
        return {"entries": [record_to_wire(record) for record in records]}

    async def request(call: Call, params: ApprovalRequestParams) -> Payload:
        apart = ("id", "command", "timeoutMs", "twoPhase")
        sent = to_builtins(params)
        said = {name: value for name, value in sent.items() if name not in apart}
        ask = client_ask(params.command, {**said, "name": known_as(call.peer)})
        record = await approvals.open(ask, params.timeout_ms or CLIENT_TIMEOUT_MS, params.id)
        if params.two_phase:
            call.accept({"status": "accepted", **_times(record)})
        try:
            return _decided(await approvals.wait(record.id))
        except asyncio.CancelledError:
            # The client went away. One that works in two steps may come back and wait again.
            if not params.two_phase:
                await approvals.withdraw(record.id, "the client went away")
            raise

    async def wait(call: Call, params: ApprovalIdParams) -> Payload:
        try:
            return _decided(await approvals.wait(params.id))
        except UnknownApproval:
            raise InvalidRequest("approval expired or not found") from None

    scope = Scope.APPROVALS
    return (
        method("exec.approval.list", scope, NoParams, list_pending),
        method("exec.approval.get", scope, ApprovalIdParams, get),
        method("exec.approval.resolve", scope, ApprovalResolveParams, resolve),
        method("exec.approval.resolveMany", scope, ApprovalBatchParams, resolve_many),
        method("exec.approval.request", scope, ApprovalRequestParams, request),
        method("exec.approval.waitDecision", scope, ApprovalIdParams, wait),
        method("approval.history", scope, ApprovalHistoryParams, history),
    )


def _wanted(params: GrantParams | None) -> Wanted | None:
    if params is None:
        return None
    return Wanted(Covers(params.covers), Span(params.span), params.minutes)


def _row(wanted: str, one: ApprovalRecord | ClawError) -> dict[str, object]:
    if isinstance(one, ApprovalRecord):
        return {"id": one.id, "ok": True, "record": record_to_wire(one)}
    return {"id": wanted, "ok": False, "error": to_shape(one).to_json()}


def _times(record: ApprovalRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "createdAtMs": record.created_at_ms,
        "expiresAtMs": record.expires_at_ms,
    }


def _decided(record: ApprovalRecord) -> Payload:
    """What a client that asked is told; `decision` null = nobody answered in time."""
    return {"decision": record.decision.value if record.decision else None, **_times(record)}
