"""Cuts a text file into pages a model can read: 2,000 lines or 50 KB, with a way to go on.

Pure over bytes already read. Knows nothing of paths or permissions.
"""

from __future__ import annotations

from msgspec import Struct

PAGE_BYTES = 50 * 1024
PAGE_LINES = 2000
"""Limits of one page (OpenClaw 2026.2.26's reader)."""

_SNIFF_BYTES = 8192


class Page(Struct, frozen=True):
    """`text` as shown to the model, the 1-based lines it covers, and where to go on."""

    text: str
    first: int
    last: int
    next_offset: int | None


def looks_binary(head: bytes) -> bool:
    """Whether the first 8 KB hold a NUL byte or mostly bytes that are no text."""
    sample = head[:_SNIFF_BYTES]
    if not sample:
        return False
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    if b"\0" in sample:
        return True
    odd = sum(1 for byte in sample if byte < 32 and byte not in (7, 8, 9, 10, 12, 13, 27))
    return odd * 10 > len(sample)


def decode(data: bytes) -> str:
    """Text of a file: UTF-16 by its mark, else UTF-8; bytes that are neither become U+FFFD."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def cut(lines: list[str], *, first: int, more: bool, limit: int | None) -> Page:
    """One page from `lines` (each with its line end), which start at 1-based line `first`.

    `more` tells that the file goes on after them. A first line longer than a page is cut and said
    to be.
    """
    wanted = min(limit or PAGE_LINES, PAGE_LINES)
    kept: list[str] = []
    size = 0
    for line in lines[:wanted]:
        bytes_of = len(line.encode("utf-8", errors="replace"))
        if size + bytes_of > PAGE_BYTES:
            break
        kept.append(line)
        size += bytes_of
    if lines and not kept:
        return _long_line(lines, first, more)
    last = first + len(kept) - 1
    rest = more or len(kept) < len(lines)
    text = "".join(kept)
    if not rest:
        return Page(text, first, last, None)
    capped = len(kept) < wanted or limit is None or limit > PAGE_LINES
    reason = f"Output capped at {size // 1024} KB" if capped else f"Showing lines {first}-{last}"
    note = f"[{reason} (lines {first}-{last}). Use offset={last + 1} to continue.]"
    if not capped:
        note = f"[{reason}. Use offset={last + 1} to continue.]"
    return Page(_with_note(text, note), first, last, last + 1)


def _long_line(lines: list[str], first: int, more: bool) -> Page:
    encoded = lines[0].encode("utf-8", errors="replace")
    head = encoded[:PAGE_BYTES].decode("utf-8", errors="ignore")
    note = f"[Line {first} is {len(encoded):,} bytes long; only its first 50 KB are shown."
    if more or len(lines) > 1:
        note += f" Use offset={first + 1} to continue after it."
    return Page(
        _with_note(head, note + "]"), first, first, first + 1 if more or len(lines) > 1 else None
    )


def _with_note(text: str, note: str) -> str:
    gap = "\n" if text.endswith("\n") or not text else "\n\n"
    return f"{text}{gap}{note}"
