"""Lanes and runs: what goes on, pausing, and the big red button."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams
from claw_engine.protocol.names import Scope
from claw_engine.runs import AbortReason, Run, RunState


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def status(call: Call, params: NoParams) -> Payload:
        return lanes_payload(parts)

    async def diagnostics(call: Call, params: NoParams) -> Payload:
        lanes = [
            {
                "lane": row["lane"],
                "queuedCount": row["queued"],
                "activeCount": row["active"],
                "maxConcurrent": row["width"],
                "draining": parts.lanes.paused,
                "generation": 0,
                "blockedBy": None,
            }
            for row in lane_rows(parts)
        ]
        return {"ts": parts.clock.now_ms(), "lanes": lanes, "dynamic": None}

    async def pause(call: Call, params: NoParams) -> Payload:
        await parts.pauses.pause()
        return {"ok": True, "paused": True}

    async def resume(call: Call, params: NoParams) -> Payload:
        await parts.pauses.resume()
        return {"ok": True, "paused": False}

    async def stop_all(call: Call, params: NoParams) -> Payload:
        # Pause first: a slot that an aborted run frees must not start the next one.
        parts.lanes.pause()
        run_ids = parts.runs.abort_all(AbortReason.USER)
        if parts.background is None:
            await parts.pauses.pause()
            return {"runIds": run_ids}
        # Side by side: a slow disk must not delay the stop, nor a stubborn process the pause.
        stopped, _ = await asyncio.gather(
            parts.background.kill_all("stop all"), parts.pauses.pause()
        )
        return {"runIds": run_ids, "processes": list(stopped)}

    return (
        method("lanes.status", Scope.READ, NoParams, status),
        method("diagnostics.lanes", Scope.READ, NoParams, diagnostics),
        method("lanes.pause", Scope.WRITE, NoParams, pause),
        method("lanes.resume", Scope.WRITE, NoParams, resume),
        method("runs.stopAll", Scope.WRITE, NoParams, stop_all),
    )


def lane_rows(parts: GatewayParts) -> list[dict[str, object]]:
    waiting = Counter(run.lane for run in parts.runs.active() if run.state is RunState.QUEUED)
    # What waits in a session's queue has no place in a lane yet; it counts all the same.
    return [
        {**lane.to_json(), "queued": max(lane.queued, waiting[lane.lane])}
        for lane in parts.lanes.status()
    ]


def lanes_payload(parts: GatewayParts) -> dict[str, object]:
    """The answer of `lanes.status`, also the payload of the `lanes` event."""
    return {
        "paused": parts.lanes.paused,
        "lanes": lane_rows(parts),
        "runs": [
            {
                "runId": run.id,
                "sessionKey": run.session_key,
                "lane": run.lane,
                "state": run.state.value,
                "sinceMs": run.state_since_ms,
                "parentId": run.parent_id,
                "waitingBehind": _blockers(parts, run),
            }
            for run in parts.runs.active()
        ],
    }


def _blockers(parts: GatewayParts, run: Run) -> Sequence[str]:
    """What a queued run waits for, so that a wedged one is found from those behind it."""
    if run.state is not RunState.QUEUED:
        return []
    return list(parts.lanes.blockers(run.id) if parts.queue is None else
                parts.queue.blockers(run.id))  # fmt: skip
