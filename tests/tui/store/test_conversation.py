"""Live events and stored history end as the same blocks (TU-08, TU-10)."""

from __future__ import annotations

import pytest

from claw_tui.store.blocks import LIVE_CLIP, TEXT_CLIP, BlockKind, ToolStatus
from claw_tui.store.conversation import Conversation
from claw_tui.store.history import blocks_from_history
from claw_tui.store.live import decision_words
from claw_tui.store.store import Pane, Store
from tests.tui.fake_client import MAIN, NOW, Script


def play(conversation: Conversation, *events: dict[str, object]) -> None:
    for event in events:
        conversation.apply(
            str(event["runId"]),
            int(str(event["seq"])),
            int(str(event["ts"])),
            str(event["kind"]),
            event["data"],  # type: ignore[arg-type]  # a dict by construction
        )


def kinds(conversation: Conversation) -> list[str]:
    return [str(block.kind) for block in conversation.blocks]


def tool_story(s: Script, output: str) -> list[dict[str, object]]:
    return [
        *s.opening("look"),
        s("text", callId="c1", delta="Let me "),
        s("text", callId="c1", delta="look."),
        s(
            "call.ended",
            callId="c1",
            stopReason="toolUse",
            usage=None,
            ttftMs=1,
            durationMs=2,
            error=None,
        ),
        s("tool.started", callId="c1", toolCallId="t1", name="exec", args={"command": "ls"}),
        s("tool.output", toolCallId="t1", delta=output[:500]),
        s(
            "tool.ended",
            toolCallId="t1",
            name="exec",
            status="ok",
            text=output[:TEXT_CLIP],
            exitCode=0,
            durationMs=5,
            decision=None,
        ),
        s(
            "call.started",
            callId="c2",
            cause="tool_round",
            model="m",
            parts=[],
            bytes=1,
            tokens=1,
            estimated=True,
        ),
        s("text", callId="c2", delta="Done."),
        s(
            "call.ended",
            callId="c2",
            stopReason="stop",
            usage=None,
            ttftMs=1,
            durationMs=2,
            error=None,
        ),
        s(
            "run.ended",
            status="done",
            stopReason="stop",
            text="Done.",
            error=None,
            durationMs=50,
            usage=None,
        ),
    ]


def stored(output: str, run_id: str | None = "7f3a9c") -> list[dict[str, object]]:
    mark = {"id": "e", **({"runId": run_id} if run_id else {})}
    return [
        {"role": "user", "content": "look", "timestamp": NOW, "__claw": mark},
        {
            "role": "assistant",
            "provider": "rehearsal",
            "model": "stage",
            "timestamp": NOW + 10,
            "stopReason": "toolUse",
            "__claw": mark,
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "toolCall", "id": "t1", "name": "exec", "arguments": {"command": "ls"}},
            ],
        },
        {
            "role": "toolResult",
            "toolCallId": "t1",
            "toolName": "exec",
            "isError": False,
            "timestamp": NOW + 20,
            "content": [{"type": "text", "text": output}],
            "__claw": mark,
        },
        {
            "role": "assistant",
            "provider": "rehearsal",
            "model": "stage",
            "timestamp": NOW + 30,
            "stopReason": "stop",
            "content": [{"type": "text", "text": "Done."}],
            "__claw": mark,
        },
    ]


@pytest.mark.parametrize("output", ["one\ntwo", "", "x" * 5_000_000], ids=["small", "none", "5MB"])
def test_live_view_equals_the_reloaded_view(output: str) -> None:
    conversation = Conversation(MAIN)
    play(conversation, *tool_story(Script(), output))
    live = [block.signature() for block in conversation.blocks]
    assert kinds(conversation) == ["user", "run", "text", "tool", "text"]
    fresh = Conversation(MAIN)
    fresh.reload(blocks_from_history(stored(output)))
    assert [block.signature() for block in fresh.blocks] == live
    conversation.reload(blocks_from_history(stored(output)))
    assert [block.signature() for block in conversation.blocks] == live


def test_reload_keeps_the_timings_only_live_events_know() -> None:
    conversation = Conversation(MAIN)
    play(conversation, *tool_story(Script(), "x"))
    conversation.reload(blocks_from_history(stored("x")))
    run = conversation.runs["7f3a9c"].run
    tool = conversation.tools["t1"].tool
    assert run is not None and run.duration_ms == 50
    assert tool is not None and tool.duration_ms == 5 and tool.exit_code == 0


def test_reload_under_a_running_run_keeps_the_live_blocks_once() -> None:
    conversation = Conversation(MAIN)
    play(conversation, *tool_story(Script(), "x")[:7])
    conversation.reload(blocks_from_history(stored("x")[:1]))
    assert kinds(conversation) == ["user", "run", "text"]
    conversation.reload(blocks_from_history(stored("x", run_id=None)[:1]))
    assert kinds(conversation) == ["user", "run", "text"]


def test_a_replayed_event_counts_once() -> None:
    conversation, s = Conversation(MAIN), Script()
    events = tool_story(s, "x")
    play(conversation, *events, *events)
    assert kinds(conversation) == ["user", "run", "text", "tool", "text"]
    assert conversation.blocks[2].text == "Let me look."


def test_a_queued_message_stays_apart_until_it_is_dispatched() -> None:
    conversation = Conversation(MAIN)
    first, second = Script("r1"), Script("r2")
    play(conversation, *first.opening("one"))
    play(
        conversation,
        second("run.queued", message="two", source="console", lane="main", waitingBehind=1),
        second("run.state", prev="", new="queued", reason=""),
    )
    assert [q.message for q in conversation.queued.values()] == ["two"]
    assert "two" not in [block.text for block in conversation.blocks]
    play(
        conversation,
        second("run.started", model="m", provider="p", isAI=True, waitMs=1, cause="message"),
    )
    assert not conversation.queued
    assert kinds(conversation) == ["user", "run", "user", "run"]


def test_two_runs_interleaved_do_not_mix_their_text() -> None:
    conversation, a, b = Conversation(MAIN), Script("ra"), Script("rb")
    play(
        conversation,
        *a.opening("a"),
        *b.opening("b"),
        a("text", callId="c1", delta="A1"),
        b("text", callId="c1", delta="B1"),
        a("text", callId="c1", delta="A2"),
        b("text", callId="c1", delta="B2"),
    )
    texts = [x.text for x in conversation.blocks if x.kind is BlockKind.TEXT]
    assert texts == ["A1A2", "B1B2"]


def test_the_end_of_a_run_ends_everything_it_left_open() -> None:
    conversation, s = Conversation(MAIN), Script()
    play(
        conversation,
        *s.opening("x"),
        s("text", callId="c1", delta="half"),
        s("tool.started", callId="c1", toolCallId="t", name="exec", args={}),
        s(
            "run.ended",
            status="aborted",
            stopReason="aborted",
            text="",
            error=None,
            durationMs=9,
            usage=None,
        ),
    )
    assert conversation.active_run() is None
    assert not any(block.open for block in conversation.blocks)
    tool = conversation.tools["t"].tool
    assert tool is not None and tool.status is ToolStatus.ABORTED
    assert conversation.blocks[-1].text == "stopped"


def test_the_engines_own_answer_to_a_command_is_shown() -> None:
    conversation, s = Conversation(MAIN), Script()
    play(
        conversation,
        s("run.queued", message="/whoami", source="console", lane="", waitingBehind=[]),
        s("run.ended", status="done", stopReason="stop", text="Agent: main", error=None,
          durationMs=1, usage=None),
    )  # fmt: skip
    assert conversation.blocks[-1].kind is BlockKind.NOTICE
    assert conversation.blocks[-1].text == "Agent: main"


def test_an_error_says_title_and_hint() -> None:
    conversation, s = Conversation(MAIN), Script()
    play(
        conversation,
        *s.opening("x"),
        s(
            "run.ended",
            status="failed",
            stopReason="error",
            text="",
            durationMs=9,
            usage=None,
            error={"title": "The key was refused", "hint": "check models.providers"},
        ),
    )
    assert conversation.blocks[-1].kind is BlockKind.ERROR
    assert conversation.blocks[-1].text == "The key was refused\ncheck models.providers"


def test_deltas_cost_their_own_length_and_output_stays_bounded() -> None:
    conversation, s = Conversation(MAIN), Script()
    play(
        conversation,
        *s.opening("x"),
        s("tool.started", callId="c1", toolCallId="t", name="exec", args={}),
    )
    for _ in range(500):
        play(conversation, s("tool.output", toolCallId="t", delta="y" * 1000))
    body = conversation.tools["t"].body
    assert body.total == 500_000
    assert sum(map(len, body.chunks)) <= 2 * LIVE_CLIP + 1000


def test_attached_in_the_middle_the_replay_shows_the_run() -> None:
    store, s = Store(), Script()
    store.set_live(
        {"live": [{"runId": "7f3a9c", "sessionKey": MAIN, "events": tool_story(s, "x")[:7]}]}
    )
    assert kinds(store.conversation()) == ["user", "run", "text"]
    assert store.sessions.rows[MAIN].state == "running"
    assert Pane.CONVERSATION in store.take_dirty()


def test_a_replay_after_a_lost_connection_tells_each_run_once() -> None:
    store, s = Store(), Script()
    events = tool_story(s, "x")
    for event in events[:6]:
        store.apply("trace", event)
    merged = {**events[5], "data": {"callId": "c1", "delta": "Let me look."}}
    replay = [*events[:4], merged, *events[6:9]]
    store.set_live({"live": [{"runId": "7f3a9c", "sessionKey": MAIN, "events": replay}]})
    assert kinds(store.conversation()) == ["user", "run", "text", "tool"]
    assert store.conversation().blocks[2].text == "Let me look."


def test_a_run_that_ended_unheard_is_told_by_history() -> None:
    store, s = Store(), Script()
    for event in tool_story(s, "x")[:8]:
        store.apply("trace", event)
    store.set_live({"live": []})
    store.set_history(MAIN, {"messages": stored("x")})
    assert kinds(store.conversation()) == ["user", "run", "text", "tool", "text"]
    assert store.conversation().active_run() is None
    assert store.sessions.rows[MAIN].state == "idle"


def test_unknown_and_malformed_events_change_nothing() -> None:
    store = Store()
    odd: tuple[object, ...] = (
        None,
        [],
        {"kind": 3},
        {"runId": "r", "seq": "x", "kind": "odd", "data": 1},
        {"runId": "r", "seq": 1, "kind": "run.started", "data": {"answeredBy": "nobody"}},
        {"runId": "r", "seq": 2, "kind": "run.ended", "data": {"answeredBy": "nobody"}},
    )
    for payload in odd:
        store.apply("trace", payload)
        store.apply("something.new", payload)
    assert not store.conversation().blocks


def test_a_decision_that_the_history_carries_is_kept() -> None:
    messages = stored("x")
    result = next(m for m in messages if m.get("role") == "toolResult")
    for details, words in (
        ({"approvalId": "a1", "decision": "allow-once"}, "allowed once"),
        ({"approvalId": "a1", "decision": "deny", "reason": "no"}, "denied: no"),
        ({"approvalId": "a1", "decision": None}, "expired"),
        ({"exitCode": 0}, ""),
    ):
        result["details"] = details
        tools = [b.tool for b in blocks_from_history(messages) if b.tool is not None]
        assert tools[0].decision == words


@pytest.mark.parametrize(
    ("decision", "by", "asked", "words"),
    [
        ("allow-once", "console", True, "allowed once"),
        ("allow-once", "grant", True, "granted"),
        ("allow-always", "console", True, "allowed always"),
        ("deny", "grant", True, "denied: no"),
        (None, "", True, "expired"),
        (None, "", False, ""),
    ],
)
def test_a_decision_in_words(decision: str | None, by: str, asked: bool, words: str) -> None:
    assert decision_words(decision, "no", asked=asked, by=by) == words
