from __future__ import annotations

import pytest

from claw_engine.net.sse import MAX_EVENT, EventTooLargeError, SseDecoder


def read(body: bytes, size: int) -> list[str]:
    decoder = SseDecoder()
    events: list[str] = []
    for start in range(0, len(body), size):
        events += decoder.feed(body[start : start + size])
    return events + decoder.flush()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("body", "events"),
    [
        ("data: a\n\ndata: b\n\n", ["a", "b"]),
        ("data:a\n\n", ["a"]),
        ("data:  two spaces\n\n", [" two spaces"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        ("data: one\ndata: two\n\n", ["one\ntwo"]),
        (": ping\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", ["a"]),
        ("\n\n\ndata: a\n\n\n\n", ["a"]),
        ("data: 磁盘 🦞\n\n", ["磁盘 🦞"]),
        ("data\n\ndata: a\n\n", ["a"]),
        ("data: a\n\ndata: [DONE]", ["a", "[DONE]"]),
        ("data: whole line\n", ["whole line"]),
        ('data: a\n\ndata: {"cut', ["a"]),
        ("", []),
    ],
)
def test_events(body: str, events: list[str], size: int) -> None:
    assert read(body.encode(), size) == events


def test_bytes_that_are_no_utf8_do_not_stop_the_stream() -> None:
    assert read(b"data: \xff\n\ndata: b\n\n", 100) == ["\ufffd", "b"]


def test_an_event_without_end_is_refused() -> None:
    decoder = SseDecoder()
    with pytest.raises(EventTooLargeError):
        for _ in range(MAX_EVENT // 65536 + 2):
            decoder.feed(b"x" * 65536)
