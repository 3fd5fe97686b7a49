"""`health` and `status`: is it alive, and what is going on, in one small answer."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from claw_engine.gateway.health import Health
from claw_engine.gateway.methods.lanes import lane_rows
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.session_rows import session_index, session_rows
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import HealthParams, NoParams
from claw_engine.protocol.names import Scope, allows
from claw_engine.runs import RunState

RECENT = 5


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    state = Health(parts)

    async def health(call: Call, params: HealthParams) -> Payload:
        # Whoever may ask nothing else learns nothing else.
        if not allows(call.peer.identity.scopes, Scope.READ):
            return state.brief()
        return await state.snapshot(fresh=params.probe)

    async def status(call: Call, params: NoParams) -> Payload:
        return await status_payload(parts)

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
        "notices": [dict(notice) for notice in host.notices()],
        "sessions": {"count": len(index), "recent": recent},
    }


def _run_counts(parts: GatewayParts) -> Mapping[str, int]:
    states = [run.state for run in parts.runs.active()]
    queued, parked = states.count(RunState.QUEUED), states.count(RunState.PARKED)
    return {"active": len(states) - queued - parked, "queued": queued, "parked": parked}
