from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.tools.edits import BOM, EditRefused, replace_once


@pytest.mark.parametrize(
    ("original", "old", "new", "text", "line"),
    [
        ("a\nb\nc\n", "b", "B", "a\nB\nc\n", 2),
        ("a\nb\nc\n", "b\nc", "", "a\n\n", 2),
        ("a\r\nb\r\n", "a\nb", "x\ny", "x\r\ny\r\n", 1),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n", 2),
        ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n", 1),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n", 1),
        (BOM + "a\nb\n", "a", "x", BOM + "x\nb\n", 1),
        (BOM + "a\n", BOM + "a", BOM + "x", BOM + "x\n", 1),
        ("$1 \\g<0>", "$1", "\\1", "\\1 \\g<0>", 1),
    ],
)
def test_the_only_occurrence_is_replaced(
    original: str, old: str, new: str, text: str, line: int
) -> None:
    edited = replace_once(original, old, new)
    assert (edited.text, edited.line) == (text, line)


@pytest.mark.parametrize(
    ("original", "old", "words"),
    [
        ("x\ny\nx\nx\n", "x", ["3 times", "lines 1, 3, 4"]),
        ("aaa", "aa", ["2 times"]),
        ("def f():\n    return 1\n", "def f():\n  return 1", ["first line occurs at line 1"]),
        ("colour = red\n", "color = red", ["nearest line is 1", "colour = red"]),
        ("abc\n", "zzz qqq", ["not found", "Read the file again"]),
        ("abc\n", "", ["oldText is empty"]),
        ("abc\n", "  \n ", ["only white space"]),
    ],
)
def test_what_cannot_be_replaced_is_explained(original: str, old: str, words: list[str]) -> None:
    with pytest.raises(EditRefused) as refused:
        replace_once(original, old, "new")
    for word in words:
        assert word in str(refused.value)


def test_no_change_is_refused() -> None:
    with pytest.raises(EditRefused, match="nothing would change"):
        replace_once("abc", "b", "b")


@given(st.text(), st.text(min_size=1), st.text())
def test_an_edit_changes_one_place_and_can_be_undone(before: str, old: str, after: str) -> None:
    original = before + old + after
    marker = "\N{SNOWMAN}unlikely"
    if original.count(old) != 1 or marker in original or "\r" in original:
        return
    try:
        edited = replace_once(original, old, marker)
    except EditRefused:
        return
    assert edited.text.replace(marker, old) == original
