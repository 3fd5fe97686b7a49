"""`health` and `status`: is it alive, and what is going on, in one small answer."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Mapping

from claw_engine.errors import ClawError
from claw_engine.gateway.health import Health
from claw_engine.gateway.methods.lanes import lane_rows
from claw_engine.gateway.peer import CAP_TRACE
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.session_rows import (
    default_agent,
    model_defaults,
    session_index,
    session_rows,
)
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.translate4 import agent_of
from claw_engine.gateway.validate import HealthParams, NoParams
from claw_engine.protocol.names import Scope, allows
from claw_engine.runs import RunState

RECENT = 5
STATUS_ROWS = 10
"""Sessions of a status that OpenClaw's clients show (gateway digest §1.11)."""


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    state = Health(parts)

    async def health(call: Call, params: HealthParams) -> Payload:
        # Whoever may ask nothing else learns nothing else.
        if not allows(call.peer.identity.scopes, Scope.READ):
            return state.brief()
        return await state.snapshot(fresh=params.probe)

    async def status(call: Call, params: NoParams) -> Payload:
        out = await status_payload(parts)
        if CAP_TRACE in call.peer.identity.caps:
            return out
        admin = allows(call.peer.identity.scopes, Scope.ADMIN)
        return {**out, **await _openclaw_status(parts, paths=admin)}

    return (
        method("health", Scope.READ, HealthParams, health),
        method("status", Scope.READ, NoParams, status),
    )


def uptime_ms(parts: GatewayParts) -> int:
    return max(0, parts.clock.now_ms() - parts.host.started_ms)


async def status_payload(parts: GatewayParts) -> dict[str, object]:
    """The answer of `status`, also the snapshot of `hello-ok`."""
    host, pending = parts.host, parts.approvals.pending()
    index = await session_index(parts)
    recent = await session_rows(parts, RECENT)
    return {
        "version": host.version,
        "pid": os.getpid(),
        "stateDir": host.state_dir,
        "host": socket.gethostname(),
        "uptimeMs": uptime_ms(parts),
        "mode": host.mode,
        "model": dict(parts.models.current()),
        "permissionMode": host.permission_mode,
        "bypassWarning": host.bypass_warning,
        "paused": parts.lanes.paused,
        "runs": _run_counts(parts),
        "approvals": {
            "pending": len(pending),
            "nextExpiresAtMs": min((r.expires_at_ms for r in pending), default=None),
        },
        "lanes": lane_rows(parts),
        "budgets": await budget_rows(parts),
        "notices": [dict(notice) for notice in host.notices()],
        "sessions": {"count": len(index), "recent": recent},
    }


async def budget_rows(parts: GatewayParts) -> list[Mapping[str, object]]:
    """Where the day's budgets stand; empty without any, and while nobody can tell."""
    if parts.usage is None or not parts.usage.bound:
        return []
    try:
        return list(await parts.usage.desk().budgets("", ""))
    except ClawError:  # its own notice stands meanwhile
        return []


async def _openclaw_status(parts: GatewayParts, *, paths: bool) -> dict[str, object]:
    """What OpenClaw's clients read of a status besides (gateway digest §1.11). There are no
    channels and no heartbeat; paths are for who may change everything."""
    now = parts.clock.now_ms()
    rows = [_session_status(row, now) for row in await session_rows(parts, STATUS_ROWS)]
    index = await session_index(parts)
    counts = Counter(agent_of(key) for key, _ in index)
    store = parts.edits.store_path if parts.edits is not None else str
    where = {agent: store(agent) if paths else "" for agent in counts}
    agent = default_agent(parts)
    silent = {"agentId": agent, "enabled": False, "every": "0m", "everyMs": None}
    return {
        "runtimeVersion": parts.host.version,
        "heartbeat": {"defaultAgentId": agent, "agents": [silent]},
        "channelSummary": [],
        "queuedSystemEvents": [],
        "sessions": {
            "paths": [path for path in where.values() if path],
            "count": len(index),
            "defaults": model_defaults(parts),
            "recent": rows,
            "byAgent": [
                {
                    "agentId": name,
                    "path": where[name],
                    "count": count,
                    "recent": [row for row in rows if row["agentId"] == name],
                }
                for name, count in counts.items()
            ],
        },
    }


def _session_status(row: Mapping[str, object], now: int) -> dict[str, object]:
    used, window = row.get("totalTokens"), row.get("contextTokens")
    known = isinstance(used, int) and isinstance(window, int) and window > 0
    flags = [f"{name}:{row[field]}" for name, field in _FLAGS.items() if row.get(field)]
    return {
        **row,
        "age": max(0, now - int(str(row["updatedAt"]))),
        "totalTokens": used,
        "remainingTokens": max(0, int(str(window)) - int(str(used))) if known else None,
        "percentUsed": min(999, round(100 * int(str(used)) / int(str(window)))) if known else None,
        "flags": flags,
    }


_FLAGS = {"think": "thinkingLevel", "verbose": "verboseLevel", "reasoning": "reasoningLevel",
          "elevated": "elevatedLevel"}  # fmt: skip


def _run_counts(parts: GatewayParts) -> Mapping[str, int]:
    states = [run.state for run in parts.runs.active()]
    queued, parked = states.count(RunState.QUEUED), states.count(RunState.PARKED)
    return {"active": len(states) - queued - parked, "queued": queued, "parked": parked}
