"""`commands.list`: the slash commands that the engine answers itself."""

from __future__ import annotations

from typing import Literal

from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Params, Text
from claw_engine.protocol.names import Scope

_CATEGORY = {
    "/new": "session", "/reset": "session", "/stop": "session", "/compact": "session",
    "/help": "status", "/status": "status", "/whoami": "status",
}  # fmt: skip


class CommandsParams(Params, frozen=True, kw_only=True):
    """There are no native commands of a channel: `scope` native has none."""

    agent_id: Text | None = None
    session_key: Text | None = None
    provider: Text | None = None
    scope: Literal["text", "native", "both"] = "both"
    include_args: bool = True


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    """Nothing without commands behind the gateway."""

    async def list_commands(call: Call, params: CommandsParams) -> Payload:
        return {"commands": [] if params.scope == "native" else command_rows(parts)}

    if parts.commands is None:
        return ()
    return (method("commands.list", Scope.READ, CommandsParams, list_commands),)


def command_rows(parts: GatewayParts) -> list[dict[str, object]]:
    """Every command as protocol 4 lists it."""
    return [
        {
            "name": row.name.removeprefix("/"),
            "textAliases": [row.name, *row.aliases],
            "description": row.summary,
            "category": _CATEGORY.get(row.name, "options"),
            "source": "native",
            "scope": "text",
            "acceptsArgs": row.takes_words,
        }
        for row in (parts.commands.rows() if parts.commands is not None else ())
    ]
