from __future__ import annotations

from claw_engine.tools import pages


def lines(count: int, width: int = 3) -> list[str]:
    return [f"{number:0{width}}\n" for number in range(1, count + 1)]


def test_a_small_file_is_one_page_without_a_note() -> None:
    page = pages.cut(lines(3), first=1, more=False, limit=None)
    assert page.text == "001\n002\n003\n"
    assert page.next_offset is None


def test_two_thousand_lines_end_a_page() -> None:
    page = pages.cut(lines(2500, 5), first=1, more=False, limit=None)
    assert page.last == 2000
    assert page.next_offset == 2001
    assert page.text.endswith("Use offset=2001 to continue.]")


def test_fifty_kilobytes_end_a_page() -> None:
    page = pages.cut(lines(1000, 99), first=11, more=True, limit=None)
    assert page.last - page.first + 1 == pages.PAGE_BYTES // 100
    assert page.next_offset == page.last + 1
    assert "capped at 50 KB" in page.text


def test_a_limit_is_kept_and_says_how_to_go_on() -> None:
    page = pages.cut(lines(10), first=5, more=False, limit=2)
    assert page.text.startswith("001\n002\n")
    assert page.next_offset == 7


def test_a_line_longer_than_a_page_is_cut_and_said_to_be() -> None:
    page = pages.cut(["é" * 60_000, "next\n"], first=1, more=False, limit=None)
    assert page.next_offset == 2
    assert "Line 1 is 120,000 bytes long" in page.text
    assert "\ufffd" not in page.text


def test_binary_is_told_from_text() -> None:
    assert pages.looks_binary(b"\x7fELF\0\0")
    assert pages.looks_binary(bytes(range(1, 32)) * 4)
    assert not pages.looks_binary("grüße\t\x1b[1m\n".encode())
    assert not pages.looks_binary("hi".encode("utf-16"))
    assert not pages.looks_binary(b"")
