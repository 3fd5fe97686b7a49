"""Comparing two bodies, hiding and searching: tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.config.redact import Redactor
from claw_engine.trace.compare import LINE_CHARS, Side, line_diff, pairs
from claw_engine.trace.shown import diffs, search, values


def sides(text: str) -> list[Side]:
    """`a1 b2`: part a with text 1, part b with text 2."""
    return [Side(word[0], "user", word[1:].encode()) for word in text.split()]


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ("a1 b2", "a1 b2", "same:a same:b"),
        ("a1 b2", "a1 b3", "same:a changed:b"),
        ("a1", "a1 b2", "same:a added:b"),
        ("a1 b2 c3", "a1 c3", "same:a removed:b same:c"),
        ("a1 b2", "c3", "removed:a removed:b added:c"),
        ("a1", "", "removed:a"),
        ("", "", ""),
        ("x1 y2", "p1 q2", "same:p same:q"),  # another talk with the same texts
        ("x1 x2", "x2", "removed:x same:x"),
    ],
)
def test_pairs(a: str, b: str, wanted: str) -> None:
    old, new = sides(a), sides(b)
    found = []
    for pair in pairs(old, new):
        side = new[pair.b] if pair.b is not None else old[pair.a or 0]
        found.append(f"{pair.state}:{side.id}")
    assert " ".join(found) == wanted


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("123")), max_size=12),
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("123")), max_size=12),
)
def test_every_part_stands_in_one_pair(a: list[tuple[str, str]], b: list[tuple[str, str]]) -> None:
    old, new = ([Side(i, "user", h.encode()) for i, h in side] for side in (a, b))
    found = pairs(old, new)
    assert sorted(p.a for p in found if p.a is not None) == list(range(len(old)))
    assert [p.b for p in found if p.b is not None] == list(range(len(new)))
    for pair in found:
        if pair.a is not None and pair.b is not None:
            assert (old[pair.a].hash == new[pair.b].hash) == (pair.state == "same")
        else:
            assert pair.state == ("added" if pair.a is None else "removed")


@given(st.text("ab\n", max_size=60), st.text("ab\n", max_size=60))
def test_a_diff_tells_both_texts(a: str, b: str) -> None:
    lines, more = line_diff(a, b, 1000)
    assert not more
    gaps = any(sign == "@" for sign, _ in lines)
    if not gaps:
        assert [text for sign, text in lines if sign in " -"] == a.splitlines()
        assert [text for sign, text in lines if sign in " +"] == b.splitlines()


def test_a_diff_of_a_long_text_is_short() -> None:
    a = [f"line {n}" for n in range(5000)]
    b = [*a[:2500], "new", *a[2501:]]
    lines, more = line_diff("\n".join(a), "\n".join(b), 100)
    assert not more
    assert lines[0] == ("@", "2497 lines")
    assert ("-", "line 2500") in lines and ("+", "new") in lines
    assert len(lines) == 10


def test_texts_with_nothing_in_common_take_no_time() -> None:
    a, b = ("\n".join(f"{sign}{n}" for n in range(5000)) for sign in "ab")
    lines, more = line_diff(a, b, 20)
    assert more and len(lines) == 20


def test_a_very_long_line_is_cut() -> None:
    ((sign, text),) = line_diff("", "x" * 5000, 10)[0]
    assert (sign, len(text)) == ("+", LINE_CHARS + 1)


def test_secrets_are_hidden_before_comparing() -> None:
    redactor = Redactor(["first-secret", "other-secret"])
    lines, cut = diffs([("key first-secret", "key other-secret"), ("a", "b")], redactor, 50)
    assert lines == [[(" ", "key ***")], [("-", "a"), ("+", "b")]] or lines[0] == []
    assert not cut
    assert diffs([("a\nb", "c\nd"), ("a", "b")], redactor, 3)[1]


def test_values_hide_by_name_and_by_shape() -> None:
    found = values(
        {"password": "hunter2", "n": 3, "list": ["Bearer abcdefghijklmnopqrstuv"], "t": None},
        Redactor(),
    )
    assert found == {"password": "***", "n": 3, "list": ["Bearer ***"], "t": None}


def test_search_counts_all_and_shows_some() -> None:
    texts = ["Straße STRASSE", "none", "abc ABC aBc"]
    found, total, places = search(texts, "abc", Redactor(), 2)
    assert (total, places) == (3, 1)
    assert [(match.place, match.offset, match.match) for match in found] == [
        (2, 0, "abc"), (2, 4, "ABC"),
    ]  # fmt: skip
    assert found[1].before == "abc " and found[1].after == " aBc"
    assert search(["İstanbul and İzmir"], "and", Redactor(), 9)[0][0].offset == 9
