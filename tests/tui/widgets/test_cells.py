from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from claw_tui.store.sanitize import tame
from claw_tui.widgets.cells import clip, clip_left, pad, row, wrap
from claw_tui.widgets.flow import Flow

TEXT = st.text(st.sampled_from("abc de漢字が⚠ｶﾞ\n  —"), max_size=120)


@pytest.mark.parametrize(
    ("text", "width", "out"),
    [
        ("abcdef", 4, "abc…"),
        ("漢字漢字", 5, "漢字…"),
        ("漢字漢字", 4, "漢…"),
        ("ab", 2, "ab"),
        ("ab", 0, ""),
    ],
)
def test_clip_cuts_on_cell_boundaries(text: str, width: int, out: str) -> None:
    assert clip(text, width) == out


def test_clip_left_keeps_the_end_of_a_path() -> None:
    assert clip_left("/volume1/backup/old", 8) == "…kup/old"


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("漢字漢字", 5, ["漢字", "漢字"]),
        ("漢" * 39 + "a" + "漢", 80, ["漢" * 39 + "a", "漢"]),
        ("a\n\nb", 5, ["a", "", "b"]),
        ("", 5, [""]),
    ],
)
def test_wrap(text: str, width: int, rows: list[str]) -> None:
    assert wrap(text, width) == rows


@given(TEXT, st.integers(2, 30))
def test_wrapped_lines_fit_and_lose_only_spaces(raw: str, width: int) -> None:
    text = tame(raw)
    rows = wrap(text, width)
    assert all(cell_len(line) <= width for line in rows)
    assert "".join(rows).replace(" ", "") == text.replace("\n", "").replace(" ", "")


@given(st.lists(TEXT, max_size=12), st.integers(4, 30))
def test_growing_text_wraps_as_if_it_had_come_at_once(deltas: list[str], width: int) -> None:
    flow = Flow(width)
    for delta in deltas:
        flow.feed(delta)
    assert all(cell_len(line) <= width for line in flow.rows)
    whole = "".join(map(tame, deltas))
    assert "".join(flow.rows).replace(" ", "") == whole.replace("\n", "").replace(" ", "")


@given(TEXT, TEXT, st.integers(4, 60))
def test_a_row_is_exactly_as_wide_as_asked(left: str, right: str, width: int) -> None:
    style = Style.null()
    strip = row(width, [(left.replace("\n", ""), style)], [(right.replace("\n", ""), style)])
    assert cell_len(strip.text) == width


@given(TEXT, st.integers(1, 20))
def test_pad_is_exact(text: str, width: int) -> None:
    assert cell_len(pad(text.replace("\n", " "), width)) == width
