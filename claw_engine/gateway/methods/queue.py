"""What waits, and what an operator does about it: `lanes.configure`, `lanes.drop`, `lanes.move`,
`runs.interrupted`, `runs.resume`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from claw_engine.gateway.ports import GatewayParts, QueuePort
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams, Params, RunId, Text
from claw_engine.protocol.names import Scope


class ConfigureParams(Params, frozen=True, kw_only=True):
    """`width` null goes back to the configuration's."""

    lane: Text
    width: Annotated[int, Meta(ge=1, le=1000)] | None


class DropParams(Params, frozen=True, kw_only=True):
    run_id: RunId


class MoveParams(Params, frozen=True, kw_only=True):
    run_id: RunId
    position: Annotated[int, Meta(ge=0)]


class ResumeParams(Params, frozen=True, kw_only=True):
    run_id: RunId
    action: Literal["resume", "discard"]


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    """Nothing without a queue behind the gateway."""
    queue = parts.queue
    return () if queue is None else (*_lanes(parts, queue), *_runs(queue))


def _lanes(parts: GatewayParts, queue: QueuePort) -> tuple[Method, ...]:
    async def configure(call: Call, params: ConfigureParams) -> Payload:
        width = await parts.pauses.configure(params.lane, params.width)
        return {"ok": True, "lane": params.lane, "width": width}

    async def drop(call: Call, params: DropParams) -> Payload:
        queue.drop(params.run_id)
        return {"ok": True, "runId": params.run_id}

    async def move(call: Call, params: MoveParams) -> Payload:
        queue.move(params.run_id, params.position)
        return {"ok": True, "runId": params.run_id, "position": params.position}

    return (
        method("lanes.configure", Scope.WRITE, ConfigureParams, configure),
        method("lanes.drop", Scope.WRITE, DropParams, drop),
        method("lanes.move", Scope.WRITE, MoveParams, move),
    )


def _runs(queue: QueuePort) -> tuple[Method, ...]:
    async def interrupted(call: Call, params: NoParams) -> Payload:
        return {"runs": [dict(row) for row in queue.interrupted()]}

    async def resume(call: Call, params: ResumeParams) -> Payload:
        await queue.decide(params.run_id, params.action)
        return {"ok": True, "runId": params.run_id, "action": params.action}

    return (
        method("runs.interrupted", Scope.READ, NoParams, interrupted),
        method("runs.resume", Scope.WRITE, ResumeParams, resume),
    )
