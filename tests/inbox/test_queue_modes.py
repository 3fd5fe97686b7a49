"""Queue modes as tables: names, precedence, caps, what the model reads; all without a clock."""

from __future__ import annotations

import pytest

from claw_engine.inbox.queue_directive import duration_ms, entry_fields, find, override_of_entry
from claw_engine.inbox.queue_modes import (
    Action,
    Drop,
    FollowUps,
    QueueMode,
    QueueOverride,
    QueueRules,
    batch_text,
    decide,
    drop_of,
    mode_of,
    overflow_text,
)


@pytest.mark.parametrize(
    ("word", "mode"),
    [
        ("collect", "collect"), ("coalesce", "collect"), ("FollowUp", "followup"),
        ("follow-ups", "followup"), ("followups", "followup"), ("steer", "steer"),
        ("steering", "steer"), ("queue", "steer"), ("queued", "steer"),
        ("steer+backlog", "steer-backlog"), ("steer_backlog", "steer-backlog"),
        ("steer-backlog", "steer-backlog"), ("interrupt", "interrupt"),
        ("interrupts", "interrupt"), ("abort", "interrupt"), ("blue", None), ("", None),
    ],
)  # fmt: skip
def test_names(word: str, mode: str | None) -> None:
    assert mode_of(word) == (None if mode is None else QueueMode(mode))


@pytest.mark.parametrize(
    ("mode", "busy", "steerable", "action"),
    [
        *((mode, False, False, Action.RUN) for mode in QueueMode),
        (QueueMode.COLLECT, True, True, Action.ENQUEUE),
        (QueueMode.FOLLOWUP, True, True, Action.ENQUEUE),
        (QueueMode.STEER, True, True, Action.STEER),
        (QueueMode.STEER, True, False, Action.ENQUEUE),
        (QueueMode.STEER_BACKLOG, True, True, Action.STEER_AND_ENQUEUE),
        (QueueMode.STEER_BACKLOG, True, False, Action.ENQUEUE),
        (QueueMode.INTERRUPT, True, True, Action.INTERRUPT),
    ],
)
def test_decisions(mode: QueueMode, busy: bool, steerable: bool, action: Action) -> None:
    assert decide(mode, busy=busy, steerable=steerable) is action


def queue_of(rules: QueueRules, *texts: str, route: str = "r") -> FollowUps[str]:
    queue: FollowUps[str] = FollowUps()
    for text in texts:
        queue.push(text, text, route, rules, 0)
    return queue


def test_collect_takes_all_and_followup_one_by_one() -> None:
    batch = queue_of(QueueRules(), "a", "b").take()
    assert batch is not None
    assert batch.items == ("a", "b")
    queue = queue_of(QueueRules(QueueMode.FOLLOWUP), "a", "b")
    taken = [queue.take(), queue.take()]
    assert [b.items for b in taken if b] == [("a",), ("b",)]
    assert queue.take() is None


def test_messages_of_different_routes_are_answered_one_by_one() -> None:
    queue = queue_of(QueueRules(), "a")
    queue.push("b", "b", "elsewhere", QueueRules(), 0)
    queue.push("c", "c", "r", QueueRules(), 0)
    taken = [queue.take() for _ in range(2)]
    assert [b.items for b in taken if b] == [("a",), ("b",)]


def test_cap_old_drops_the_oldest_and_new_refuses() -> None:
    queue = queue_of(QueueRules(cap=2, drop=Drop.OLD), "a", "b")
    assert queue.push("c", "c", "r", QueueRules(cap=2, drop=Drop.OLD), 0).dropped == ("a",)
    assert queue.values == ("b", "c")
    rules = QueueRules(cap=2, drop=Drop.NEW)
    assert queue.refuses(rules)
    assert queue.push("d", "d", "r", rules, 0).dropped == ("d",)
    assert queue.values == ("b", "c")
    assert queue.push("e", "e", "r", rules, 0, force=True).dropped == ()


def test_summaries_stay_at_most_cap_lines_and_are_answered_too() -> None:
    rules = QueueRules(cap=2)
    queue = queue_of(rules, "a", "b")
    assert queue.push("c", "c", "r", rules, 0).summarized == ("a",)
    queue.push("d", "d", "r", rules, 0)
    assert queue.push("e", "e", "r", rules, 0).dropped == ("a",)
    batch = queue.take()
    assert batch is not None
    assert (batch.items, batch.summarized, batch.lost) == (("d", "e"), ("b", "c"), 1)
    assert batch.members == ("b", "c", "d", "e")


def test_in_followup_mode_the_overflow_is_a_turn_of_its_own() -> None:
    rules = QueueRules(QueueMode.FOLLOWUP, cap=1)
    queue = queue_of(rules, "a", "b")
    first, second = queue.take(), queue.take()
    assert first is not None
    assert second is not None
    assert (first.items, first.summarized) == ((), ("a",))
    assert (second.items, second.summarized) == (("b",), ())


def test_what_the_model_reads() -> None:
    assert batch_text(["alone"]) == "alone"
    assert batch_text(["one", "two"]) == (
        "[Queued messages while agent was busy]\n\n---\nQueued #1\none\n\n---\nQueued #2\ntwo"
    )
    over = overflow_text(["gone\nlong  ago", "x" * 200], 3)
    assert over.splitlines()[:3] == [
        "[Queue overflow] Dropped 5 message(s) due to cap.", "Summary:", "- gone long ago",
    ]  # fmt: skip
    assert len(over.splitlines()[3]) == 2 + 160
    assert batch_text(["one"], over).count("[Queue overflow]") == 1
    assert batch_text([], over) == over


def test_debounce_counts_from_the_newest() -> None:
    queue = queue_of(QueueRules(debounce_ms=1000), "a")
    queue.push("b", "b", "r", QueueRules(debounce_ms=1000), 700)
    assert (queue.due_ms(800), queue.due_ms(1700), queue.due_ms(9000)) == (900, 0, 0)


def test_move_and_remove() -> None:
    queue = queue_of(QueueRules(), "a", "b", "c")
    assert queue.move("c", 0)
    assert queue.move("a", 99)
    assert queue.values == ("c", "b", "a")
    assert queue.remove("b")
    assert not queue.remove("b")
    assert not queue.move("b", 0)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("2s", 2000), ("1.5s", 1500), ("250", 250), ("1m", 60_000), ("0", 0),
     ("", None), ("-1s", None), ("2h", None), ("fast", None)],
)  # fmt: skip
def test_durations(text: str, ms: int | None) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    ("text", "override", "rest"),
    [
        ("/queue steer", QueueOverride(QueueMode.STEER), ""),
        ("/QUEUE: followup debounce:2s cap=5 drop:old",
         QueueOverride(QueueMode.FOLLOWUP, 2000, 5, Drop.OLD), ""),
        ("look at this /queue interrupt now", QueueOverride(QueueMode.INTERRUPT),
         "look at this now"),
        ("/queue collect then tell me", QueueOverride(QueueMode.COLLECT), "then tell me"),
        ("/queue drop:summarize", QueueOverride(drop=Drop.SUMMARIZE), ""),
    ],
)  # fmt: skip
def test_directives(text: str, override: QueueOverride, rest: str) -> None:
    found = find(text)
    assert found is not None
    assert (found.override, found.rest, found.bad) == (override, rest, ())


@pytest.mark.parametrize("text", ["no queue here", "/queues steer", "path/queue steer", ""])
def test_what_is_no_directive(text: str) -> None:
    assert find(text) is None


def test_bare_reset_and_wrong_directives() -> None:
    bare, reset, wrong, half = (
        find(t) for t in ("/queue", "/queue default", "/queue blue", "/queue steer cap:none")
    )
    assert bare is not None and bare.bare
    assert reset is not None and reset.reset
    assert entry_fields(reset) == dict.fromkeys(
        ("queueMode", "queueDebounceMs", "queueCap", "queueDrop")
    )
    assert wrong is not None and wrong.bad == ("blue",)
    assert half is not None and half.bad == ("cap:none",)


def test_the_session_entry_is_read_leniently() -> None:
    raw = {"queueMode": "queue", "queueDebounceMs": 5, "queueCap": -1, "queueDrop": "?"}
    found = override_of_entry(raw)
    assert found == QueueOverride(QueueMode.STEER, 5)
    assert found.over(QueueRules()).cap == 20
    assert drop_of("OLD") is Drop.OLD
