from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.models.arguments import is_json_object, parse_arguments, replay_arguments


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", {}),
        ("  \n", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        (' {"a": [1, {"b": null}]}\n', {"a": [1, {"b": None}]}),
        ('{"cmd":"printf \'a\nb\'"}', {"cmd": "printf 'a\nb'"}),
        ('{"cmd":"a\tb"}', {"cmd": "a\tb"}),
        ('{"a":"\\ud83e\\udd9e"}', {"a": "🦞"}),
    ],
)
def test_pr01_arguments_that_can_be_used(raw: str, expected: dict[str, object]) -> None:
    """PR-01: nothing at all, raw control characters inside strings."""
    assert parse_arguments(raw) == (expected, "")


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ('{"path":"/n/a.md",}', "trailing commas"),
        ("just text", "not valid JSON"),
        ("[1,2]", "a list arrived"),
        ('"text"', "a string arrived"),
        ("null", "a null arrived"),
        ("true", "a boolean arrived"),
        ("7", "a number arrived"),
        ('{"a":1}{"a":1}', "exactly one JSON object"),
        ('{"a":1} and more', "exactly one JSON object"),
        ('{"cmd":"printf \'a\nb\'"', "cut off"),
        ('{"command":"rm -rf /tmp/x', "cut off"),
        ('{"command":"rm -rf /", ', "cut off"),
        ('{"command":', "cut off"),
        ('{"a":NaN}', "NaN"),
        ('{"a":"\\ud800"}', "surrogate"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"a":' + "9" * 5000 + "}", "not valid JSON"),
    ],
)
def test_pr01_arguments_that_are_answered_with_an_error(raw: str, says: str) -> None:
    """PR-01: trailing comma, text, list, two objects, cut off."""
    value, error = parse_arguments(raw)
    assert value is None
    assert says in error


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ("", "{}"),
        ("just text", "{}"),
        ('{"path":"/n/a.md",}', "{}"),
        ('{"a":"x\ny"}', '{"a": "x\\ny"}'),
    ],
)
def test_pr01_history_replays_only_json_objects(raw: str, sent: str) -> None:
    """PR-01: what is replayed."""
    assert replay_arguments(raw) == sent


@given(st.text())
def test_replay_is_an_object_whatever_came(raw: str) -> None:
    assert is_json_object(replay_arguments(raw))


@given(
    st.dictionaries(st.text(max_size=4), st.text(max_size=8), min_size=1, max_size=3),
    st.data(),
)
def test_pr01_no_cut_off_object_is_ever_accepted(
    value: dict[str, str], data: st.DataObject
) -> None:
    whole = json.dumps(value)
    cut = data.draw(st.integers(1, len(whole) - 1))
    assert parse_arguments(whole[:cut])[0] is None
