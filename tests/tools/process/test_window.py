"""Which lines `log` shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.tools.process.window import window

TEN = "".join(f"{n}\n" for n in range(10))

TABLE = [
    (None, None, 0, 10, ""),
    (None, 3, 7, 3, "[… lines 8-10 of 10. Use offset and limit for earlier ones.]"),
    (2, 3, 2, 3, "[… lines 3-5 of 10. Use offset=5 to continue.]"),
    (8, None, 8, 2, "[… lines 9-10 of 10. Use offset and limit for earlier ones.]"),
    (50, 5, 10, 0, "[… no line of 10. Use offset and limit for earlier ones.]"),
    (0, 100, 0, 10, ""),
]


@pytest.mark.parametrize(("offset", "limit", "first", "count", "note"), TABLE)
def test_windows(offset: int | None, limit: int | None, first: int, count: int, note: str) -> None:
    shown = window(TEN, offset, limit)
    assert (shown.first, shown.count, shown.total, shown.note) == (first, count, 10, note)
    assert shown.text == "\n".join(str(n) for n in range(first, first + count))


def test_without_a_wish_the_last_200_lines() -> None:
    shown = window("".join(f"{n}\n" for n in range(1000)))
    assert (shown.first, shown.count) == (800, 200)
    assert shown.text.startswith("800\n") and shown.text.endswith("\n999")


@given(st.lists(st.text("ab", max_size=3), max_size=30), st.integers(1, 7))
def test_paging_through_shows_every_line_once(lines: list[str], limit: int) -> None:
    text = "".join(f"{line}\n" for line in lines)
    found: list[str] = []
    offset = 0
    while True:
        shown = window(text, offset, limit)
        if not shown.count:
            break
        found += shown.text.split("\n")
        offset += shown.count
    assert found == lines
