"""`engine.stop`, `gateway.restart.request`: end the engine, for good or to start again."""

from __future__ import annotations

from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import EngineStopParams, Millis, Params
from claw_engine.protocol.names import Scope


class RestartParams(Params, frozen=True, kw_only=True):
    reason: str = ""
    delay_ms: Millis = 0


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def stop(call: Call, params: EngineStopParams) -> Payload:
        parts.host.stop(params.when)
        return {"ok": True}

    async def restart(call: Call, params: RestartParams) -> Payload:
        return parts.host.restart(params.reason or "asked for by a client", params.delay_ms)

    return (
        method("engine.stop", Scope.ADMIN, EngineStopParams, stop),
        method("gateway.restart.request", Scope.ADMIN, RestartParams, restart),
    )
