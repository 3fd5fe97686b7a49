"""`exec.approvals.*`: what runs unasked. Rules and grants with their last use, taking one back,
and the rules file as a whole."""

from __future__ import annotations

from claw_engine.approvals.events import StandingChanged
from claw_engine.approvals.policy import Rule
from claw_engine.approvals.rulesfile import Snapshot
from claw_engine.approvals.wire import grant_to_wire
from claw_engine.errors import InvalidRequest
from claw_engine.gateway.ports import GatewayParts, GrantsPort, RulesFilePort, RulesPort
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import ApprovalIdParams, NoParams, RulesFileParams
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    """None of them where there are no rules."""
    found: tuple[Method, ...] = ()
    if parts.rules is not None:
        found += _lists(parts, parts.rules, parts.grants)
    if parts.rules_file is not None:
        found += _file(parts, parts.rules_file)
    return found


def _lists(parts: GatewayParts, rules: RulesPort, grants: GrantsPort | None) -> tuple[Method, ...]:
    async def listed(call: Call, params: NoParams) -> Payload:
        held = grants.list() if grants is not None else ()
        return {
            "rules": [rule_to_wire(rule) for rule in rules.rules()],
            "grants": [grant_to_wire(grant) for grant in held],
        }

    async def remove(call: Call, params: ApprovalIdParams) -> Payload:
        grant = await grants.remove(params.id) if grants is not None else None
        if grant is not None:
            return {"ok": True, "grant": grant_to_wire(grant)}
        gone = await rules.remove(params.id)
        if gone is None:
            raise InvalidRequest("unknown rule id")
        parts.bus.publish(StandingChanged())
        return {"ok": True, "rule": rule_to_wire(gone)}

    return (
        method("exec.approvals.rules", Scope.APPROVALS, NoParams, listed),
        method("exec.approvals.remove", Scope.APPROVALS, ApprovalIdParams, remove),
    )


def _file(parts: GatewayParts, rules: RulesFilePort) -> tuple[Method, ...]:
    async def get(call: Call, params: NoParams) -> Payload:
        return _shown(await rules.snapshot())

    async def put(call: Call, params: RulesFileParams) -> Payload:
        shown = await rules.replace(dict(params.file), params.base_hash)
        parts.bus.publish(StandingChanged())
        return _shown(shown)

    return (
        method("exec.approvals.get", Scope.ADMIN, NoParams, get),
        method("exec.approvals.set", Scope.ADMIN, RulesFileParams, put),
    )


def _shown(found: Snapshot) -> Payload:
    return {"path": found.path, "exists": found.exists, "hash": found.hash, "file": found.file}


def rule_to_wire(rule: Rule) -> dict[str, object]:
    """A rule under the names of exec-approvals.json; times in ms, null before the first use.
    `label` is the rule as a person reads it."""
    return {
        "id": rule.id,
        "agentId": rule.agent_id,
        "pattern": rule.pattern,
        "argPattern": rule.arg_pattern,
        "label": rule.label,
        "bound": rule.content_hash is not None,
        "lastUsedAt": rule.last_used_ms,
        "lastUsedCommand": rule.last_command,
        "lastResolvedPath": rule.last_resolved,
    }
