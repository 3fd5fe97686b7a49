"""A run as OpenTelemetry spans: ids, parents, names of the conventions, JSON of OTLP."""

from __future__ import annotations

from typing import Any

from claw_engine.trace.otlp import spans

CALL = {
    "id": "r/call-1", "runId": "r", "cause": "turn", "parentId": None, "model": "box/m-1",
    "provider": "box", "attempt": 1, "startedMs": 1_000, "firstTokenMs": 1_250, "endedMs": 2_000,
    "error": None, "finish": "toolUse", "bodyBytes": 900, "estimatedTokens": 200, "cost": 0.5,
    "usage": {"input": 100, "output": 7, "cacheRead": 50, "cacheWrite": 1},
}  # fmt: skip
TOOL = {
    "id": "t0", "runId": "r", "callId": "r/call-1", "name": "read", "status": "error",
    "startedMs": 2_000, "endedMs": None, "waitedMs": 3, "exitCode": None, "decision": None,
}  # fmt: skip
RUN = {
    "id": "r", "sessionKey": "agent:main:main", "agentId": "main", "cause": "message",
    "model": "box/m-1", "startedMs": 990, "endedMs": 2_100, "queueMs": 1, "parkedMs": 0,
    "usage": None, "error": None,
}  # fmt: skip


def attributes(span: dict[str, Any]) -> dict[str, object]:
    return {row["key"]: next(iter(row["value"].values())) for row in span["attributes"]}


def test_spans() -> None:
    made = spans({"run": RUN, "calls": [CALL], "tools": [TOOL]})
    assert made == spans({"run": RUN, "calls": [CALL], "tools": [TOOL]}), "the same trace again"
    resource: Any = made["resourceSpans"]
    run, call, tool = resource[0]["scopeSpans"][0]["spans"]
    assert len({run["traceId"], call["traceId"], tool["traceId"]}) == 1
    assert len(run["traceId"]) == 32 and len(run["spanId"]) == 16
    assert "parentSpanId" not in run
    assert call["parentSpanId"] == run["spanId"] and tool["parentSpanId"] == call["spanId"]
    assert [span["name"] for span in (run, call, tool)] == [
        "invoke_agent main", "chat m-1", "execute_tool read",
    ]  # fmt: skip
    assert [span["kind"] for span in (run, call, tool)] == [1, 3, 1]
    assert call["startTimeUnixNano"] == "1000000000" and call["endTimeUnixNano"] == "2000000000"
    assert tool["endTimeUnixNano"] == tool["startTimeUnixNano"]
    said = attributes(call)
    assert said["gen_ai.operation.name"] == "chat" and said["gen_ai.provider.name"] == "box"
    assert said["gen_ai.request.model"] == "m-1"
    assert said["gen_ai.usage.input_tokens"] == "151", "cached tokens count among the input"
    assert said["gen_ai.usage.cache_read.input_tokens"] == "50"
    assert said["gen_ai.usage.output_tokens"] == "7"
    assert said["gen_ai.response.finish_reasons"] == {"values": [{"stringValue": "toolUse"}]}
    assert said["gen_ai.conversation.id"] == "agent:main:main"
    assert (call["status"]["code"], tool["status"]["code"]) == (1, 2)
    assert attributes(tool)["gen_ai.tool.call.id"] == "t0"
