"""`logs.tail`: the end of the engine's log; `logs.page`: what stands around a place."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Millis, Params, Text
from claw_engine.protocol.names import Scope


class LogsTailParams(Params, frozen=True, kw_only=True):
    """`cursor` is what the last answer gave."""

    cursor: Millis | None = None
    limit: Annotated[int, Meta(ge=1, le=5000)] = 500
    max_bytes: Annotated[int, Meta(ge=1, le=1_000_000)] = 250_000


class LogsPageParams(Params, frozen=True, kw_only=True):
    """`file`: as an answer had it. The lines that end at a byte of it, or that start there."""

    file: Text
    end: Millis | None = None
    start: Millis | None = None
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

    async def page(call: Call, params: LogsPageParams) -> Payload:
        at = params.start if params.end is None else params.end
        if at is None or (params.end is not None and params.start is not None):
            raise InvalidRequest("logs.page takes either start or end, a byte of the file.")
        older, limit, room = params.end is not None, params.limit, params.max_bytes
        try:
            return await logs.page(params.file, at, older=older, limit=limit, max_bytes=room)
        except FileNotFoundError as error:
            raise InvalidRequest(
                "That is no file of the log, or its days are over.",
                hint="Take `file` from an answer of logs.tail.",
            ) from error
        except OSError as error:
            raise ClawError(f"The log cannot be read: {error.strerror or error}.") from error

    return (
        method("logs.tail", Scope.READ, LogsTailParams, tail),
        method("logs.page", Scope.READ, LogsPageParams, page),
    )
