"""`sandbox.*`: containers, where a session's commands run, making one anew; `security.audit`."""

from __future__ import annotations

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.ports import GatewayParts, SandboxPort
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams, SandboxExplainParams, SandboxRecreateParams
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    def desk() -> SandboxPort:
        if parts.sandbox is None:
            raise InvalidRequest("there are no sandboxes here")
        return parts.sandbox

    async def rows(call: Call, params: NoParams) -> Payload:
        return {"containers": [dict(row) for row in await desk().rows()]}

    async def explain(call: Call, params: SandboxExplainParams) -> Payload:
        return dict(await desk().explain(params.session_key))

    async def recreate(call: Call, params: SandboxRecreateParams) -> Payload:
        removed = await desk().recreate(
            session_key=params.session_key, agent_id=params.agent_id, everything=params.all
        )
        return {"removed": list(removed)}

    async def audit(call: Call, params: NoParams) -> Payload:
        if parts.audit is None:
            raise InvalidRequest("there is no audit here")
        return dict(await parts.audit())

    return (
        method("security.audit", Scope.ADMIN, NoParams, audit),
        method("sandbox.list", Scope.READ, NoParams, rows),
        method("sandbox.explain", Scope.READ, SandboxExplainParams, explain),
        method("sandbox.recreate", Scope.ADMIN, SandboxRecreateParams, recreate),
    )
