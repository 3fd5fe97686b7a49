"""Messages that wait, are answered together, enter half-way, or outlive an engine: live and
reloaded are the same blocks (TU-08, TU-10)."""

from __future__ import annotations

import pytest

from claw_engine.agent.toolround import SKIPPED as ENGINE_SKIPPED
from claw_engine.agent.toolround import Outcome
from claw_engine.inbox.queue_modes import batch_text
from claw_engine.inbox.recovery import LOST_CALL, UNANSWERED_CALL
from claw_engine.inbox.resume import RESUME_NOTE
from claw_engine.messages import ToolCallBlock
from claw_engine.protocol.names import INTERRUPTED_BY_RESTART
from claw_tui.store.blocks import BlockKind, ToolStatus
from claw_tui.store.conversation import Conversation
from claw_tui.store.history import COLLECTED, LOST, NOT_BEGUN, SKIPPED, blocks_from_history
from claw_tui.store.store import Store
from tests.tui.fake_client import MAIN, NOW, Script
from tests.tui.store.test_conversation import kinds, play


def user(text: str, run_id: str | None, at: int = 0, **own: object) -> dict[str, object]:
    mark = {"id": f"e-{run_id}-{at}", "runId": run_id, **own}
    return {"role": "user", "content": text, "timestamp": NOW + at, "__claw": mark}


def answer(text: str, at: int, stop: str = "stop", **more: object) -> dict[str, object]:
    content: list[dict[str, object]] = [{"type": "text", "text": text}] if text else []
    return {
        "role": "assistant",
        "provider": "p",
        "model": "m",
        "timestamp": NOW + at,
        "stopReason": stop,
        "content": content,
        "__claw": {"id": f"a{at}", "runId": None},
        **more,
    }


def queued(s: Script, message: str, *behind: str, **more: object) -> dict[str, object]:
    ahead = list(behind)
    return s("run.queued", 100, message=message, source="console", lane="main",
             waitingBehind=ahead, **more)  # fmt: skip


def begun(s: Script, *messages: str, **more: object) -> dict[str, object]:
    told = {"cause": "message", "messages": list(messages) or [s.run_id], **more}
    return s("run.started", 100, model="m", provider="p", isAI=True, waitMs=1, **told)


def ended(s: Script, status: str = "done", **more: object) -> dict[str, object]:
    return s("run.ended", 100, status=status, stopReason="stop", text="", error=None, durationMs=9,
             usage=None, **more)  # fmt: skip


def same(live: list[dict[str, object]], history: list[dict[str, object]]) -> Conversation:
    """Live, reloaded, and reloaded over live are one picture; returns the live one."""
    seen, fresh = Conversation(MAIN), Conversation(MAIN)
    play(seen, *live)
    before = [block.signature() for block in seen.blocks]
    fresh.reload(blocks_from_history(history))
    assert [block.signature() for block in fresh.blocks] == before
    seen.reload(blocks_from_history(history))
    assert [block.signature() for block in seen.blocks] == before
    assert len({block.id for block in seen.blocks}) == len(seen.blocks)
    return seen


def test_collected_messages_stand_once_under_one_header() -> None:
    """TU-08, TU-10: three wait, one run answers them."""
    a, b, c, d = Script("r1"), Script("r2"), Script("r3"), Script("r4")
    texts = ["two", "three\n\n---\nQueued #9\nnot a header", "four"]
    live = [
        *a.opening("one"),
        queued(b, texts[0], "r1"),
        queued(c, texts[1], "r1", "r2"),
        queued(d, texts[2], "r1", "r2", "r3"),
        a("text", callId="c1", delta="A"),
        ended(a),
    ]
    waiting = Conversation(MAIN)
    play(waiting, *live)
    assert [q.message for q in waiting.waiting()] == texts
    assert kinds(waiting) == ["user", "run", "text"]
    live += [
        b("run.state", prev="queued", new="building", reason=""),
        begun(c, "r3", cause="collected", answeredBy="r2"),
        begun(d, "r4", cause="collected", answeredBy="r2"),
        begun(b, "r2", "r3", "r4"),
        b("text", callId="c1", delta="B"),
        ended(b),
        ended(c, answeredBy="r2"),
        ended(d, answeredBy="r2"),
    ]
    history = [
        user("one", "r1"),
        answer("A", 10),
        user(batch_text(texts), "r2", 20, runIds=["r2", "r3", "r4"]),
        answer("B", 30),
    ]
    talk = same(live, history)
    assert kinds(talk) == ["user", "run", "text", "user", "user", "user", "run", "text"]
    assert not talk.queued and talk.active_run() is None and not talk.unfinished()


def test_a_replay_in_any_order_has_the_collected_messages_before_their_run() -> None:
    b, c = Script("r2"), Script("r3")
    lead = [queued(b, "two"), begun(b, "r2", "r3"), b("text", callId="c1", delta="B")]
    member = [queued(c, "three", "r2"), begun(c, "r3", cause="collected", answeredBy="r2")]
    for order in (lead + member, member + lead):
        store = Store()
        store.set_live({"live": []})
        for event in order:
            store.apply("trace", event)
        assert [x.text for x in store.conversation().blocks if x.text] == ["two", "three", "B"]
        assert store.sessions.rows[MAIN].state == "running"
        live = [
            {"runId": r, "sessionKey": MAIN, "events": e} for r, e in (("r2", lead), ("r3", member))
        ]
        store.set_live({"live": live})
        assert [x.text for x in store.conversation().blocks if x.text] == ["two", "three", "B"]
        assert not store.conversation().queued


def test_steered_words_stand_inside_the_run_and_skipped_calls_say_so() -> None:
    a, b = Script("r1"), Script("r2", start=NOW + 500)
    live = [
        *a.opening("one"),
        a("tool.started", callId="c1", toolCallId="t1", name="exec", args={"command": "rm x"}),
        queued(b, "no, wait", "r1", steeredInto="r1"),
        a("tool.ended", toolCallId="t1", name="exec", status="skipped", text=SKIPPED,
          exitCode=None, durationMs=3, decision=None),
        begun(b, "r2", cause="steered", answeredBy="r1"),
        a("text", callId="c2", delta="Good that you say so."),
        ended(a),
        ended(b, answeredBy="r1"),
    ]  # fmt: skip
    call = {"type": "toolCall", "id": "t1", "name": "exec", "arguments": {"command": "rm x"}}
    history = [
        user("one", "r1"),
        answer("", 10, "toolUse", content=[call]),
        {"role": "toolResult", "toolCallId": "t1", "toolName": "exec", "isError": True,
         "timestamp": NOW + 20, "content": [{"type": "text", "text": SKIPPED}]},
        user("no, wait", "r2", 21, steeredInto="r1"),
        answer("Good that you say so.", 30),
    ]  # fmt: skip
    talk = same(live, history)
    assert kinds(talk) == ["user", "run", "tool", "user", "text"]
    assert {block.run_id for block in talk.blocks} == {"r1"}
    tool = talk.tools["t1"].tool
    assert tool is not None and tool.status is ToolStatus.SKIPPED


def test_steered_and_kept_words_are_said_twice() -> None:
    a, b = Script("r1"), Script("r2", start=NOW + 500)
    live = [
        *a.opening("one"),
        a("text", callId="c1", delta="Yes. "),
        queued(b, "also this", "r1", steeredInto="r1"),
        b("notice", level="info", text="Told to the run that is going on"),
        a("text", callId="c2", delta="A"),
        ended(a),
        begun(b),
        b("text", callId="c1", delta="B"),
        ended(b),
    ]
    history = [
        user("one", "r1"),
        answer("Yes. ", 4),
        user("also this", None, 5, steeredInto="r1"),
        answer("A", 10),
        user("also this", "r2", 20),
        answer("B", 30),
    ]
    assert kinds(same(live, history)) == [
        "user",
        "run",
        "text",
        "user",
        "text",
        "user",
        "run",
        "text",
    ]


def test_an_interrupting_message_ends_the_run_it_replaces() -> None:
    a, b = Script("r1"), Script("r2")
    live = [
        *a.opening("one"),
        a("text", callId="c1", delta="Well, "),
        queued(b, "stop, do this", "r1"),
        ended(a, "aborted"),
        begun(b),
        b("text", callId="c1", delta="B"),
        ended(b),
    ]
    history = [
        user("one", "r1"),
        answer("Well, ", 10, "aborted", errorMessage="Stopped: a newer message took its place."),
        user("stop, do this", "r2", 20),
        answer("B", 30),
    ]
    talk = same(live, history)
    assert kinds(talk) == ["user", "run", "text", "notice", "user", "run", "text"]


def cut_short() -> list[dict[str, object]]:
    """A run whose engine died under a call."""
    call = {"type": "toolCall", "id": "t1", "name": "exec", "arguments": {"command": "make"}}
    return [
        user("build it", "r1"),
        answer("", 10, "toolUse", content=[call]),
        {"role": "toolResult", "toolCallId": "t1", "toolName": "exec", "isError": True,
         "timestamp": NOW + 20, "content": [{"type": "text", "text": LOST_CALL}]},
        answer("", 21, "aborted", errorMessage=INTERRUPTED_BY_RESTART),
    ]  # fmt: skip


def resumed_story() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    s = Script("r1", start=NOW + 1000)
    live = [
        queued(s, "build it"),
        begun(s, cause="resume"),
        s("text", callId="c1", delta="Going on."),
        ended(s),
    ]
    stored_again = [
        user(f"{RESUME_NOTE}\n\nbuild it", "r1", 1100, resumed=True),
        answer("Going on.", 1300),
    ]
    return live, stored_again


@pytest.mark.parametrize("watched", [True, False], ids=["was-attached", "attached-later"])
def test_a_resumed_run_is_a_second_turn_under_its_old_id(watched: bool) -> None:
    live, stored_again = resumed_story()
    talk = Conversation(MAIN)
    if watched:  # the console saw the first turn of an engine that is no more
        first = Script("r1")
        play(talk, *first.opening("build it"), ended(first, "interrupted"))
    talk.reload(blocks_from_history(cut_short()))
    play(talk, *live)
    kinds_now = ["user", "run", "tool", "notice", "user", "run", "text"]
    assert kinds(talk) == kinds_now
    signatures = [block.signature() for block in talk.blocks]
    whole = Conversation(MAIN)
    whole.reload(blocks_from_history([*cut_short(), *stored_again]))
    assert [block.signature() for block in whole.blocks] == signatures
    talk.reload(blocks_from_history([*cut_short(), *stored_again]))
    assert [block.signature() for block in talk.blocks] == signatures
    assert [b.text for b in whole.blocks if b.kind is BlockKind.USER] == ["build it"] * 2


@pytest.mark.parametrize("stored", [0, 1], ids=["not-yet-stored", "stored"])
def test_whoever_attaches_in_a_resumed_run_sees_both_turns(stored: int) -> None:
    live, stored_again = resumed_story()
    talk = Conversation(MAIN)
    play(talk, *live[:3])
    talk.reload(blocks_from_history([*cut_short(), *stored_again[:stored]]))
    assert kinds(talk) == ["user", "run", "tool", "notice", "user", "run", "text"]
    play(talk, live[3])
    assert talk.active_run() is None
    headers = [b.run for b in talk.blocks if b.run is not None]
    assert [(h.status, h.resumed) for h in headers] == [("interrupted", False), ("done", True)]
    assert len({block.id for block in talk.blocks}) == len(talk.blocks)


def test_a_message_that_is_dropped_says_why_and_has_no_header() -> None:
    talk, a, b = Conversation(MAIN), Script("r1"), Script("r2")
    play(
        talk,
        *a.opening("one"),
        queued(b, "two", "r1"),
        b("run.state", prev="queued", new="aborted", reason="dropped"),
        ended(b, "aborted") | {"data": {"status": "aborted", "error": {"title": "Taken out."}}},
    )
    assert kinds(talk) == ["user", "run", "user", "notice"]
    assert talk.blocks[-1].text == "Taken out." and not talk.waiting()


def test_what_the_engine_says_of_a_waiting_message_stands_beside_it() -> None:
    talk, b = Conversation(MAIN), Script("r2")
    play(talk, queued(b, "two"))
    assert not talk.waiting() and len(talk.waiting(everything=True)) == 1
    play(talk, b("notice", level="info", text="Waiting for a place in lane main: behind r9."))
    assert talk.waiting()[0].note.startswith("Waiting for a place") and not talk.blocks


def test_sentences_of_the_engine_that_history_is_read_by() -> None:
    assert batch_text(["a", "b"]).startswith(COLLECTED)
    assert ENGINE_SKIPPED.startswith(SKIPPED) and LOST_CALL.startswith(LOST)
    assert Outcome(ToolCallBlock("t", "exec", {})).text.startswith(NOT_BEGUN)
    assert UNANSWERED_CALL.startswith(NOT_BEGUN)
    assert RESUME_NOTE.startswith("[") and RESUME_NOTE.endswith("]")
