"""The small guards: answer filter, frame gate, detection, writer."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_tui.terminal.detect import Colours, detect
from claw_tui.terminal.gate import STATUS_REQUEST, FrameGate
from claw_tui.terminal.input import AnswerFilter
from claw_tui.terminal.writer import TerminalWriter


@given(
    st.lists(st.sampled_from(["\x1b[0n", "a", "\x1b", "[", "\x1b[A", "0n", "y"]), max_size=12),
    st.integers(1, 5),
)
def test_answers_are_taken_out_however_the_stream_is_cut(words: list[str], size: int) -> None:
    stream = "".join(words)
    whole = AnswerFilter()
    expected, count = whole.feed(stream)
    expected += whole.flush()
    cut = AnswerFilter()
    got, seen = "", 0
    for start in range(0, len(stream), size):
        text, answers = cut.feed(stream[start : start + size])
        got, seen = got + text, seen + answers
    got += cut.flush()
    # An ESC alone at the end of a read is a key and must not wait, so a cut right behind it may
    # let an answer pass as keys; everything else is equal.
    if "\x1b" not in {
        stream[start + size - 1 : start + size] for start in range(0, len(stream), size)
    }:
        assert (got, seen) == (expected, count)
    assert len(got) + 4 * seen == len(stream)


class Wire:
    def __init__(self) -> None:
        self.sent: list[str] = []
        self.backlog = 0


def gate_on(wire: Wire) -> tuple[FrameGate, list[tuple[int, int]]]:
    gate = FrameGate()
    gate.connect(wire.sent.append, lambda: wire.backlog)
    seen: list[tuple[int, int]] = []
    gate.on_written = lambda serial, backlog: seen.append((serial, backlog))
    return gate, seen


def test_a_frame_counts_only_when_the_terminal_has_answered() -> None:
    wire = Wire()
    gate, seen = gate_on(wire)
    gate.probe()
    gate.answered()
    seen.clear()
    gate.frame_handed_over()
    gate.drained()
    assert seen == []
    gate.answered()
    assert seen == [(1, 0)]
    assert wire.sent == [STATUS_REQUEST, STATUS_REQUEST]


def test_a_terminal_that_never_answers_is_judged_by_the_writer() -> None:
    wire = Wire()
    gate, seen = gate_on(wire)
    gate.probe()
    wire.backlog = 10
    gate.frame_handed_over()
    gate.drained()
    assert seen == []
    wire.backlog = 0
    gate.drained()
    assert seen == [(1, 0)]


def test_without_a_terminal_every_frame_counts() -> None:
    gate = FrameGate()
    seen: list[int] = []
    gate.on_written = lambda serial, _backlog: seen.append(serial)
    gate.frame_handed_over()
    gate.confirm_now()
    assert seen == [1, 1]


@pytest.mark.parametrize(
    ("env", "colours"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, Colours.TRUECOLOR),
        ({"TERM": "xterm-256color"}, Colours.ANSI256),
        ({"TERM": "tmux-256color"}, Colours.ANSI256),
        ({"TERM": "screen"}, Colours.ANSI16),
        ({"TERM": "linux"}, Colours.ANSI16),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, Colours.NONE),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, Colours.ANSI256),
    ],
)
def test_colours(env: Mapping[str, str], colours: Colours) -> None:
    assert detect(env, "utf-8").colours is colours


@pytest.mark.parametrize(
    ("env", "encoding", "dumb", "ssh", "utf8", "multiplexer"),
    [
        ({"TERM": "dumb"}, "UTF-8", True, False, True, ""),
        ({}, "ANSI_X3.4-1968", True, False, False, ""),
        (
            {"TERM": "xterm", "SSH_CONNECTION": "1 2 3 4", "TMUX": "/x"},
            "utf8",
            False,
            True,
            True,
            "tmux",
        ),
        ({"TERM": "screen", "STY": "1.x"}, "iso8859-1", False, False, False, "screen"),
    ],
)
def test_surroundings(
    env: Mapping[str, str], encoding: str, dumb: bool, ssh: bool, utf8: bool, multiplexer: str
) -> None:
    terminal = detect(env, encoding)
    facts = (terminal.dumb, terminal.ssh, terminal.utf8, terminal.multiplexer)
    assert facts == (dumb, ssh, utf8, multiplexer)


def test_the_writer_never_waits_and_finishes_in_order() -> None:
    reader, writer_end = os.pipe()
    drained = threading.Event()
    writer = TerminalWriter(writer_end, on_drained=drained.set, on_lost=lambda error: None)
    writer.start()
    text = "".join(f"{n:07d}\n" for n in range(100_000))  # far more than a pipe holds
    for start in range(0, len(text), 1000):
        writer.write(text[start : start + 1000])
    assert writer.backlog > 0
    got = bytearray()
    while len(got) < len(text):
        got += os.read(reader, 65536)
    assert got.decode() == text
    assert drained.wait(5)
    assert writer.stop(5)
    assert writer.backlog == 0
    os.close(reader)
    os.close(writer_end)


def test_discard_keeps_the_frame_that_has_been_started() -> None:
    reader, writer_end = os.pipe()
    writer = TerminalWriter(writer_end, on_drained=lambda: None, on_lost=lambda error: None)
    first = "a" * 200_000
    writer.write(first)
    writer.start()
    os.read(reader, 1)
    writer.write("b" * 10)
    assert writer.discard() == 10
    got = bytearray(b"a")
    while len(got) < len(first):
        got += os.read(reader, 65536)
    assert set(got) == {ord("a")}
    assert writer.stop(5)
    os.close(reader)
    os.close(writer_end)


def test_a_lost_terminal_is_told_once_and_takes_no_more() -> None:
    reader, writer_end = os.pipe()
    lost = threading.Event()
    writer = TerminalWriter(writer_end, on_drained=lambda: None, on_lost=lambda error: lost.set())
    writer.start()
    os.close(reader)
    writer.write("x")
    assert lost.wait(5)
    writer.write("y" * 1000)
    assert writer.backlog == 0
    assert writer.stop(5)
    os.close(writer_end)
