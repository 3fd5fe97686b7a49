from __future__ import annotations

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claw_engine.storage.text import to_line, to_pretty

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def refuse(constant: str) -> None:
    raise AssertionError(constant)


@settings(suppress_health_check=[HealthCheck.too_slow])  # large examples are meant
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_every_line_is_strict_json_on_one_line(value: dict[str, object]) -> None:
    line = to_line(value)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    json.loads(line.decode(), parse_constant=refuse)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_cannot_say_become_null(number: float) -> None:
    assert to_line({"a": [number, 1.5], "b": {"c": number}}) == b'{"a":[null,1.5],"b":{"c":null}}\n'


def test_a_lone_surrogate_is_escaped() -> None:
    assert to_line({"a": "\ud83d"}) == b'{"a":"\\ud83d"}\n'
    assert to_pretty({"a": "\ud83d"}) == b'{\n  "a": "\\ud83d"\n}'


def test_other_text_is_written_as_utf8() -> None:
    assert to_line({"a": "é漢😀"}) == '{"a":"é漢😀"}\n'.encode()
