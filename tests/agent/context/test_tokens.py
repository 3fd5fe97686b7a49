"""Estimates against a real tokenizer, on texts that the estimator was not fitted to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.agent.context import tokens
from claw_engine.agent.context.tokens import estimate
from tests.support.fit_tokens import EXPECTED, texts
from tests.support.tokenizer import real

WITHIN = 0.10


@pytest.mark.parametrize("name", sorted(texts("checking")))
def test_an_estimate_is_within_a_tenth_of_a_real_tokenizer(name: str) -> None:
    text = texts("checking")[name]
    counted = real(text)
    assert abs(estimate(text) / counted - 1) <= WITHIN, (name, estimate(text), counted)


def test_there_are_ten_calibrating_texts_and_none_of_them_is_checked() -> None:
    fitted, checked = texts("calibrating"), texts("checking")
    assert len(fitted) == 10
    assert {"english", "code", "json", "chinese"} <= checked.keys()
    # What was fitted may not be checked, not even a paragraph of it.
    lines = {line for text in fitted.values() for line in text.splitlines() if len(line) > 40}
    assert not lines & {line for text in checked.values() for line in text.splitlines()}


def test_four_characters_a_token_would_miss_chinese_by_far() -> None:
    text = texts("checking")["chinese"]
    assert len(text) / 4 < 0.5 * real(text)


@pytest.mark.parametrize("name", sorted(texts("checking")))
def test_a_long_text_is_judged_by_slices_just_as_well(name: str) -> None:
    text = texts("checking")[name]
    long = text * (3 * tokens.SAMPLE_OVER // len(text) + 1)
    assert abs(estimate(long) / (estimate(text) * len(long) / len(text)) - 1) < 0.05


def test_the_table_has_every_pattern_of_the_fit() -> None:
    assert tokens.WEIGHTS.keys() == EXPECTED.keys()


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("", 0, 0), ("a", 1, 1), ("明天下午三点", 4, 6), ("привет", 2, 3), ("42", 1, 2),
     ("\ud800", 1, 3), ("hello world", 2, 3)],
)  # fmt: skip
def test_small_texts(text: str, least: int, most: int) -> None:
    assert least <= estimate(text) <= most


@given(st.text(alphabet=st.characters(codec=None), max_size=300))
def test_any_text_has_an_estimate(text: str) -> None:
    assert (estimate(text) == 0) == (not text)
    assert estimate(text) <= 2 + 3 * len(text)
