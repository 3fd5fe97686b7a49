"""`tools.effective`: the tools a session has now, by group."""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.methods.sessions import full_key
from claw_engine.gateway.ports import GatewayParts, PolicyPort
from claw_engine.gateway.session_rows import session_row
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Params, Text
from claw_engine.protocol.names import Scope


class EffectiveParams(Params, frozen=True, kw_only=True):
    session_key: Text
    agent_id: Text | None = None


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    """Nothing without a policy behind the gateway."""
    policy = parts.policy
    if policy is None:
        return ()

    async def effective(call: Call, params: EffectiveParams) -> Payload:
        key = full_key(parts, params.session_key, params.agent_id)
        if session_row(parts, key) is None:
            raise InvalidRequest(f'unknown session key "{params.session_key}"')
        return effective_tools(policy, key)

    return (method("tools.effective", Scope.READ, EffectiveParams, effective),)


def effective_tools(policy: PolicyPort, key: str) -> Payload:
    """The catalogue without what the policy denies in this session."""
    verdicts = policy.explain(None, None, key)
    agent = str(verdicts["agentId"])
    allowed = {
        str(row["name"]) for row in _rows(verdicts.get("tools")) if row.get("allowed") is True
    }
    groups = []
    for group in _rows(policy.catalog(agent, plugins=True).get("groups")):
        tools = [_tool(row) for row in _rows(group.get("tools")) if row.get("id") in allowed]
        if tools:
            groups.append({**group, "tools": tools})
    return {"agentId": agent, "profile": verdicts.get("profile") or "full", "groups": groups}


def _tool(row: Mapping[str, object]) -> dict[str, object]:
    kept = {name: value for name, value in row.items() if name != "defaultProfiles"}
    return {**kept, "rawDescription": row.get("description")}


def _rows(value: object) -> list[Mapping[str, object]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []
