"""The queue folded into cards: what counts as the same, what is decided together, and what a
long queue costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_tui.store.approvals import Queue
from tests.tui.fake_client import NOW, record


def asked(queue: Queue, *ids: str, command: str = "ls", **over: object) -> None:
    for number, one in enumerate(ids):
        raw = record(one, command, **over)  # type: ignore[arg-type]  # request fields
        queue.requested({**raw, "createdAtMs": NOW + number})


def test_identical_requests_are_one_card_and_others_are_their_own() -> None:
    queue = Queue()
    asked(queue, "a", "b", "c")
    asked(queue, "d", command="ls -l")
    assert [(card.id, card.ids) for card in queue.ordered()] == [
        ("a", ["a", "b", "c"]),
        ("d", ["d"]),
    ]
    assert len(queue.pending) == 4
    assert queue.cards["a"].subject == "a×3" and queue.cards["d"].subject == "d"


DIFFERENT: list[Mapping[str, Any]] = [
    {"cwd": "/elsewhere"},
    {"agentId": "other"},
    {"sessionKey": "agent:main:other"},
    {"host": "node"},
    {"sandbox": "bwrap"},
    {"why": "other words"},
    {"envChanges": ["A=1"]},
    {"redirections": ["> x"]},
    {"reasons": ["other"]},
    {"segments": []},
    {"bindingId": "the script has changed"},
    {"kind": "write"},
    {"client": "node-host"},
    {"always": {"patterns": [], "refusal": "a shell", "recentMatches": []}},
    {"grants": {"offers": [{"covers": "exact", "span": "session", "words": "x"}]}},
]


@pytest.mark.parametrize("over", DIFFERENT)
def test_whatever_a_card_shows_keeps_requests_apart(over: Mapping[str, Any]) -> None:
    queue = Queue()
    asked(queue, "a")
    asked(queue, "b", **over)
    assert [card.ids for card in queue.ordered()] == [["a"], ["b"]]


def test_run_call_and_time_do_not() -> None:
    queue = Queue()
    asked(queue, "a")
    asked(queue, "b", runId="r9", toolCallId="t9", seconds=9)
    assert [card.ids for card in queue.ordered()] == [["a", "b"]]


def test_what_comes_while_a_card_is_armed_opens_a_new_one() -> None:
    queue = Queue()
    asked(queue, "a", "b")
    armed = {"a×2"}
    queue.armed = lambda subject: subject in armed
    asked(queue, "c")
    armed.clear()
    asked(queue, "d")
    assert [card.ids for card in queue.ordered()] == [["a", "b"], ["c", "d"]]
    assert queue.cards["a"].subject == "a×2"


def test_a_card_stays_itself_while_its_members_leave() -> None:
    queue = Queue()
    asked(queue, "a", "b", "c")
    for one in ("a", "c"):
        queue.resolved({"id": one, "status": "expired"})
    assert queue.cards["a"].ids == ["b"] and queue.cards["a"].subject == "a×3"
    assert queue.cards["a"].head.id == "b"
    queue.resolved({"id": "b", "status": "expired"})
    assert queue.ordered() == [] and queue.first() is None and queue.pending == {}
    asked(queue, "e")
    assert [card.ids for card in queue.ordered()] == [["e"]]


def test_a_request_told_twice_counts_once() -> None:
    queue = Queue()
    asked(queue, "a", "a")
    assert queue.cards["a"].joined == 1
    queue.replace([record("a", "ls"), record("b", "ls")])
    assert queue.cards["a"].ids == ["a", "b"]


def test_places_and_filters_follow_every_change() -> None:
    queue = Queue()
    for one in "abc":
        asked(queue, one, command=f"run {one}")
    assert [queue.place(one) for one in "abcx"] == [0, 1, 2, None]
    assert queue.place("c", "run c") == 0 and queue.place("a", "run c") is None
    assert queue.place("c") == 2
    queue.resolved({"id": "a", "status": "expired"})
    assert [queue.place(one) for one in "abc"] == [None, 0, 1]
    asked(queue, "d", command="run d")
    assert queue.place("d") == 2 and len(queue.ordered("run d")) == 1


def test_the_next_expiry_is_known_without_looking_at_all() -> None:
    queue = Queue()
    asked(queue, "late", seconds=100)
    asked(queue, "soon", seconds=5, command="id")
    assert queue.shortest_ms(NOW) == 5_000
    assert [a.id for a in queue.overdue(NOW + 5_000)] == ["soon"]
    queue.resolved({"id": "soon", "status": "expired"})
    assert queue.shortest_ms(NOW) == 100_000
    queue.resolved({"id": "late", "decision": "deny"})
    assert queue.shortest_ms(NOW) is None and queue.overdue(NOW * 2) == []


def test_what_ran_reaches_the_history() -> None:
    queue = Queue()
    queue.resolved({**record("a", "ls"), "status": "resolved", "decision": "allow-once"})
    queue.ran({"id": "a", "ran": {"status": "failed", "exitCode": 2, "durationMs": 10}})
    done = queue.history[0].ran
    assert (done.exit_code, done.words, done.duration_ms) == (2, "failed", 10)
    queue.ran({"id": "unknown", "ran": {}})


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "end", "arm"]), st.integers(0, 5), st.integers(0, 2))
)


@given(STEPS)
def test_every_request_is_on_exactly_one_card(steps: list[Step]) -> None:
    queue = Queue()
    armed: set[str] = set()
    queue.armed = lambda subject: subject in armed
    counted: dict[str, list[str]] = {}
    for number, (what, one, command) in enumerate(steps):
        if what == "ask":
            asked(queue, f"r{number}", command=f"cmd {command}")
        elif what == "end" and queue.pending:
            name = list(queue.pending)[one % len(queue.pending)]
            queue.resolved({"id": name, "status": "expired"})
        elif what == "arm" and queue.cards:
            card = list(queue.cards.values())[one % len(queue.cards)]
            armed = {card.subject}
            counted[card.id] = card.ids
        on_cards = [name for card in queue.ordered() for name in card.ids]
        assert sorted(on_cards) == sorted(queue.pending)
        for card in queue.cards.values():
            if card.subject in armed:  # what was counted is all there is
                assert set(card.ids) <= set(counted[card.id])
