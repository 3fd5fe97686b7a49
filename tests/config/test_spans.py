from __future__ import annotations

import json

import pyjson5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.config.edit import EditError, set_value
from claw_engine.config.spans import ScanError, line_column, scan

NAMES = st.text(st.characters(codec="utf-8"), max_size=6)
SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | NAMES
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)
BLANKS = st.sampled_from(["", " ", "\n", "\t", "// c, { [ ' \"\n", "/* } ] , */", "\ufeff", "\r\n"])


@st.composite
def json5_texts(draw: st.DrawFn, value: object = None) -> str:
    """The same value written in one of JSON5's many ways."""
    return draw(BLANKS) + draw(written(draw(VALUES))) + draw(BLANKS)


@st.composite
def written(draw: st.DrawFn, value: object) -> str:
    def blank() -> str:
        return draw(BLANKS)

    def items(parts: list[str]) -> str:
        text = ",".join(blank() + part + blank() for part in parts)
        return text + (draw(st.sampled_from(["", ","])) if parts else "")

    if isinstance(value, dict):
        members = [
            draw(written_key(key)) + blank() + ":" + blank() + draw(written(item))
            for key, item in value.items()
        ]
        return "{" + items(members) + blank() + "}"
    if isinstance(value, list):
        return "[" + items([draw(written(item)) for item in value]) + blank() + "]"
    if isinstance(value, str):
        return draw(written_string(value))
    return json.dumps(value)


@st.composite
def written_string(draw: st.DrawFn, value: str) -> str:
    double = json.dumps(value, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()) or "'" in value or "\\" in double:
        return double
    return "'" + double[1:-1] + "'"


@st.composite
def written_key(draw: st.DrawFn, key: str) -> str:
    if key.isascii() and key.isidentifier() and draw(st.booleans()):
        return key
    return draw(written_string(key))


def leaves(
    value: object, path: tuple[str | int, ...] = ()
) -> list[tuple[tuple[str | int, ...], object]]:
    found = [(path, value)]
    if isinstance(value, dict):
        for key, item in value.items():
            found += leaves(item, (*path, key))
    if isinstance(value, list):
        for index, item in enumerate(value):
            found += leaves(item, (*path, index))
    return found


@given(json5_texts())
def test_every_span_holds_exactly_the_value_of_its_path(text: str) -> None:
    spans = scan(text)
    expected = leaves(pyjson5.decode(text))
    assert set(spans.spans) == {path for path, _ in expected}
    for path, value in expected:
        span = spans.spans[path]
        assert pyjson5.decode(text[span.start : span.end]) == value


@given(json5_texts(), st.lists(st.sampled_from(["a", "gateway", "x y"]), min_size=1, max_size=3))
def test_set_value_changes_one_value_and_keeps_the_rest(text: str, steps: list[str]) -> None:
    """CF-01: a rewrite keeps every other key."""
    before = pyjson5.decode(text)
    path = tuple(steps)
    try:
        after = pyjson5.decode(set_value(text, path, {"new": [1, "\u00e4"]}))
    except EditError:
        return
    expected = json.loads(json.dumps(before))
    holder = expected
    for step in path[:-1]:
        holder = holder.setdefault(step, {})
    holder[path[-1]] = {"new": [1, "\u00e4"]}
    assert after == expected


@pytest.mark.parametrize(
    ("text", "path", "value", "expected"),
    [
        ("", ("a",), 1, '{\n  "a": 1\n}\n'),
        ("{}", ("a", "b"), 1, '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("{ a: 1 }", ("b",), 2, "{ a: 1, b: 2 }"),
        ("{a: 1/* x */}/* y */", ("b",), 2, "{a: 1, b: 2/* x */}/* y */"),
        ("{ a: 1, }", ("b",), 2, "{ a: 1, b: 2, }"),
        ("{\n  a: 1 // why\n}", ("b",), 2, "{\n  a: 1, // why\n  b: 2\n}"),
        ("{\n  a: 1, // why\n  // end\n}", ("b",), 2, "{\n  a: 1, // why\n  b: 2,\n  // end\n}"),
        ("{a: 'x' /* keep */, b: 2}", ("a",), "y", '{a: "y" /* keep */, b: 2}'),
        ("{\n// only a comment\n}", ("a",), 1, '{\n// only a comment\n  "a": 1\n}'),
        (
            "{\n  gateway: {\n    port: 1\n  }\n}",
            ("gateway", "auth", "token"),
            "t",
            '{\n  gateway: {\n    port: 1,\n    auth: {\n      "token": "t"\n    }\n  }\n}',
        ),
    ],
)
def test_an_edit_keeps_comments_and_layout(
    text: str, path: tuple[str, ...], value: object, expected: str
) -> None:
    assert set_value(text, path, value) == expected


def test_an_edit_through_a_scalar_is_refused() -> None:
    with pytest.raises(EditError, match="gateway is not an object"):
        set_value("{gateway: 1}", ("gateway", "port"), 1)


@pytest.mark.parametrize(
    ("text", "words", "line", "column"),
    [
        ('{ "agents": {', "object opened here is never closed", 1, 13),
        ("{\n  a: [1, 2\n}", "comma or ] is missing", 3, 1),
        ("{\n  a: 1\n  b: 2\n}", "comma or } is missing", 3, 3),
        ("{a: 'x\n}", "string that starts here never ends", 1, 5),
        ("{a: /* x", "comment that starts here never ends", 1, 5),
        ("{a 1}", "colon is missing", 1, 3),
        ("{a: 1} }", "more text after", 1, 8),
        ("{a: 1,, b: 2}", "expected a key", 1, 7),
    ],
)
def test_a_broken_text_says_where(text: str, words: str, line: int, column: int) -> None:
    with pytest.raises(ScanError, match=words.replace("[", r"\[").replace("}", r"\}")) as caught:
        scan(text)
    assert line_column(text, caught.value.offset) == (line, column)


def test_a_repeated_key_counts_as_its_last() -> None:
    spans = scan("{a: {old: 1}, a: {new: 2}}")
    assert set(spans.spans) == {(), ("a",), ("a", "new")}


def test_crlf_and_cr_count_as_one_line_end() -> None:
    assert line_column("a\r\nb\rc", 5) == (3, 1)
