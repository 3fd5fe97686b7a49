"""From trace to OpenClaw's events: the captured conversations, replayed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from claw_engine.gateway.translate import ChatTranslator
from claw_engine.gateway.wire_events import WireEvent
from claw_engine.protocol.trace import TraceEvent, TraceKind
from tests.gateway.rig import Tracer

GOLDEN = Path(__file__).parents[1] / "golden" / "frames"


def golden_events(name: str) -> list[dict[str, object]]:
    frames = json.loads((GOLDEN / f"{name}.json").read_text())["frames"]
    return [f["frame"] for f in frames if f["frame"].get("event") in ("agent", "chat")]


def retell(name: str) -> list[TraceEvent]:
    """The trace that would lead to a captured conversation."""
    agent = [e["payload"] for e in golden_events(name) if e["event"] == "agent"]
    final = [e["payload"] for e in golden_events(name) if e["event"] == "chat"][-1]
    first = agent[0]
    t = Tracer(first["runId"], first["sessionKey"], first["ts"])  # type: ignore[index]  # JSON
    out: list[TraceEvent] = []
    call = 1
    for payload in agent:
        t.ts = payload["ts"]  # type: ignore[index]  # JSON
        data = payload["data"]  # type: ignore[index]  # JSON
        match payload["stream"], data.get("phase"):  # type: ignore[index]  # JSON
            case "lifecycle", "start":
                out.append(t(TraceKind.RUN_STARTED, model="m"))
            case "assistant", _:
                out.append(t(TraceKind.TEXT, callId=f"c{call}", delta=data["delta"]))
            case "tool", "start":
                call += 1
                out.append(t(TraceKind.TOOL_STARTED, callId="c1", args=data["args"],
                             toolCallId=data["toolCallId"], name=data["name"]))  # fmt: skip
            case "tool", "update":
                out.append(t(TraceKind.TOOL_OUTPUT, toolCallId=data["toolCallId"], delta="hi"))
            case "tool", "result":
                out.append(t(TraceKind.TOOL_ENDED, toolCallId=data["toolCallId"], status="ok"))
            case "lifecycle", "end":
                text = final["message"]["content"][0]["text"]  # type: ignore[index]  # JSON
                out.append(t(TraceKind.RUN_ENDED, status="done", text=text, error=None))
            case "lifecycle", "error":
                error = {"title": data["error"], "hint": ""}
                out.append(t(TraceKind.RUN_ENDED, status="failed", text="", error=error))
    return out


@pytest.mark.parametrize("full", [False, True])
def test_protocol_3_is_told_what_a_tool_says_at_verbose_full(full: bool) -> None:
    translator, t = ChatTranslator(lambda key: full and key == "agent:main:main"), Tracer("r")
    told = [
        event.payload["data"]
        for traced in (
            t(TraceKind.TOOL_STARTED, toolCallId="c", name="exec", args={}),
            t(TraceKind.TOOL_OUTPUT, 200, toolCallId="c", delta="words"),
            t(TraceKind.TOOL_ENDED, toolCallId="c", status="ok", text="all words"),
        )
        for event in translator.feed(traced)
        if event.payload.get("stream") == "tool"
    ]
    _, update, result = told
    assert isinstance(update, dict)
    assert isinstance(result, dict)
    assert ("words" in str(update.get("partialResult"))) is full
    assert ("all words" in str(result.get("result"))) is full


def translate(events: Iterable[TraceEvent], protocol: int = 3) -> list[WireEvent]:
    """What a client of a protocol is told."""
    translator = ChatTranslator()
    told = [wire for event in events for wire in translator.feed(event)]
    return [wire for wire in told if protocol >= 4 or not wire.only4]


def shape(value: object) -> object:
    """Keys and kinds of a payload, without its values."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items() if k not in ("args", "meta")}
    if isinstance(value, list):
        return [shape(v) for v in value]
    return type(value).__name__


@pytest.mark.parametrize(
    "name", ["chat.plain", "chat.tool_exec", "provider_error.401", "agent.method"]
)
def test_events_have_the_captured_names_order_and_shapes(name: str) -> None:
    ours = [(e.name, shape(dict(e.payload))) for e in translate(retell(name))]
    theirs = [(e["event"], shape(e["payload"])) for e in golden_events(name)]

    agents = [e for e in ours if e[0] == "agent"]
    assert agents == [e for e in theirs if e[0] == "agent"]
    assert ours[-1] == theirs[-1]
    assert {str(e) for e in ours if e[0] == "chat"} == {str(e) for e in theirs if e[0] == "chat"}


def test_texts_are_those_captured() -> None:
    ours = translate(retell("chat.tool_exec"))
    theirs = golden_events("chat.tool_exec")
    texts = [
        e.payload["data"]["text"]  # type: ignore[index]  # JSON
        for e in ours
        if e.payload.get("stream") == "assistant"
    ]
    captured = [
        e["payload"]["data"]["text"]  # type: ignore[index]  # JSON
        for e in theirs
        if e["payload"].get("stream") == "assistant"  # type: ignore[attr-defined]  # JSON
    ]
    assert texts == captured == ["Running it.", "Done. Tool said: hi"]


def chat_texts(events: Iterable[WireEvent], state: str = "delta") -> list[str]:
    return [
        e.payload["message"]["content"][0]["text"]  # type: ignore[index]  # JSON
        for e in events
        if e.name == "chat" and e.payload["state"] == state
    ]


def test_chat_deltas_are_cumulative_150_ms_apart_and_flushed_before_the_final() -> None:
    """TU-10: cumulative deltas."""
    t = Tracer("r")
    events = [t(TraceKind.RUN_STARTED)]
    events += [t(TraceKind.TEXT, 40, callId="c", delta=f"{n} ") for n in range(10)]
    events += [t(TraceKind.RUN_ENDED, 1, status="done", text="all", error=None)]
    out = translate(events)
    deltas = chat_texts(out)
    assert deltas[0] == "0 "
    assert deltas[-1] == "".join(f"{n} " for n in range(10))
    assert len(deltas) == 4
    assert out[-1].payload["state"] == "final"
    assert all(b.startswith(a) for a, b in pairwise(deltas))


def test_text_left_behind_is_told_when_its_time_has_come() -> None:
    translator, t = ChatTranslator(), Tracer("r")
    list(translator.feed(t(TraceKind.TEXT, callId="c", delta="a")))
    list(translator.feed(t(TraceKind.TEXT, 10, callId="c", delta="b")))
    assert translator.behind
    assert list(translator.flush(t.ts + 100)) == []
    assert chat_texts(translator.flush(t.ts + 150)) == ["ab"]
    assert not translator.behind


def test_an_aborted_run_tells_its_partial_text_and_why() -> None:
    t = Tracer("r")
    end = t(TraceKind.RUN_ENDED, status="aborted", text="half", stopReason="user", error=None)
    out = translate([end])
    assert out[-1].payload["state"] == "aborted"
    assert out[-1].payload["stopReason"] == "rpc"
    assert chat_texts(out, "aborted") == ["half"]


def test_a_silent_end_is_a_final_without_message() -> None:
    t = Tracer("r")
    out = translate([t(TraceKind.RUN_ENDED, status="done", text="", error=None)])
    assert "message" not in out[-1].payload


def test_tool_events_are_targeted_and_carry_no_number() -> None:
    out = translate(retell("chat.tool_exec"))
    tools = [e for e in out if e.payload.get("stream") == "tool"]
    assert len(tools) == 3
    assert not any(e.numbered for e in tools)
