from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from claw_tui import cli
from claw_tui.store.sanitize import line
from claw_tui.widgets.plainglyphs import SIGNS, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [("╭─ Lanes ─╮", "+- Lanes -+"), ("⏸ 2 wait", "# 2 wait"), ("漢字", "????"), ("é", "?")],
)
def test_signs(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text())
def test_width_stays(raw: str) -> None:
    text = line(raw)
    assert plain(text).isascii()
    assert cell_len(plain(text)) == cell_len(text)


def test_every_sign_is_one_cell() -> None:
    assert all(cell_len(chr(code)) == 1 and len(str(sign)) == 1 for code, sign in SIGNS.items())


@pytest.mark.parametrize(
    ("env", "encoding"),
    [
        ({}, "UTF-8"),
        ({"LANG": "C"}, "ascii"),
        ({"LANG": "C.UTF-8"}, "UTF-8"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "ascii"),
        ({"LC_ALL": "POSIX"}, "ascii"),
        ({"LANG": "de_DE.ISO-8859-1@euro"}, "ISO-8859-1"),
        ({"LANG": "en_US"}, "utf-8"),
        ({"LANG": "C", "LC_ALL": "en_GB.utf8"}, "utf8"),
    ],
)
def test_the_locale_decides(env: dict[str, str], encoding: str) -> None:
    assert cli.locale_encoding(env) == encoding
