"""`trace.list` and the other questions about runs and calls that were recorded."""

from __future__ import annotations

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.trace_port import TracePort
from claw_engine.gateway.validate import (
    TraceCallParams,
    TraceCallsParams,
    TraceCompareParams,
    TraceListParams,
    TracePartParams,
    TraceRunParams,
    TraceSearchParams,
)
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    def desk() -> TracePort:
        if parts.trace is None:
            raise InvalidRequest("there is no trace store here")
        return parts.trace()

    def canonical(key: str | None) -> str | None:
        return None if key is None else parts.sessions.canonical(key)

    async def runs(call: Call, params: TraceListParams) -> Payload:
        return await desk().runs(canonical(params.session_key), params.limit, params.below)

    async def run(call: Call, params: TraceRunParams) -> Payload:
        return await desk().run(params.run_id)

    async def calls(call: Call, params: TraceCallsParams) -> Payload:
        key = canonical(params.session_key)
        return await desk().calls(key, params.run_id, params.limit, params.below)

    async def one(call: Call, params: TraceCallParams) -> Payload:
        return await desk().call(params.call_id, canonical(params.session_key))

    async def part(call: Call, params: TracePartParams) -> Payload:
        return await desk().part(params.call_id, params.part_id, params.offset, params.limit)

    async def compare(call: Call, params: TraceCompareParams) -> Payload:
        return await desk().compare(params.a, params.b, params.lines)

    async def search(call: Call, params: TraceSearchParams) -> Payload:
        return await desk().search(params.call_id, params.text, params.limit)

    return (
        method("trace.list", Scope.READ, TraceListParams, runs),
        method("trace.run", Scope.READ, TraceRunParams, run),
        method("trace.calls", Scope.READ, TraceCallsParams, calls),
        method("trace.call", Scope.READ, TraceCallParams, one),
        method("trace.part", Scope.READ, TracePartParams, part),
        method("trace.compare", Scope.READ, TraceCompareParams, compare),
        method("trace.search", Scope.READ, TraceSearchParams, search),
    )
