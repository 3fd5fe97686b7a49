"""What waits, and what an operator does about it: `lanes.configure`, `lanes.drop`, `lanes.move`,
`runs.interrupted`, `runs.resume`, and the sessions' own: `sessions.reset`, `.patch`, `.delete`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from claw_engine.gateway.ports import GatewayParts, QueuePort
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams, OpenParams, Params, RunId, Text
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


class ResetParams(Params, frozen=True, kw_only=True):
    key: Text
    reason: Literal["new", "reset"] = "reset"


class DeleteParams(Params, frozen=True, kw_only=True):
    key: Text
    delete_transcript: bool = True


class PatchParams(OpenParams, frozen=True, kw_only=True):
    """Which fields there are, the sessions room knows."""

    key: Text


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    """Nothing without a queue behind the gateway."""
    queue = parts.queue
    return () if queue is None else (*_lanes(parts, queue), *_runs(queue), *_sessions(parts, queue))


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


def _sessions(parts: GatewayParts, queue: QueuePort) -> tuple[Method, ...]:
    async def reset(call: Call, params: ResetParams) -> Payload:
        key = parts.sessions.canonical(params.key)
        return {"ok": True, "key": key, "entry": dict(await queue.reset(key, params.reason))}

    async def delete(call: Call, params: DeleteParams) -> Payload:
        key = parts.sessions.canonical(params.key)
        gone = await queue.delete(key, keep_transcript=not params.delete_transcript)
        return {"ok": True, "key": key, "deleted": gone is not None, "archived": list(gone or ())}

    async def patch(call: Call, params: PatchParams) -> Payload:
        key = parts.sessions.canonical(params.key)
        entry = await queue.patch(key, params.rest)
        return {"ok": True, "key": key, "entry": dict(entry)}

    return (
        method("sessions.reset", Scope.ADMIN, ResetParams, reset),
        method("sessions.delete", Scope.ADMIN, DeleteParams, delete),
        method("sessions.patch", Scope.ADMIN, PatchParams, patch),
    )
