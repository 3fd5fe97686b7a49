"""Numbers of the tool result guard (agent digest §3.5) and token estimates."""

from __future__ import annotations

import pytest

from claw_engine.agent.context.guard import CLEARED, TRUNCATED, fit, single_limit, truncate
from claw_engine.models.base import Turn
from claw_engine.parts import Part, PartKind


def turn(role: str, text: str) -> Turn:
    part = Part("p", PartKind.USER, "s", text)
    return Turn(role, (part,), tool_call_id="t" if role == "tool" else "")  # type: ignore[arg-type]  # a table of roles


@pytest.mark.parametrize(("window", "limit"), [(200_000, 100_000), (16_000, 8_000), (100, 512)])
def test_one_result_may_weigh_half_the_window(window: int, limit: int) -> None:
    assert single_limit(window) == limit


def test_a_result_above_the_limit_is_shortened_and_one_at_the_limit_is_not() -> None:
    fits, long = turn("tool", "x" * 8_000), turn("tool", "x" * 8_001)
    fitted = fit([fits, long], 16_000)
    assert fitted.truncated == 1
    assert fitted.turns[0] is fits
    assert len(fitted.turns[1].parts[0].text) == 8_000
    assert fitted.turns[1].parts[0].text.endswith(TRUNCATED)


def test_a_cut_ends_at_a_line_when_one_is_near() -> None:
    text = "a" * 80 + "\n" + "b" * 100
    assert truncate(text, 100 + len(TRUNCATED)) == "a" * 80 + TRUNCATED
    early = "a" * 10 + "\n" + "b" * 200
    assert truncate(early, 100 + len(TRUNCATED)) == early[:100] + TRUNCATED
    assert truncate("short", 100) == "short"


def test_old_results_go_first_until_it_fits() -> None:
    # budget 16000 * 4 * 0.75 = 48000 characters, results count double
    turns = [turn("user", "q"), *(turn("tool", "x" * 7_000) for _ in range(5)), turn("user", "z")]
    fitted = fit(turns, 16_000)
    texts = [t.parts[0].text for t in fitted.turns]
    assert fitted.cleared == 2
    assert texts[1:3] == [CLEARED, CLEARED]
    assert texts[3] == "x" * 7_000
    assert turns[1].parts[0].text == "x" * 7_000  # the caller's turns stay as they were


def test_fixed_text_counts_too() -> None:
    turns = [turn("user", "q"), turn("tool", "x" * 7_000)]
    assert fit(turns, 16_000).cleared == 0
    assert fit(turns, 16_000, fixed_chars=40_000).cleared == 1


def test_whole_turns_are_left_out_from_the_oldest_user_turn_on() -> None:
    turns = []
    for n in range(10):
        turns += [turn("user", f"{n}"), turn("assistant", "词" * 4_000)]
    fitted = fit(turns, 16_000)
    assert fitted.left_out == 14  # 30000 tokens down to 9600 = three exchanges
    assert fitted.turns[0].parts[0].text == "7"


def test_the_newest_message_is_never_left_out() -> None:
    turns = [turn("user", "old"), turn("user", "词" * 50_000)]
    assert fit(turns, 16_000).turns == turns[1:]
