from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.config.sections.approvals import ClawSettings
from claw_engine.config.sections.budgets import Budget, BudgetsSettings
from claw_engine.shapes import Faults, read
from claw_engine.usage.budgets import (
    Limit,
    Standing,
    amount,
    limits_of,
    refusal,
    worst,
)

TOKENS = Limit("day", "2026-11-30", "tokens", 1000, "ask", (0.8,), 0.25)
MONEY = Limit("session", "s1", "cost", 2.0, "stop", (0.5, 0.9), 0.5)


@pytest.mark.parametrize(
    ("standing", "more", "over", "passed"),
    [
        (Standing(TOKENS, 0), 100, False, ()),
        (Standing(TOKENS, 699), 100, False, ()),
        (Standing(TOKENS, 700), 100, False, (0.8,)),
        (Standing(TOKENS, 900), 100, False, (0.8, 1.0)),  # exactly the limit still fits
        (Standing(TOKENS, 901), 100, True, (0.8, 1.0)),
        (Standing(TOKENS, 600, under_way=301), 100, True, (0.8, 1.0)),
        (Standing(TOKENS, 1100, granted=250), 100, False, (0.8, 1.0)),
        (Standing(TOKENS, 1200, granted=250), 100, True, (0.8, 1.0)),
        (Standing(MONEY, 1.2), 0.5, False, (0.5,)),
    ],
)
def test_where_a_budget_stands(
    standing: Standing, more: float, over: bool, passed: tuple[float, ...]
) -> None:
    assert standing.over(more) is over
    assert standing.passed(more) == passed


@given(
    spent=st.floats(0, 1e7), under_way=st.floats(0, 1e5), granted=st.floats(0, 1e6),
    more=st.floats(0, 1e6), limit=st.floats(1, 1e6), step=st.floats(0.01, 2),
)  # fmt: skip
def test_one_yes_is_enough_for_the_call_that_asked(
    spent: float, under_way: float, granted: float, more: float, limit: float, step: float
) -> None:
    standing = Standing(
        Limit("day", "d", "tokens", limit, "ask", (), step), spent, under_way, granted
    )
    if standing.over(more):
        after = Standing(standing.limit, spent, under_way, standing.next_grant(more))
        assert after.granted > granted
        slack = 1e-6 * (spent + under_way + more + limit)  # floating point
        assert spent + under_way + more <= after.allowed + slack


def test_limits_are_those_that_are_set() -> None:
    assert limits_of(BudgetsSettings(), "2026-11-30", "s1") == ()
    assert not BudgetsSettings().bind
    chosen = BudgetsSettings(session=Budget(cost=2.0, action="stop"), day=Budget(tokens=5))
    assert chosen.bind
    assert [(limit.key, limit.limit, limit.action) for limit in
            limits_of(chosen, "2026-11-30", "s1")] == [
        (("session", "s1", "cost"), 2.0, "stop"), (("day", "2026-11-30", "tokens"), 5, "ask"),
    ]  # fmt: skip


def test_what_stops_comes_before_what_asks() -> None:
    asks, stops = Standing(TOKENS, 5000), Standing(MONEY, 5.0)
    assert worst([(asks, 1), (stops, 1)]) == (stops, 1)
    assert worst([(asks, 1)]) == (asks, 1)
    warns = Standing(Limit("day", "d", "tokens", 1, "warn", (), 1), 50)
    assert worst([(warns, 1)]) is None


def test_a_refusal_says_which_budget_where_it_stands_and_how_to_raise_it() -> None:
    title, hint = refusal(Standing(TOKENS, 950, 100), 60, "2026-12-01 00:00 UTC")
    assert title == (
        "Today's budget is used up: 950 tokens of 1,000 tokens spent, 100 tokens under way, and "
        "this call needs about 60 tokens. Nothing was sent."
    )
    assert hint == (
        "Raise claw.budgets.day.tokens (claw config set claw.budgets.day.tokens 1250), or wait "
        "until 2026-12-01 00:00 UTC."
    )
    title, hint = refusal(Standing(MONEY, 2.5), 0.02, "")
    assert "this session" in title
    assert "$2.50 of $2.00" in title
    assert "/new" in hint
    assert "claw config set claw.budgets.session.cost 3.00" in hint


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1234567, "tokens", "1,234,567 tokens"), (0.00123, "cost", "$0.0012"), (0.0, "cost", "$0.00"),
     (12.5, "cost", "$12.50")],
)  # fmt: skip
def test_amounts(value: float, unit: str, text: str) -> None:
    assert amount(value, "cost" if unit == "cost" else "tokens") == text


@pytest.mark.parametrize(
    ("written", "faults"),
    [
        ({"tokens": 1000, "action": "stop", "warnAt": [0.5, 0.9], "step": 1}, 0),
        ({"cost": 2.5}, 0),
        ({"tokens": 0}, 1),
        ({"cost": -1}, 1),
        ({"action": "panic"}, 1),
        ({"warnAt": [0, 2]}, 2),
        ({"step": 0}, 1),
    ],
)
def test_the_settings(written: dict[str, object], faults: int) -> None:
    raw = {"budgets": {"day": written}}
    if not faults:
        assert read(ClawSettings, raw).budgets.day.stated == {
            "warn_at" if name == "warnAt" else name for name in written
        }
        return
    with pytest.raises(Faults) as caught:
        read(ClawSettings, raw)
    assert len(caught.value.all) == faults
