"""Cutting and wrapping on cell boundaries. Every width in the console is measured here, with
rich's tables, on text that `sanitize` has already made unambiguous."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

Span: TypeAlias = tuple[str, Style]


def clip(text: str, width: int) -> str:
    """`text` in at most `width` cells, ending in … when something is cut."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return _head(text, width - 1) + "…"


def clip_left(text: str, width: int) -> str:
    """Like `clip`, but the end is kept: for paths."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    out, used = [], 0
    for char in reversed(text):
        size = get_character_cell_size(char)
        if used + size > width - 1:
            break
        out.append(char)
        used += size
    return "…" + "".join(reversed(out))


def _head(text: str, width: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += get_character_cell_size(char)
        if used > width:
            return text[:index]
    return text


def pad(text: str, width: int) -> str:
    """`text` clipped and filled with spaces to exactly `width` cells."""
    cut = clip(text, width)
    return cut + " " * (width - cell_len(cut))


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells; breaks at spaces, long words on a cell boundary."""
    width = max(2, width)
    out: list[str] = []
    for logical in text.split("\n"):
        if cell_len(logical) <= width:
            out.append(logical)
        else:
            out.extend(_wrap_one(logical, width))
    return out


def _wrap_one(text: str, width: int) -> list[str]:
    out: list[str] = []
    start = used = 0
    space = -1
    index, end = 0, len(text)
    while index < end:
        char = text[index]
        size = get_character_cell_size(char)
        if used + size > width:
            if char == " ":
                out.append(text[start:index])
                start = index + 1
            elif space > start:
                out.append(text[start:space])
                start = space + 1
            else:
                out.append(text[start:index])
                start = index
            index = start
            used, space = 0, -1
            continue
        if char == " ":
            space = index
        used += size
        index += 1
    out.append(text[start:])
    return out


def spans(parts: Iterable[Span]) -> Strip:
    return Strip([Segment(text, style) for text, style in parts if text])


def fit(parts: Sequence[Span], width: int) -> list[Span]:
    """The spans cut to `width` cells in total."""
    out: list[Span] = []
    left = width
    for text, style in parts:
        if left <= 0:
            break
        cut = clip(text, left)
        out.append((cut, style))
        left -= cell_len(cut)
    return out


def measure(parts: Iterable[Span]) -> int:
    return sum(cell_len(text) for text, _ in parts)


def row(width: int, left: Sequence[Span], right: Sequence[Span] = (), fill: str = " ") -> Strip:
    """A line with something at its right edge; the left part gives way."""
    tail = fit(right, width)
    room = width - measure(tail) - (1 if tail else 0)
    head = fit(left, max(0, room))
    gap = width - measure(head) - measure(tail)
    return spans([*head, (fill * max(0, gap), Style.null()), *tail])
