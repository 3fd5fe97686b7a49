from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.tools.exec.output import Cleaner, Live, Tail, overwrite
from tests.support.fakes import FakeClock


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        ("grüße 日本 🦞".encode(), "grüße 日本 🦞"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07x\x1b]8;;http://e\x1b\\link", "xlink"),
        (b"\x1bPpayload\x1b\\x", "x"),
        (b"\x1b(Bx\x1b=y\x1bMz", "xyz"),
        (b"a\x00b\x07c\x7f", "a\u2400b\u2407c\u2421"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\xc2\x9b31mx", "x"),
        (b"\x1b", "\u241b"),
        (b"\x1b[12", "\u241b[12"),
        (b"\r\n", "\r\n"),
    ],
)
def test_bytes_become_harmless_text(data: bytes, text: str) -> None:
    cleaner = Cleaner()
    assert cleaner.feed(data) + cleaner.feed(b"", final=True) == text


PIECES = st.lists(
    st.sampled_from(
        [
            b"a",
            b"\n",
            b"\x1b[31m",
            b"\x1b]0;t\x07",
            b"\xf0\x9f\xa6\x9e",
            b"\xff",
            b"\x00",
            b"\x1b(",
            b"\x1b",
            b"\\",
            b"[",
            b"]",
            b" ",
            b"\xc2\x9b",
            b"3",
        ]
    )
)


@given(PIECES, st.integers(1, 5))
def test_where_the_pieces_are_cut_does_not_matter(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    whole, split = Cleaner(), Cleaner()
    expected = whole.feed(data) + whole.feed(b"", final=True)
    cut = [split.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert "".join(cut) + split.feed(b"", final=True) == expected


@given(st.binary())
def test_no_control_character_comes_through(data: bytes) -> None:
    cleaner = Cleaner()
    text = cleaner.feed(data) + cleaner.feed(b"", final=True)
    assert not [c for c in text if (ord(c) < 32 and c not in "\t\n\r") or 127 <= ord(c) < 160]


def test_an_endless_sequence_is_not_held_back_for_ever() -> None:
    cleaner = Cleaner()
    shown = sum(len(cleaner.feed(b"\x1b]0;" if i == 0 else b"x" * 1000)) for i in range(10))
    assert shown > 5000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10%\r20%\r100%\ndone\n", "100%\ndone\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\r\r\nb", "a\nb"),
        ("half\r", "half\r"),
        ("x\rlonger\ry", "y"),
    ],
)
def test_of_a_rewritten_line_the_last_state_stays(text: str, expected: str) -> None:
    assert overwrite(text) == expected


@given(st.text("ab\r\n", max_size=60), st.integers(1, 7))
def test_progress_lines_do_not_depend_on_cuts(text: str, size: int) -> None:
    whole, split = Tail(), Tail()
    whole.append(text)
    for at in range(0, len(text), size):
        split.append(text[at : at + size])
    assert split.text() == whole.text()


@given(st.lists(st.text("abc\n", max_size=50)), st.integers(1, 40))
def test_a_tail_keeps_the_end_and_counts_the_rest(pieces: list[str], limit: int) -> None:
    tail = Tail(limit)
    for piece in pieces:
        tail.append(piece)
    whole = "".join(pieces)
    assert tail.text() == whole[-limit:]
    assert tail.left_out == max(0, len(whole) - limit)


def test_a_progress_bar_does_not_push_out_what_came_before() -> None:
    tail = Tail(100)
    tail.append("important\n")
    for step in range(10_000):
        tail.append(f"\r{step:5} of 10000")
    assert tail.text() == "important\n 9999 of 10000"


async def test_first_output_is_live_at_once_and_the_rest_at_most_20_times_a_second() -> None:
    clock = FakeClock()
    emitted: list[tuple[float, str]] = []
    live = Live(clock, lambda text: emitted.append((clock.monotonic(), text)))
    live.append("first")
    assert emitted == [(0.0, "first")]
    for number in range(100):
        live.append(f"\n{number}")
        await clock.advance(0.01)
    live.close()
    assert "".join(text for _, text in emitted) == "first" + "".join(f"\n{n}" for n in range(100))
    assert len(emitted) <= 22


async def test_a_flood_is_cut_live_and_said_to_be() -> None:
    clock = FakeClock()
    emitted: list[str] = []
    live = Live(clock, emitted.append)
    live.append("start\n")
    for _ in range(100):
        live.append("x" * 63 + "\n" * 1 + "y" * 64 * 1024)
    await clock.advance(0.05)
    assert len(emitted) == 2
    assert len(emitted[1]) < 9000
    assert "characters not shown live" in emitted[1]


async def test_live_progress_starts_a_new_line_each_time() -> None:
    clock = FakeClock()
    emitted: list[str] = []
    live = Live(clock, emitted.append)
    for step in ("10%", "\r20%", "\r30%", "\rdone\n", "next"):
        live.append(step)
        await clock.advance(0.06)
    live.close()
    assert emitted == ["10%", "\n20%", "\n30%", "\ndone\n", "next"]


async def test_nothing_is_left_behind_after_close() -> None:
    clock = FakeClock()
    emitted: list[str] = []
    live = Live(clock, emitted.append)
    live.append("a")
    live.append("b")
    live.close()
    assert emitted == ["a", "b"]
    assert clock.waiting == 0
