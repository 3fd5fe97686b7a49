"""`exec.approval.*`: what waits for the operator, and the decisions; `exec.approvals.rules` and
`.remove`: what was allowed for good, and taking it back."""

from __future__ import annotations

from claw_engine.approvals.model import Decision, to_wire
from claw_engine.approvals.policy import Rule
from claw_engine.errors import InvalidRequest
from claw_engine.gateway.methods.chat import known_as
from claw_engine.gateway.ports import GatewayParts, RulesPort
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

    rules = () if parts.rules is None else _rules(parts.rules)
    return (
        method("exec.approval.list", Scope.APPROVALS, NoParams, list_pending),
        method("exec.approval.get", Scope.APPROVALS, ApprovalIdParams, get),
        method("exec.approval.resolve", Scope.APPROVALS, ApprovalResolveParams, resolve),
        method("approval.history", Scope.APPROVALS, ApprovalHistoryParams, history),
        *rules,
    )


def _rules(store: RulesPort) -> tuple[Method, ...]:
    async def rules(call: Call, params: NoParams) -> Payload:
        return {"rules": [_rule(rule) for rule in store.rules()]}

    async def remove(call: Call, params: ApprovalIdParams) -> Payload:
        gone = await store.remove(params.id)
        if gone is None:
            raise InvalidRequest("unknown rule id")
        return {"ok": True, "rule": _rule(gone)}

    return (
        method("exec.approvals.rules", Scope.APPROVALS, NoParams, rules),
        method("exec.approvals.remove", Scope.APPROVALS, ApprovalIdParams, remove),
    )


def _rule(rule: Rule) -> dict[str, object]:
    """A rule under the names of exec-approvals.json; times in ms, null before the first use."""
    return {
        "id": rule.id,
        "agentId": rule.agent_id,
        "pattern": rule.pattern,
        "bound": rule.content_hash is not None,
        "lastUsedAt": rule.last_used_ms,
        "lastUsedCommand": rule.last_command,
        "lastResolvedPath": rule.last_resolved,
    }
