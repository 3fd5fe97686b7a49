"""A recorded run as OpenTelemetry spans, ready for OTLP over HTTP in JSON. Pure.

Names follow the GenAI semantic conventions, version 1.41 (development): a run is `invoke_agent`,
a call `chat`, a tool call `execute_tool`. Texts of requests and answers are not sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias

Json: TypeAlias = Mapping[str, object]

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"
INTERNAL, CLIENT = 1, 3
_OK, _ERROR = 1, 2


def spans(found: Json) -> dict[str, object]:
    """The request of a run as `trace.run` and `claw trace export` have it."""
    run = _map(found.get("run"))
    trace_id = _id(f"run {run.get('id')} {run.get('startedMs')}", 16)
    root = _id(f"span {run.get('id')}", 8)
    agent = str(run.get("agentId") or "main")
    common = {
        "gen_ai.conversation.id": run.get("sessionKey"),
        "gen_ai.agent.id": agent,
        "gen_ai.agent.name": agent,
    }
    calls, tools = _rows(found.get("calls")), _rows(found.get("tools"))
    made = [
        _span(trace_id, root, "", f"invoke_agent {agent}", INTERNAL, run, {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": _provider(str(run.get("model") or "")),
            "gen_ai.request.model": run.get("model") or None, **_usage(run), **common,
            "claw.run.id": run.get("id"), "claw.run.cause": run.get("cause"),
            "claw.run.queue_ms": run.get("queueMs"), "claw.run.parked_ms": run.get("parkedMs"),
        }),
        *(_call(trace_id, root, call, common) for call in calls),
        *(_tool(trace_id, root, tool, calls, common) for tool in tools),
    ]  # fmt: skip
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes({"service.name": "claw-tui"})},
                "scopeSpans": [
                    {"scope": {"name": "claw_engine.trace"}, "spans": made, "schemaUrl": SCHEMA_URL}
                ],
            }
        ]
    }


def _call(trace_id: str, root: str, call: Json, common: Json) -> dict[str, object]:
    name = str(call.get("model") or "")
    finish = call.get("finish")
    first, started = call.get("firstTokenMs"), call.get("startedMs")
    waited = (
        (first - started) / 1000 if isinstance(first, int) and isinstance(started, int) else None
    )
    model = name.partition("/")[2] or name
    return _span(trace_id, _call_span(call), root, f"chat {model}", CLIENT, call, {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": call.get("provider"),
        "gen_ai.request.model": model, "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": [finish] if finish else None,
        "gen_ai.response.time_to_first_chunk": waited,
        **_usage(call), **common,
        "claw.call.id": call.get("id"), "claw.call.cause": call.get("cause"),
        "claw.call.parent_id": call.get("parentId"), "claw.call.attempt": call.get("attempt"),
        "claw.call.body_bytes": call.get("bodyBytes"), "claw.call.cost": call.get("cost"),
        "claw.call.estimated_tokens": call.get("estimatedTokens"),
    })  # fmt: skip


def _tool(
    trace_id: str, root: str, tool: Json, calls: Sequence[Json], common: Json
) -> dict[str, object]:
    asked = next((call for call in calls if call.get("id") == tool.get("callId")), None)
    parent = root if asked is None else _call_span(asked)
    status = str(tool.get("status"))
    seen = {**tool, "error": None if status == "ok" else status}
    return _span(
        trace_id, _id(f"tool {tool.get('runId')} {tool.get('id')}", 8), parent,
        f"execute_tool {tool.get('name')}", INTERNAL, seen, {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool.get("name"),
            "gen_ai.tool.call.id": tool.get("id"), "gen_ai.tool.type": "function", **common,
            "claw.tool.status": status, "claw.tool.decision": tool.get("decision"),
            "claw.tool.waited_ms": tool.get("waitedMs"),
            "claw.tool.exit_code": tool.get("exitCode"),
        },
    )  # fmt: skip


def _span(
    trace_id: str, span_id: str, parent: str, name: str, kind: int, times: Json, attributes: Json
) -> dict[str, object]:
    start = times.get("startedMs")
    end = times.get("endedMs") or start
    error = times.get("error")
    more = {"error.type": "error"} if error else {}
    span: dict[str, object] = {
        "traceId": trace_id, "spanId": span_id, "name": name, "kind": kind,
        "startTimeUnixNano": f"{start}000000", "endTimeUnixNano": f"{end}000000",
        "attributes": _attributes({**attributes, **more}),
        "status": {"code": _ERROR, "message": str(error)} if error else {"code": _OK},
    }  # fmt: skip
    if parent:
        span["parentSpanId"] = parent
    return span


def _usage(row: Json) -> dict[str, object]:
    """The conventions count cached tokens among the input."""
    usage = row.get("usage")
    if not isinstance(usage, Mapping):
        return {}
    read, written = usage.get("cacheRead") or 0, usage.get("cacheWrite") or 0
    return {
        "gen_ai.usage.input_tokens": (usage.get("input") or 0) + read + written,
        "gen_ai.usage.output_tokens": usage.get("output"),
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.cache_creation.input_tokens": written,
    }


def _attributes(values: Json) -> list[dict[str, object]]:
    return [{"key": key, "value": made} for key, value in values.items() if (made := _value(value))]


def _value(value: object) -> dict[str, object] | None:
    """64-bit numbers are texts in OTLP's JSON."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in value]}}
        case _:
            return None


def _call_span(call: Json) -> str:
    return _id(f"call {call.get('id')}", 8)


def _id(said: str, size: int) -> str:
    """The same run exported twice is the same trace."""
    return sha256(said.encode("utf-8", "replace")).digest()[:size].hex()


def _provider(model: str) -> str:
    return model.partition("/")[0] or "claw"


def _map(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def _rows(value: object) -> Sequence[Json]:
    rows: Iterable[object] = value if isinstance(value, list) else ()
    return [row for row in rows if isinstance(row, Mapping)]
