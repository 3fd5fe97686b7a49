"""`models.list`: what the configuration offers."""

from __future__ import annotations

from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def list_models(call: Call, params: NoParams) -> Payload:
        return {"models": [dict(row) for row in parts.models.rows()]}

    return (method("models.list", Scope.READ, NoParams, list_models),)
