"""Events in awkward orders: what the footer says is what the engine does (TU-08).

Variants: final before the last delta, abort answered before the end, two runs interleaved, an
error without a run id, a second message 20 ms after the first, the end lost and history read.
"""

from __future__ import annotations

from claw_tui.store.history import blocks_from_history
from claw_tui.store.store import Store
from tests.tui.fake_client import MAIN, NOW, Script
from tests.tui.store.test_conversation import kinds, stored, tool_story

Told = dict[str, object]


def end(s: Script, status: str = "done") -> Told:
    return s(
        "run.ended", status=status, stopReason="stop", text="", error=None, durationMs=5, usage=None
    )


def hear(store: Store, *events: Told) -> Store:
    for event in events:
        store.apply("trace", event)
    return store


def idle(store: Store) -> bool:
    """Nothing in the footer or the view says that something still goes on."""
    talk = store.conversation()
    return (
        talk.active_run() is None
        and not talk.unfinished()
        and not any(block.open for block in talk.blocks)
        and store.sessions.rows[MAIN].state == "idle"
        and not store.busy()
    )


def test_the_final_comes_before_the_last_delta() -> None:
    """TU-08: a late delta of an ended run opens nothing again."""
    s = Script()
    opening, first = s.opening("x"), s("text", callId="c1", delta="He")
    last = s("text", callId="c1", delta="llo")
    store = hear(Store(), *opening, first, end(s))
    assert idle(store)
    assert idle(hear(store, last))


def test_the_answer_to_a_stop_comes_before_the_end() -> None:
    """TU-08: until the end is told the run counts as running, then as stopped."""
    s = Script()
    tool = s("tool.started", callId="c1", toolCallId="t", name="exec", args={})
    store = hear(Store(), *s.opening("x"), tool)
    assert not idle(store)  # the answer of chat.abort is no event and changes nothing
    hear(store, s("tool.output", toolCallId="t", delta="late"))
    assert store.conversation().active_run() is not None
    assert idle(hear(store, end(s, "aborted")))
    assert store.conversation().blocks[-1].text == "stopped"


def test_two_runs_interleaved_end_one_by_one() -> None:
    """TU-08: the footer is idle only when both have ended."""
    a, b = Script("ra"), Script("rb")
    store = hear(Store(), *a.opening("a"), *b.opening("b"))
    hear(store, a("text", callId="c1", delta="A"), b("text", callId="c1", delta="B"), end(a))
    running = store.conversation().active_run()
    assert running is not None
    assert running.run_id == "rb"
    assert store.sessions.rows[MAIN].state != "idle"
    assert idle(hear(store, end(b)))


def test_an_error_without_a_run_id_belongs_to_nobody() -> None:
    """TU-08: it neither ends the run that goes on nor makes one that never ends."""
    s = Script()
    store = hear(Store(), *s.opening("x"))
    for run_id in ("", None):
        hear(store, {**end(Script("r9"), "failed"), "runId": run_id})
    running = store.conversation().active_run()
    assert running is not None
    assert running.run_id == s.run_id
    assert kinds(store.conversation()) == ["user", "run"]
    assert idle(hear(store, end(s)))


def test_a_second_message_right_after_the_first_waits_apart() -> None:
    """TU-08: 20 ms later; in the strip until it is dispatched, in the talk afterwards."""
    first, second = Script("r1"), Script("r2", start=NOW + 20)
    told = second.opening("two")
    store = hear(Store(), *first.opening("one"), told[0])
    talk = store.conversation()
    assert [q.message for q in talk.waiting(everything=True)] == ["two"]
    assert "two" not in [block.text for block in talk.blocks]
    hear(store, end(first))
    assert not store.conversation().blocks[-1].open
    hear(store, *told[1:])
    assert talk.waiting(everything=True) == []
    assert kinds(talk) == ["user", "run", "user", "run"]
    assert idle(hear(store, end(second)))


def test_a_lost_end_is_learned_from_history() -> None:
    """TU-08: the connection dropped the end; what is read again says the run is over."""
    s = Script()
    store = hear(Store(), *tool_story(s, "x")[:8])
    assert not idle(store)
    store.set_live({"live": []})
    store.set_history(MAIN, {"messages": stored("x")})
    assert idle(store)
    fresh = [block.signature() for block in blocks_from_history(stored("x"))]
    assert [block.signature() for block in store.conversation().blocks] == fresh
