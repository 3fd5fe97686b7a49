from __future__ import annotations

import pytest
from rich.cells import cell_len

from claw_tui.store import words
from claw_tui.store.approvals import Queue
from claw_tui.store.cmdline import complete, parse
from claw_tui.store.lanes import Lanes, sparkline
from claw_tui.store.sessions import Sessions, short_key
from claw_tui.store.status import segments
from claw_tui.store.store import Link, Pane, Store
from tests.tui.fake_client import MAIN, NOW, TELEGRAM, lane, record, session, status


def test_a_request_rings_once_however_often_it_is_told() -> None:
    store = Store()
    store.apply("exec.approval.requested", record("a", "ls"))
    store.apply("exec.approval.requested", record("a", "ls"))
    store.set_approvals({"approvals": [record("a", "ls")]})
    assert store.bells == 1
    store.set_approvals({"approvals": [record("a", "ls"), record("b", "ls")]})
    assert store.bells == 2


def test_a_decision_moves_the_request_to_the_history_once() -> None:
    store = Store()
    store.apply("exec.approval.requested", record("a", "ls -l"))
    done = {**record("a", "ls -l"), "status": "resolved", "decision": "deny", "decidedAtMs": NOW}
    store.apply("exec.approval.resolved", done)
    store.apply("exec.approval.resolved", done)
    assert not store.queue.pending
    assert [(item.command, item.decision) for item in store.queue.history] == [("ls -l", "deny")]


def test_what_is_over_leaves_the_queue_even_if_the_engine_is_gone() -> None:
    store = Store()
    store.apply("exec.approval.requested", record("a", "ls", seconds=5))
    assert not store.expire(NOW + 4_999)
    assert store.expire(NOW + 5_000)
    assert not store.queue.pending


RISKY = [{"text": "rm", "argv": ["rm"], "resolved": None, "rule": None, "why": "", "risks": ["x"]}]


def test_marks_are_refused_on_dangerous_and_unseen_cards() -> None:
    queue = Queue()
    queue.requested(record("a", "ls"))
    queue.requested(record("b", "rm", segments=RISKY))
    assert queue.mark("a") == "look at the card first"
    queue.viewed |= {"a", "b"}
    assert queue.mark("a") == ""
    assert "risk" in queue.mark("b")
    assert queue.marked == {"a"}
    assert queue.mark("gone") == "it is no longer waiting"


def test_forty_requests_stay_in_order_and_filter() -> None:
    queue = Queue()
    for n in range(40):
        raw = record(f"id{n:02}", f"cmd{n:02}", sessionKey=TELEGRAM if n % 2 else MAIN)
        queue.requested({**raw, "createdAtMs": NOW + n})
    assert [a.id for a in queue.ordered()] == [f"id{n:02}" for n in range(40)]
    assert len(queue.ordered("telegram")) == 20


def test_lane_gauges_keep_twenty_samples() -> None:
    lanes = Lanes()
    for n in range(30):
        lanes.apply({"paused": n == 29, "lanes": [lane("main", 4, n % 4, 1, 0, 28)]})
    assert len(lanes.lanes["main"].load) == 20
    assert lanes.paused
    assert sparkline([0, 1, 4], 10) == "▁▃█"
    assert sparkline([0, 0], 10) == "▁▁"


def test_sessions_newest_first_with_inverse_filter() -> None:
    sessions = Sessions()
    sessions.replace({"sessions": [session(MAIN, 5), session(TELEGRAM, 1)]})
    assert [row.key for row in sessions.ordered()] == [TELEGRAM, MAIN]
    assert [row.key for row in sessions.ordered("!telegram")] == [MAIN]


@pytest.mark.parametrize(
    ("key", "short"),
    [
        (MAIN, "main"),
        (TELEGRAM, "telegram:42"),
        ("agent:work:main", "work/main"),
        ("agent:work:cron:x", "work/cron:x"),
        ("odd", "odd"),
    ],
)
def test_short_keys(key: str, short: str) -> None:
    assert short_key(key) == short


def busy_store() -> Store:
    store = Store(link=Link.CONNECTED)
    store.set_status(status(lanes=[lane("main", 4, 1, 2)]))
    store.sessions.replace({"sessions": [session(MAIN, totalTokens=92_000)]})
    store.apply("exec.approval.requested", record("a", "ls"))
    store.apply("exec.approval.requested", record("b", "ls", seconds=400))
    return store


@pytest.mark.parametrize("width", [40, 58, 78, 98, 118, 200])
def test_the_status_line_fits_and_never_drops_what_waits(width: int) -> None:
    shown = segments(busy_store(), NOW, width)
    text = "  ".join(seg.shown for seg in shown)
    assert "01:52" in text and "●" in text and "guarded" in text and "bypass" in text
    if width >= 78:
        assert cell_len(text) <= width
        assert "not an AI" in text and "▶1 q2" in text
    if width >= 118:
        assert "approvals can be bypassed" in text and "ctx 46%" in text


def test_the_status_line_says_paused_lost_and_unusable() -> None:
    store = busy_store()
    store.set_status(
        status(paused=True, model={"name": "deepseek/chat", "isAI": True, "error": "no key"})
    )
    store.lost("gone")
    text = "  ".join(seg.shown for seg in segments(store, NOW, 200))
    assert "PAUSED" in text and "connection lost" in text and "cannot be used" in text


@pytest.mark.parametrize(
    ("raw", "name", "argument", "problem"),
    [
        ("stop", "stop", "", ""),
        (":theme claw-light", "theme", "claw-light", ""),
        ("session", None, "", "session needs KEY"),
        ("pasue", None, "", "no command pasue; did you mean pause?"),
        ("zzz", None, "", "no command zzz; ? lists them"),
        ("  ", None, "", "nothing typed"),
    ],
)
def test_command_lines(raw: str, name: str | None, argument: str, problem: str) -> None:
    parsed = parse(raw)
    assert (parsed.verb.name if parsed.verb else None) == name
    assert (parsed.argument, parsed.problem) == (argument, problem)


def test_completion_knows_verbs_sessions_and_themes() -> None:
    assert complete("sto", [], []) == ["stop", "stopall"]
    assert complete("session tele", [MAIN, TELEGRAM], []) == [f"session {TELEGRAM}"]
    assert complete("theme light", [], ["claw-light"]) == ["theme claw-light"]


def test_words() -> None:
    assert words.countdown(112_000) == "01:52"
    assert words.countdown(3_840_000) == "1:04:00"
    assert words.countdown(-5) == "00:00"
    assert words.took(800) == "0.8 s" and words.took(185_000) == "3 m 05 s"
    assert words.count(19_400) == "19.4k" and words.size(5_000_000) == "5.0 MB"
    assert words.short_run("7f3a9c-1") == "7f3a"


def test_events_mark_only_their_panes() -> None:
    store = Store()
    woken: list[int] = []
    store.wake = lambda: woken.append(1)
    store.apply("lanes", {"paused": False, "lanes": []})
    assert store.take_dirty() == {Pane.LANES, Pane.STATUS}
    assert woken and store.take_dirty() == set()
