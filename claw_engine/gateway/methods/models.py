"""`models.list`: what the configuration offers."""

from __future__ import annotations

from typing import Literal

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.session_rows import THINKING
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Params, Text
from claw_engine.protocol.names import Scope


class ModelsParams(Params, frozen=True, kw_only=True):
    """Every view is the same list: what the configuration offers is all there is."""

    agent_id: Text | None = None
    session_key: Text | None = None
    auth_profile_id: Text | None = None
    provider: Text | None = None
    include_details: bool = False
    include_provider_capabilities: bool = False
    include_default_models: bool = False
    prepared_only: bool = False
    refresh: bool = False
    view: Literal["default", "configured", "provider-config", "all"] = "default"

    def __post_init__(self) -> None:
        if self.prepared_only and self.refresh:
            raise ValueError("preparedOnly and refresh exclude each other")
        if self.session_key and self.auth_profile_id:
            raise ValueError("sessionKey and authProfileId exclude each other")


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def list_models(call: Call, params: ModelsParams) -> Payload:
        if params.auth_profile_id:
            raise InvalidRequest(f'unknown auth profile "{params.auth_profile_id}"')
        rows = model_rows(parts)
        wanted = params.provider
        return {"models": [r for r in rows if wanted is None or r.get("provider") == wanted]}

    return (method("models.list", Scope.READ, ModelsParams, list_models),)


def model_rows(parts: GatewayParts) -> list[dict[str, object]]:
    """Every model with what both protocols tell of one."""
    return [_row(dict(row)) for row in parts.models.rows()]


def _row(row: dict[str, object]) -> dict[str, object]:
    levels = THINKING if row.get("reasoning") else THINKING[:1]
    return {
        **row,
        "available": row.get("error") is None,
        "thinkingLevels": [{"id": level, "label": level} for level in levels],
        "thinkingDefault": "off",
    }
