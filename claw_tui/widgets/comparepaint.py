"""Two requests side by side: what stayed, changed, came and went, with the lines of what changed.
Values in, rows out. Knows no widget and no scrolling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from textual.strip import Strip

from claw_tui.store.requests import KINDS, Comparison, Pair
from claw_tui.store.sanitize import line, tame
from claw_tui.store.words import count, day, size
from claw_tui.widgets.cells import Span, clip, row, wrap
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.promptpaint import call_name, token_words
from claw_tui.widgets.rowlist import Row

SIGNS = {
    "same": ("=", "faint"),
    "changed": ("~", "warn"),
    "added": ("+", "good"),
    "removed": ("-", "bad"),
}
LINE_PENS = {"+": "good", "-": "bad", "@": "faint"}
LINE_ROWS = 8
"""Rows that one line of a text takes at most; `enter` shows the whole part."""


class Line(Struct, frozen=True):
    """One row of a comparison: a pair, equal ones folded into one, or a line inside a pair."""

    op: str
    """same, changed, added, removed or fold; for a line its sign."""
    text: str = ""
    pair: Pair | None = None
    first: bool = True
    """Whether this row begins its line, or goes on with it."""


def compare_lines(found: Comparison, width: int, *, unfold: bool) -> Iterator[Line]:
    """All rows, lazily: wrapping thousands of lines takes longer than a frame has."""
    for same, group in groupby(found.pairs, key=lambda pair: pair.state == "same"):
        pairs = list(group)
        if same and not unfold and len(pairs) > 1:
            tokens = sum(pair.part.tokens for pair in pairs)
            yield Line("fold", f"{len(pairs)} parts the same, {count(tokens)} tokens")
            continue
        for pair in pairs:
            yield Line(pair.state, pair=pair)
            for op, words in pair.lines:
                yield from _inside(pair, op, words, width)
    if found.truncated:
        yield Line("fold", "more lines differ than are shown here")


def _inside(pair: Pair, op: str, words: str, width: int) -> Iterator[Line]:
    rows = wrap(tame(words).replace("\n", " "), max(20, width - 12))
    if len(rows) > LINE_ROWS:
        rows = [*rows[: LINE_ROWS - 1], f"{rows[LINE_ROWS - 1]} …"]
    for place, part in enumerate(rows):
        yield Line(op, part, pair, place == 0)


def line_row(item: Line, width: int, ink: Ink) -> Row:
    pair = item.pair
    if item.op == "fold" or pair is None:
        return Row([(f"  = {item.text}", ink("faint"))])
    if item.op in SIGNS:
        return _pair_row(pair, width, ink)
    sign = item.op if item.first and item.op != "@" else " "
    words = f"⋯ {item.text}" if item.op == "@" else item.text
    pen = ink(LINE_PENS.get(item.op, "muted"))
    return Row([("    │ ", ink("faint")), (f"{sign} ", pen), (words, pen)])


def _pair_row(pair: Pair, width: int, ink: Ink) -> Row:
    sign, pen = SIGNS.get(pair.state, ("?", "muted"))
    part, same = pair.part, pair.state == "same"
    left: list[Span] = [
        (f"{sign} ", ink(pen, "b")),
        (f"{clip(line(KINDS.get(part.kind, part.kind)), 8):<9}", ink("muted")),
        (line(part.name or part.source), ink("faint" if same else "text", "" if same else "b")),
    ]
    was, now = (side.tokens if side is not None else 0 for side in (pair.a, pair.b))
    words = count(now) if same else f"{count(was)} → {count(now)}"
    more = "" if same or was == now else f"{now - was:+,}"
    right: list[Span] = [
        (words, ink("faint")),
        (f"{more:>9}", ink("warn" if now > was else "good")),
        (f"  {pair.state:<8}", ink(pen)),
    ]
    if width >= 100:
        right.insert(0, (f"{size(part.bytes):>9}   ", ink("faint")))
    return Row(left, right)


def compare_head(found: Comparison, width: int, ink: Ink) -> list[Strip]:
    """Which two, what the difference is, and where it begins."""
    counts = {state: sum(pair.state == state for pair in found.pairs) for state in SIGNS}
    first = next((pair for pair in found.pairs if pair.state != "same"), None)
    names = []
    for call, sign in ((found.a, "-"), (found.b, "+")):
        left: list[Span] = [
            (f" {sign} ", ink("bad" if sign == "-" else "good", "b")),
            (call_name(call), ink("claw", "b")),
            (f" · {day(call.started_ms)} · {token_words(call)}", ink("text")),
            (f" · {line(call.model)}", ink("muted")),
        ]
        names.append(row(width, left))
    words: list[Span] = [
        (f" {found.tokens:+,} tokens, {found.bytes:+,} bytes", ink("text", "b")),
        (f" · {_counted(counts)}", ink("muted")),
    ]
    begins = f"the first difference: {line(first.part.label)}" if first else "the same to the byte"
    return [*names, row(width, words), row(width, [(f" {begins}", ink("warn"))])]


def _counted(counts: dict[str, int]) -> str:
    shown: Sequence[str] = [f"{number} {state}" for state, number in counts.items() if number]
    return ", ".join(shown) or "no parts"
