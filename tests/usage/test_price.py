from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.config.sections.models import Cost
from claw_engine.messages import Usage
from claw_engine.shapes import read
from claw_engine.usage.price import KINDS, at_least, cost_of, costs_of
from tests.usage.samples import PRICES


@pytest.mark.parametrize(
    ("usage", "prices", "cost"),
    [
        (Usage(1_000_000, 0), PRICES, 3.0),
        (Usage(0, 2_000_000), PRICES, 30.0),
        (Usage(100, 50, 1000, 10), PRICES, (300 + 750 + 300 + 37.5) / 1e6),
        (Usage(100, 50), None, None),
        (Usage(100, 50), {"input": 3.0}, None),  # the output's price is not known
        (Usage(100, 0), {"input": 3.0}, 300 / 1e6),
        (Usage(100, 5, 20), {"input": 3.0, "output": 15.0}, None),  # nobody guesses a cache's
        (Usage(0, 0), {}, 0.0),
    ],
)
def test_costs(usage: Usage, prices: dict[str, float] | None, cost: float | None) -> None:
    found = cost_of(usage, prices)
    assert found == (cost if cost is None else pytest.approx(cost))


@given(st.tuples(*[st.integers(0, 10**9)] * 4), st.tuples(*[st.floats(0, 1000)] * 4))
def test_a_cost_is_the_sum_of_its_four_parts(
    tokens: tuple[int, ...], prices: tuple[float, ...]
) -> None:
    table = dict(zip(KINDS, prices, strict=True))
    whole = cost_of(Usage(*tokens), table)
    parts = [cost_of(Usage(**{kind: n}), table) for kind, n in zip(KINDS, tokens, strict=True)]
    assert whole == pytest.approx(sum(part or 0.0 for part in parts))
    assert whole is not None
    assert whole >= 0


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ({"input": 3, "output": 15}, {"input": 3.0, "output": 15.0}),
        ({"input": 0, "output": 0}, dict.fromkeys(KINDS, 0.0)),  # a model at home is free
        ({"input": 3, "output": 15, "cacheRead": 0}, {"input": 3, "output": 15, "cache_read": 0}),
        ({}, {}),
    ],
)
def test_only_prices_that_were_given_are_known(
    written: dict[str, float], known: dict[str, float]
) -> None:
    assert read(Cost, written).prices() == known


def test_costs_by_the_transcripts_names() -> None:
    found = costs_of(Usage(100, 50, 1000, 10), PRICES)
    assert found == pytest.approx({
        "input": 300e-6, "output": 750e-6, "cacheRead": 300e-6, "cacheWrite": 37.5e-6,
        "total": 1387.5e-6,
    })  # fmt: skip
    assert costs_of(Usage(100, 50), {"input": 3.0}) is None


def test_the_least_a_call_costs_is_its_input() -> None:
    assert at_least(1_000_000, PRICES) == 3.0
    assert at_least(1_000_000, None) is None
