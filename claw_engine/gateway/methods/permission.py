"""`permission.*`: the permission mode; `doctor.probes`: what every room finds when it looks."""

from __future__ import annotations

from claw_engine.approvals.policy import PermissionMode
from claw_engine.errors import InvalidRequest
from claw_engine.gateway.ports import GatewayParts, PermissionPort
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams, PermissionSetParams
from claw_engine.probes import to_wire
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    def switch() -> PermissionPort:
        if parts.permission is None:
            raise InvalidRequest("there is no permission mode here")
        return parts.permission

    async def get(call: Call, params: NoParams) -> Payload:
        return _payload(switch(), parts)

    async def put(call: Call, params: PermissionSetParams) -> Payload:
        await switch().switch(PermissionMode(params.mode), params.ttl_ms)
        return _payload(switch(), parts)

    async def probes(call: Call, params: NoParams) -> Payload:
        rows = await parts.probes.run() if parts.probes is not None else ()
        return {"probes": to_wire(rows)}

    return (
        method("permission.get", Scope.READ, NoParams, get),
        method("permission.set", Scope.ADMIN, PermissionSetParams, put),
        method("doctor.probes", Scope.READ, NoParams, probes),
    )


def _payload(switch: PermissionPort, parts: GatewayParts) -> Payload:
    return {
        "mode": switch.mode().value,
        "fullUntilMs": switch.full_until_ms,
        "bypassWarning": parts.host.bypass_warning,
    }
