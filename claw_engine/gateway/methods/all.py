"""The whole table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from claw_engine.gateway.methods import (
    agent,
    agents,
    approvals,
    chat,
    commands,
    config,
    effective,
    engine,
    following,
    history,
    lanes,
    logs,
    models,
    permission,
    queue,
    sandbox,
    session_edits,
    sessions,
    skills,
    standing,
    system,
    tools,
    trace,
    trace_store,
    usage,
)
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Method, MethodTable

_FAMILIES = (
    system, sessions, chat, agent, lanes, queue, approvals, standing, models, config, permission,
    engine, tools, sandbox, logs, following, history, session_edits, agents, commands, effective,
    skills, trace_store, usage,
)  # fmt: skip


def method_table(
    parts: GatewayParts, catch_up: Callable[[], None], *own: Iterable[Method]
) -> MethodTable:
    """Every method there is, wired to `parts`; `catch_up` as in methods/trace.py.

    `own` are families about the gateway itself, wired by it.
    """
    families = [family.methods(parts) for family in _FAMILIES]
    return MethodTable(chain(*families, trace.methods(parts, catch_up), *own))
