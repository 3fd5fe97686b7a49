"""`logs.tail`: the end of the engine's log."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from claw_engine.errors import ClawError
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Millis, Params
from claw_engine.protocol.names import Scope


class LogsTailParams(Params, frozen=True, kw_only=True):
    """`cursor` is what the last answer gave."""

    cursor: Millis | None = None
    limit: Annotated[int, Meta(ge=1, le=5000)] = 500
    max_bytes: Annotated[int, Meta(ge=1, le=1_000_000)] = 250_000


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    logs = parts.logs
    if logs is None:
        return ()

    async def tail(call: Call, params: LogsTailParams) -> Payload:
        try:
            return await logs.tail(params.cursor, params.limit, params.max_bytes)
        except OSError as error:
            raise ClawError(f"The log cannot be read: {error.strerror or error}.") from error

    return (method("logs.tail", Scope.READ, LogsTailParams, tail),)
