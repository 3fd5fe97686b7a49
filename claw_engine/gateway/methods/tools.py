"""`tools.catalog`: the tools of this engine; `tools.explain`: which a session has, and why."""

from __future__ import annotations

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.ports import GatewayParts, PolicyPort
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import ToolsCatalogParams, ToolsExplainParams
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    def desk() -> PolicyPort:
        if parts.policy is None:
            raise InvalidRequest("there are no tools here")
        return parts.policy

    async def catalog(call: Call, params: ToolsCatalogParams) -> Payload:
        return desk().catalog(params.agent_id, plugins=params.include_plugins)

    async def explain(call: Call, params: ToolsExplainParams) -> Payload:
        return desk().explain(params.name, params.agent_id, params.session_key)

    return (
        method("tools.catalog", Scope.READ, ToolsCatalogParams, catalog),
        method("tools.explain", Scope.READ, ToolsExplainParams, explain),
    )
