"""Recorded gateways of both generations, told as our trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from claw_engine.client.foreign_events import ForeignEvents
from claw_tui.store.blocks import BlockKind
from claw_tui.store.store import Store

GOLDEN = Path(__file__).parents[1] / "golden" / "captures"
KEY = "agent:main:main"


def told(name: str) -> list[Mapping[str, Any]]:
    """What a recorded conversation becomes, our own sends included."""
    events, out = ForeignEvents(), []
    for row in json.loads((GOLDEN / name).read_text())["frames"]:
        frame = row["frame"]
        if row["dir"] == "send" and frame.get("method") == "chat.send":
            sent = frame["params"]
            out += events.sent(sent["idempotencyKey"], KEY, sent["message"], 0)
        elif frame.get("type") == "event":
            out += events.feed(frame["event"], frame.get("payload") or {}, 5)
    return out


def kinds(trace: list[Mapping[str, Any]]) -> list[str]:
    """Kinds in order but for what a run does, neighbours of one kind once."""
    out: list[str] = []
    for event in trace:
        if event["kind"] != "run.state" and (not out or out[-1] != event["kind"]):
            out.append(event["kind"])
    return out


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2026.2.26/chat.plain.json", ["run.queued", "run.started", "text", "run.ended"]),
        ("2026.9.6/chat.plain.json",
         ["run.queued", "run.started", "call.started", "text", "run.ended"]),
        ("2026.2.26/chat.tool_exec.json",
         ["run.queued", "run.started", "text", "tool.started", "tool.ended", "text", "run.ended"]),
        ("2026.9.6/chat.tool_exec.json",
         ["run.queued", "run.started", "call.started", "text", "tool.started", "tool.output",
          "tool.ended", "call.started", "text", "run.ended"]),
        ("2026.9.6/approval.agent_allow-once.json",
         ["run.queued", "run.started", "call.started", "tool.started", "tool.waiting",
          "tool.decided", "tool.output", "tool.ended", "call.started", "text", "run.ended"]),
    ],
)  # fmt: skip
def test_a_recorded_run(name: str, expected: list[str]) -> None:
    trace = told(name)
    assert kinds(trace) == expected
    assert [e["seq"] for e in trace] == list(range(1, len(trace) + 1))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2026.2.26/chat.tool_exec.json",
         ["building", "streaming", "tool", "between_tools", "streaming"]),
        ("2026.9.6/approval.agent_allow-once.json",
         ["building", "connecting", "tool", "parked", "tool", "between_tools", "connecting",
          "streaming"]),
    ],
)  # fmt: skip
def test_what_a_run_does_is_told(name: str, expected: list[str]) -> None:
    """A run that streams must not read as queued (seen with a real 2026.2.26)."""
    states = [e["data"]["new"] for e in told(name) if e["kind"] == "run.state"]
    once = [s for i, s in enumerate(states) if i == 0 or s != states[i - 1]]
    assert once == expected


@pytest.mark.parametrize("version", ["2026.2.26", "2026.9.6"])
def test_no_word_is_said_twice(version: str) -> None:
    """The text is cumulative, and `chat` repeats what `agent` said."""
    trace = told(f"{version}/chat.plain.json")
    said = "".join(e["data"]["delta"] for e in trace if e["kind"] == "text")
    assert said == "Hello from the fake model."


def test_who_decided_comes_from_the_approval() -> None:
    trace = told("2026.9.6/approval.agent_allow-once.json")
    decided = next(e["data"] for e in trace if e["kind"] == "tool.decided")
    assert (decided["decision"], decided["by"]) == ("allow-once", "cli")


def test_output_and_exit_code() -> None:
    trace = told("2026.9.6/chat.tool_exec.json")
    ended = next(e["data"] for e in trace if e["kind"] == "tool.ended")
    assert (ended["text"], ended["exitCode"], ended["status"]) == ("hi", 0, "ok")


def chat(run_id: str, state: str, text: str = "", **more: object) -> dict[str, object]:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    out: dict[str, object] = {"runId": run_id, "sessionKey": KEY, "state": state, **more}
    return out | ({"message": message} if text else {})


def agent(run_id: str, stream: str, **data: object) -> dict[str, object]:
    return {"runId": run_id, "sessionKey": KEY, "stream": stream, "data": data, "ts": 9}


def test_an_empty_final_is_no_answer() -> None:
    """A send while busy gets one at once; its answer comes under another id."""
    events = ForeignEvents()
    trace = [*events.sent("a", KEY, "first", 1)]
    trace += events.feed("agent", agent("a", "lifecycle", phase="start"), 2)
    trace += events.sent("b", KEY, "second", 3)
    trace += events.feed("chat", chat("b", "final"), 4)
    assert [e["runId"] for e in trace if e["kind"] == "run.ended"] == []
    trace += events.feed("agent", agent("a", "lifecycle", phase="end"), 5)
    later = [*events.feed("agent", agent("new", "lifecycle", phase="start"), 6)]
    assert later[0]["data"]["messages"] == ["b"]
    trace += later
    trace += events.feed("agent", agent("new", "assistant", text="Both.", delta="Both."), 7)
    trace += events.feed("agent", agent("new", "lifecycle", phase="end"), 8)
    store = Store()
    for event in trace:
        store.apply("trace", event)
    blocks = store.conversation(KEY).blocks
    words = [b.body.text() for b in blocks
             if b.kind in (BlockKind.USER, BlockKind.TEXT)]  # fmt: skip
    assert words == ["first", "second", "Both."]


@pytest.mark.parametrize(
    ("payload", "status", "title"),
    [
        (chat("a", "aborted", "so far"), "aborted", None),
        (chat("a", "error", errorMessage="429 slow down"), "failed", "429 slow down"),
        (chat("a", "final", "answer"), "done", None),
    ],
)
def test_runs_that_only_chat_tells_of(
    payload: dict[str, object], status: str, title: str | None
) -> None:
    trace = [*ForeignEvents().feed("chat", payload, 1)]
    assert trace[0]["kind"] == "run.started" and trace[-1]["kind"] == "run.ended"
    ended = trace[-1]["data"]
    assert ended["status"] == status
    assert (ended["error"] or {}).get("title") == title


def test_an_end_is_told_once_and_nothing_comes_after_it() -> None:
    events = ForeignEvents()
    list(events.feed("agent", agent("a", "lifecycle", phase="start"), 1))
    list(events.feed("agent", agent("a", "lifecycle", phase="end"), 2))
    assert [*events.feed("chat", chat("a", "final", "late"), 3)] == []
    assert [*events.feed("agent", agent("a", "assistant", text="late"), 4)] == []


def test_text_that_is_taken_back_begins_anew() -> None:
    events = ForeignEvents()
    list(events.feed("agent", agent("a", "assistant", text="one two", delta="one two"), 1))
    (new,) = events.feed("agent", agent("a", "assistant", text="three", replace=True), 2)
    assert new["data"] == {"callId": "text-1", "delta": "three"}


@pytest.mark.parametrize(
    "payload",
    [
        {}, {"runId": 1}, {"runId": "a"}, {"runId": "a", "stream": "assistant", "data": 7},
        {"runId": "a", "sessionKey": KEY, "stream": "tool", "data": {"phase": "result"}},
        {"runId": "a", "sessionKey": KEY, "stream": "tool", "data": {"phase": "update",
         "partialResult": [1]}},
        {"runId": "a", "sessionKey": KEY, "state": "delta", "message": "x" * 3},
        {"runId": "a", "sessionKey": KEY, "state": "odd", "message": {"content": [None, {}]}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("event", ["agent", "chat", "exec.approval.resolved"])
def test_odd_payloads_do_no_harm(event: str, payload: dict[str, object]) -> None:
    for trace in ForeignEvents().feed(event, payload, 1):
        assert trace["sessionKey"] == KEY
