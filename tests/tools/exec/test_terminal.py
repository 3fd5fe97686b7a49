"""What the terminal behind a command answers, however its output is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.tools.exec.terminal import Terminal

QUESTIONS = [
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[?6n", b"\x1b[?1;1R"),
    (b"\x1b[5n", b"\x1b[0n"),
    (b"a\x1b[6nb\x1b[6n", b"\x1b[1;1R\x1b[1;1R"),
    (b"\x1b[7n\x1b[16n\x1b[m plain", b""),
]


@pytest.mark.parametrize(("written", "answer"), QUESTIONS)
def test_questions(written: bytes, answer: bytes) -> None:
    assert Terminal().feed(written) == answer


def test_modes_follow_the_program() -> None:
    terminal = Terminal()
    terminal.feed(b"\x1b[?1h\x1b[?2004h")
    assert terminal.application_keys and terminal.bracketed_paste
    terminal.feed(b"\x1b[?1l")
    assert not terminal.application_keys and terminal.bracketed_paste


PIECES = st.sampled_from(
    [b"\x1b[6n", b"\x1b[?6n", b"\x1b[5n", b"\x1b[?1h", b"\x1b[?2004h", b"\x1b[?2004l", b"\x1b",
     b"\x1b[", b"x", b"\x1b[31m", b"6n"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map(b"".join), st.data())
def test_cuts_change_nothing(written: bytes, data: st.DataObject) -> None:
    whole, cut = Terminal(), Terminal()
    expected = whole.feed(written)
    answers, rest = b"", written
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        answers += cut.feed(rest[:size])
        rest = rest[size:]
    assert answers == expected
    assert cut.application_keys == whole.application_keys
    assert cut.bracketed_paste == whole.bracketed_paste
