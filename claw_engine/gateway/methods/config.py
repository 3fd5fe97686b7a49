"""`config.get`: the configuration as loaded, secrets redacted."""

from __future__ import annotations

from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def get(call: Call, params: NoParams) -> Payload:
        return await parts.config.snapshot()

    return (method("config.get", Scope.READ, NoParams, get),)
