"""`skills.status`: every skill found, and why one is not used; `skills.update`: on and off."""

from __future__ import annotations

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Params, Text
from claw_engine.protocol.names import Scope


class StatusParams(Params, frozen=True, kw_only=True):
    agent_id: Text | None = None


class UpdateParams(Params, frozen=True, kw_only=True):
    """OpenClaw's shape; of it `enabled` alone does something here."""

    skill_key: Text
    enabled: bool | None = None
    api_key: str | None = None
    env: dict[str, str] | None = None


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    """Nothing without skills behind the gateway."""
    skills = parts.skills
    if skills is None:
        return ()

    async def status(call: Call, params: StatusParams) -> Payload:
        return dict(await skills.status(params.agent_id))

    async def update(call: Call, params: UpdateParams) -> Payload:
        if params.api_key is not None or params.env is not None:
            raise InvalidRequest(
                "skills get no keys or variables from this engine",
                hint="Put the variable into the engine's environment instead.",
            )
        if params.enabled is None:
            raise InvalidRequest("enabled is missing: true or false")
        config = await skills.switch(params.skill_key, enabled=params.enabled)
        return {"ok": True, "skillKey": params.skill_key, "config": dict(config)}

    return (
        method("skills.status", Scope.READ, StatusParams, status),
        method("skills.update", Scope.ADMIN, UpdateParams, update),
    )
