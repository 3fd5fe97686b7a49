from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from claw_tui.store.sanitize import ascii_only, line, pasted, reveal, reveal_line, tame

READ = [
    ("plain text", "plain text"),
    ("two\nlines", "two\nlines"),
    ("a\tb", "a   b"),
    ("\x1b[31mred", "␛[31mred"),
    ("del\x7f", "del␡"),
    ("a\u202egnp.exe", "a⟪U+202E⟫gnp.exe"),
    ("zero\u200bwidth", "zero⟪U+200B⟫width"),
    ("\ufeffbom", "⟪U+FEFF⟫bom"),
    ("c1\x9b31m", "c1⟪U+009B⟫31m"),
    ("warn ⚠\ufe0f", "warn ⚠"),
    ("👨\u200d👩\u200d👧", "👨👩👧"),
    ("👍🏽", "👍"),
    ("🇩🇪", "DE"),
    ("1\ufe0f\u20e3", "1"),
    ("か\u3099", "が"),
    ("tag\U000e0041", "tag⟪U+E0041⟫"),
    ("lone\ud800", "lone⟪U+D800⟫"),
    ("win\r\nlines", "win\nlines"),
    ("over\rwrite", "over␍write"),
    ("z" + "\u0301" * 9, "ź" + "\u0301" * 3),
]


@pytest.mark.parametrize(("raw", "shown"), READ)
def test_text_to_read_shows_what_hides(raw: str, shown: str) -> None:
    assert tame(raw) == shown


DECIDE = [
    ("rm -rf build", "rm -rf build"),
    ("a\tb", "a␉b"),
    ("rm\u00a0-rf", "rm⟪U+00A0⟫-rf"),
    ("ls ⚠\ufe0f", "ls ⚠⟪U+FE0F⟫"),
    ("a\u200db", "a⟪U+200D⟫b"),
    ("x\u3164y", "x⟪U+3164⟫y"),
    ("echo \u2800", "echo ⟪U+2800⟫"),
    ("cat \u202efdp.sh\u202c", "cat ⟪U+202E⟫fdp.sh⟪U+202C⟫"),
    ("two\nlines", "two\nlines"),
]


@pytest.mark.parametrize(("raw", "shown"), DECIDE)
def test_text_to_decide_about_hides_nothing(raw: str, shown: str) -> None:
    assert reveal(raw) == shown


def test_one_line_forms_show_the_break() -> None:
    assert line("a\nb") == "a⏎b"
    assert reveal_line("a\nb") == "a⏎b"


def test_paste_keeps_newlines_and_drops_controls() -> None:
    assert pasted("a\r\nb\x1b[201~\tc\x00") == "a\nb[201~\tc"


def test_ascii_fallback_has_one_sign_per_character() -> None:
    assert ascii_only("aé漢") == "a??"


@given(st.text())
def test_nothing_that_moves_the_cursor_survives(raw: str) -> None:
    for shown in (line(raw), reveal_line(raw)):
        assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in shown)
        assert not any(c in shown for c in "\u202a\u202b\u202d\u202e\u2066\u2067\u200b\u200f")


@given(st.text())
def test_width_of_tame_text_is_the_sum_of_its_characters(raw: str) -> None:
    shown = line(raw)
    assert cell_len(shown) == sum(cell_len(c) for c in shown)
