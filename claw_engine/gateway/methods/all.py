"""The whole table."""

from __future__ import annotations

from claw_engine.gateway.methods import (
    agent,
    approvals,
    chat,
    config,
    engine,
    lanes,
    models,
    sessions,
    system,
    trace,
)
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import MethodTable

_FAMILIES = (
    system, sessions, chat, agent, lanes, trace, approvals, models, config, engine
)  # fmt: skip


def method_table(parts: GatewayParts) -> MethodTable:
    """Every method there is, wired to `parts`."""
    return MethodTable(m for family in _FAMILIES for m in family.methods(parts))
