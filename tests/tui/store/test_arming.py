"""The arming rule (AP-09): a table of stories, and a machine that tries to cheat."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_tui.store.arming import QUIET_SECONDS, Arming, Why


def shown(card: str = "a", at: float = 10.0) -> Arming:
    return Arming().select(card).framed(card, 5).wrote(5, 0, at)


def test_half_a_second_after_the_frame_was_written_one_key_decides() -> None:
    state = shown(at=10.0).key(10.5)
    state, granted = state.take("a")
    assert granted
    assert state.why_not(20.0) is Why.SPENT


STORIES = [
    ("too early", shown(at=10.0).key(10.49), Why.QUIET),
    ("frame not handed over", Arming().select("a"), Why.UNSEEN),
    ("frame not written", Arming().select("a").framed("a", 5), Why.BEHIND),
    (
        "an older frame was written",
        Arming().select("a").framed("a", 5).wrote(4, 0, 1.0),
        Why.BEHIND,
    ),
    ("backlog left", Arming().select("a").framed("a", 5).wrote(5, 300, 1.0), Why.BEHIND),
    ("another key just before", shown(at=10.0).key(10.4).key(10.6), Why.QUIET),
    ("a paste just before", shown(at=10.0).paste(10.4).key(10.6), Why.QUIET),
    ("disarmed", shown().disarm(), Why.UNSEEN),
    ("another card", shown().select("b"), Why.UNSEEN),
    ("no card", shown().select(None), Why.NO_CARD),
    ("another frame's card", Arming().select("a").framed("b", 5).wrote(5, 0, 1.0), Why.UNSEEN),
]


@pytest.mark.parametrize(("name", "state", "why"), STORIES, ids=[s[0] for s in STORIES])
def test_not_armed(name: str, state: Arming, why: Why) -> None:
    assert state.why_not(10.7 if why is Why.QUIET else 99.0) is why
    _, granted = state.take("a")
    assert not granted


def test_a_key_while_the_terminal_is_behind_starts_the_wait_again() -> None:
    state = shown(at=10.0).key(20.0, backlog=900)
    assert state.take("a") == (state, False)
    assert state.why_not(99.0) is Why.BEHIND
    assert state.wrote(6, 0, 30.0).why_not(30.6) is None


def test_the_grant_belongs_to_the_newest_key_only() -> None:
    assert not shown(at=10.0).key(11.0).key(11.01).take("a")[1]


def test_the_grant_does_not_move_to_another_card() -> None:
    state = shown(at=10.0).key(11.0).select("b")
    assert not state.take("a")[1]
    assert not state.take("b")[1]


def test_holding_y_at_30_hz_decides_at_most_the_armed_card() -> None:
    state, decided, now = shown("card0", at=10.0), [], 10.6
    for press in range(300):
        card = state.card
        state = state.key(now)
        state, granted = state.take(card)
        if granted:
            decided.append(card)
            following = f"card{len(decided)}"
            state = state.select(following).framed(following, 100 + press)
        state = state.wrote(100 + press, 0, now)
        now += 1 / 30
    assert decided == ["card0"]


STEP = st.one_of(
    st.tuples(st.just("key"), st.integers(0, 1)),
    st.tuples(st.just("paste"), st.just(0)),
    st.tuples(st.just("select"), st.integers(0, 2)),
    st.tuples(st.just("disarm"), st.just(0)),
    st.tuples(st.just("framed"), st.integers(0, 6)),
    st.tuples(st.just("wrote"), st.integers(0, 6)),
    st.tuples(st.just("wait"), st.integers(0, 8)),
)


@given(st.lists(STEP, max_size=60))
@settings(max_examples=400)
def test_a_decision_always_had_its_frame_and_its_silence(steps: list[tuple[str, int]]) -> None:
    """Replays any story beside an independent record of what the rule demands."""
    state, now = Arming(), 0.0
    card: str | None = None
    frame: int | None = None
    seen_at: float | None = None
    last_key = float("-inf")
    spent = False
    for what, n in steps:
        match what:
            case "wait":
                now += n / 10
            case "select":
                name = f"c{n}"
                if name != card:
                    card, frame, seen_at, spent = name, None, None, False
                state = state.select(name)
            case "disarm":
                frame = seen_at = None
                state = state.disarm()
            case "framed":
                if card is not None and frame is None:
                    frame = n
                state = state.framed(card or "", n)
            case "wrote":
                if frame is not None and n >= frame and seen_at is None:
                    seen_at = now
                state = state.wrote(n, 0, now)
            case "paste":
                last_key = now
                state = state.paste(now)
            case _:
                backlog = 500 * n
                fair = (
                    card is not None
                    and not spent
                    and seen_at is not None
                    and backlog == 0
                    and max(seen_at, last_key) + QUIET_SECONDS <= now
                )
                if backlog:
                    seen_at = None
                last_key = now
                state, granted = state.key(now, backlog).take(card)
                assert granted == fair
                if granted:
                    spent, frame, seen_at = True, None, None
