"""`trace.*`: follow what runs do, step by step, whoever started them."""

from __future__ import annotations

from collections.abc import Callable

from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams, TraceSubscribeParams
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts, catch_up: Callable[[], None]) -> tuple[Method, ...]:
    """`catch_up` tells everybody what has been published so far."""

    async def subscribe(call: Call, params: TraceSubscribeParams) -> Payload:
        key = None if params.session_key is None else parts.sessions.canonical(params.session_key)
        # No await between the three: nothing is missed and nothing comes twice.
        catch_up()
        call.peer.follow_trace(key)
        live = [
            {
                "runId": events[0].run_id,
                "sessionKey": events[0].session_key,
                "events": [event.to_json() for event in events],
            }
            for events in parts.intake.live(key)
            if events
        ]
        return {"live": live}

    async def unsubscribe(call: Call, params: NoParams) -> Payload:
        call.peer.unfollow_trace()
        return {"ok": True}

    return (
        method("trace.subscribe", Scope.READ, TraceSubscribeParams, subscribe),
        method("trace.unsubscribe", Scope.READ, NoParams, unsubscribe),
    )
