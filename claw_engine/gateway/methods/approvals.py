"""`exec.approval.*`: what waits for the operator, and the decisions."""

from __future__ import annotations

from claw_engine.approvals.model import Decision, to_wire
from claw_engine.errors import InvalidRequest
from claw_engine.gateway.methods.chat import known_as
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import (
    ApprovalHistoryParams,
    ApprovalIdParams,
    ApprovalResolveParams,
    NoParams,
)
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def list_pending(call: Call, params: NoParams) -> Payload:
        return {"approvals": [to_wire(record) for record in parts.approvals.pending()]}

    async def get(call: Call, params: ApprovalIdParams) -> Payload:
        record = parts.approvals.get(params.id)
        if record is None:
            raise InvalidRequest("unknown approval id")
        return to_wire(record)

    async def resolve(call: Call, params: ApprovalResolveParams) -> Payload:
        who = known_as(call.peer)
        decision = Decision(params.decision)
        record = await parts.approvals.resolve(params.id, decision, who, params.reason)
        return {"ok": True, "record": to_wire(record)}

    async def history(call: Call, params: ApprovalHistoryParams) -> Payload:
        records = await parts.approvals.history(params.limit)
        return {"entries": [to_wire(record) for record in records]}

    return (
        method("exec.approval.list", Scope.APPROVALS, NoParams, list_pending),
        method("exec.approval.get", Scope.APPROVALS, ApprovalIdParams, get),
        method("exec.approval.resolve", Scope.APPROVALS, ApprovalResolveParams, resolve),
        method("approval.history", Scope.APPROVALS, ApprovalHistoryParams, history),
    )
