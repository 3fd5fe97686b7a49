"""`engine.stop`: end the engine, now or when nothing needs it."""

from __future__ import annotations

from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import EngineStopParams
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def stop(call: Call, params: EngineStopParams) -> Payload:
        parts.host.stop(params.when)
        return {"ok": True}

    return (method("engine.stop", Scope.ADMIN, EngineStopParams, stop),)
