"""How a request looks: its title, the bar by kind of part, one row a part, one row a call.
Values in, spans and strips out. Knows no widget and no scrolling."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from claw_tui.store.requests import (
    FILES,
    KINDS,
    CallInfo,
    Match,
    PartInfo,
    Request,
    bar_groups,
    shares,
)
from claw_tui.store.sanitize import line
from claw_tui.store.words import clock, count, short_run, size, took
from claw_tui.widgets.cells import Span, clip, clip_left, measure, row, spans
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.rowlist import Row

WIDE = 100
"""Columns from which sources and whole sentences have room in a row."""
PENS = {
    "system": ("claw", "█"),
    "tools": ("tool", "▓"),
    "files": ("user", "█"),
    "skills": ("good", "▓"),
    "talk": ("think", "▒"),
    "results": ("warn", "░"),
    "envelope": ("faint", "░"),
}
"""The pen and the glyph of a kind: told apart without colours, too."""
OTHER = ("accent", "▒")
GAP: Span = ("  ", Style.null())


def call_name(call: CallInfo) -> str:
    return f"call {call.number} of run {short_run(call.run_id)}"


def token_words(call: CallInfo) -> str:
    return f"{call.tokens:,} tokens ({'measured' if call.measured else 'estimated'})"


def cause_words(call: CallInfo) -> str:
    return line(call.cause.replace("_", " "))


def cost_words(cost: float | None) -> str:
    """Money as the provider's price list gives it, in its currency's usual dollars."""
    return "" if cost is None else f"${cost:.4f}" if cost < 1 else f"${cost:,.2f}"


def head_lines(
    request: Request,
    width: int,
    ink: Ink,
    *,
    following: bool,
    note: str = "",
    recorded: bool = False,
) -> list[Strip]:
    """Title, facts, bar, legend, and the sentence about what changed."""
    call = request.call
    tokens, said = request.cached
    title: list[Span] = [
        (" ", Style.null()),
        (call_name(call), ink("claw", "b")),
        (f" · {token_words(call)}", ink("text", "b")),
        (f" · cached {tokens:,}" if said else f" · cached about {tokens:,}", ink("good")),
        (f" · {cause_words(call)}", ink("muted")),
    ]
    return [
        row(width, title),
        _facts(call, width, ink, following, recorded),
        bar_line(request.parts, width, ink),
        legend_line(request.parts, width, ink),
        _changed(request, width, ink, note),
    ]


def _facts(call: CallInfo, width: int, ink: Ink, following: bool, recorded: bool) -> Strip:
    """What else is known of the call; the last ones give way where there is no room."""
    bits = [clock(call.started_ms), line(call.model), size(call.body_bytes)]
    if call.duration_ms is not None:
        bits.append(took(call.duration_ms))
    if call.usage is not None:
        bits.append(f"{count(call.usage.output)} out")
    bits.append(cost_words(call.cost))
    if call.wait_ms is not None:
        bits.append(f"first token {took(call.wait_ms)}")
    if call.parked_ms:
        bits.append(f"parked {took(call.parked_ms)}")
    if call.queue_ms >= 100:
        bits.append(f"queued {took(call.queue_ms)}")
    left: list[Span] = []
    if call.status not in ("ok", "running"):
        why = f": {line(call.error)}" if call.error else ""
        left.append((f" {line(call.status)}{why} ·", ink("bad", "b")))
    elif call.status == "running":
        left.append((" going on ·", ink("good")))
    right: list[Span] = [("recorded ", ink("muted")) if recorded else ("live ", ink("good"))]
    if not following:
        right = [("older · ", ink("faint")), ("f newest ", ink("key"))]
    room = width - measure(left) - measure(right) - 2
    bits = [bit for bit in bits if bit]
    while len(bits) > 1 and cell_len(" · ".join(bits)) > room:
        bits.pop()
    return row(width, [*left, (f" {' · '.join(bits)}", ink("muted"))], right)


def bar_line(parts: Sequence[PartInfo], width: int, ink: Ink) -> Strip:
    """One bar, a stretch for each kind of part, as long as its share of the tokens."""
    groups = bar_groups(parts)
    cells = shares([weight for _, weight in groups], width - 2)
    out: list[Span] = [(" ", Style.null())]
    for (name, _), length in zip(groups, cells, strict=True):
        pen, glyph = PENS.get(name, OTHER)
        out.append((glyph * length, ink(pen)))
    return spans(out)


def legend_line(parts: Sequence[PartInfo], width: int, ink: Ink) -> Strip:
    """What the stretches are, the heaviest first to keep its place when there is no room."""
    groups = bar_groups(parts)
    total = sum(weight for _, weight in groups) or 1
    entries: list[list[Span]] = []
    for name, weight in groups:
        pen, glyph = PENS.get(name, OTHER)
        share = f" {round(100 * weight / total)}%"
        entries.append([(f"{glyph} ", ink(pen)), (f"{line(name)} ", ink("text")),
                        (count(weight), ink("muted")), (share, ink("faint"))])  # fmt: skip
    keep = set(range(len(entries)))
    by_weight = sorted(keep, key=lambda place: groups[place][1])
    for place in by_weight:
        if sum(measure(entries[k]) + 2 for k in keep) - 1 <= width:
            break
        keep.discard(place)
    out: list[Span] = [(" ", Style.null())]
    for place in sorted(keep):
        out += [*entries[place], GAP]
    return spans(out)


def _changed(request: Request, width: int, ink: Ink, note: str) -> Strip:
    if note:
        return spans([(f" {clip(line(note), width - 2)}", ink("key"))])
    parts, broke = request.parts, request.cache_break
    out: list[Span] = [(" ", Style.null())]
    if request.previous is None:
        out.append(("the first recorded call of this session", ink("faint")))
        return spans(out)
    grown, culprit = request.grown, request.culprit
    if grown > 0 and culprit is not None:
        part = parts[culprit]
        since = " since the call before: " if width >= WIDE else ": "
        out += [(f"grew by {grown:,}", ink("warn", "b")), (since, ink("text")),
                (f"{line(part.label)} did it ", ink("warn")),
                (f"(+{request.more(part):,})", ink("muted"))]  # fmt: skip
    elif grown < 0:
        out.append((f"{-grown:,} tokens less than the call before", ink("good")))
    else:
        out.append(("as large as the call before", ink("faint")))
    if broke is not None and broke < len(parts):
        out += [(" · ", ink("faint")),
                (f"cache broke at {line(parts[broke].label)}", ink("bad"))]  # fmt: skip
    return row(width, out)


# ── rows ────────────────────────────────────────────────────────────────────────────────────


def part_row(request: Request, place: int, width: int, ink: Ink, *, redacted: bool = False) -> Row:
    """One part: kind, name, bytes, tokens, and what is with it."""
    part, wide = request.parts[place], width >= WIDE
    pen, _ = PENS.get(part.group, OTHER)
    room = 46 if wide else 18
    words, mark = _mark(request, place, wide)
    if redacted and words in ("", "same"):
        words, mark = f"{words} redacted".strip(), "warn"
    left: list[Span] = [
        (f"{clip(line(KINDS.get(part.kind, part.kind)), 8):<9}", ink(pen)),
        (line(part.name or part.source), ink("text")),
    ]
    about = _about(part)
    if about and wide:
        space = width - room - 34 - cell_len(part.name or part.source)
        left.append((f"  {clip_left(about, max(8, space))}", ink("faint")))
    right: list[Span] = [
        (f"{size(part.bytes):>9}", ink("faint")),
        (f"{count(part.tokens):>7}", ink("text")),
        (f"  {clip(words, room):<{room}}", ink(mark)),
    ]
    return Row(left, right)


def _about(part: PartInfo) -> str:
    """Where it comes from, when the name does not say it."""
    if part.kind in FILES:
        return line(part.source)
    if part.kind in ("section", "tool", "envelope"):
        return ""
    return line(part.source)[:8] if part.source != part.name else ""


def _mark(request: Request, place: int, wide: bool) -> tuple[str, str]:
    part = request.parts[place]
    if place == request.culprit:
        grown = request.grown
        sentence = f"← this call grew by {grown:,}: this did it"
        return (sentence, "warn") if wide else (f"← grew {grown:,}", "warn")
    if place == request.cache_break:
        broke = "the cache broke here" if wide else "cache broke"
        by = request.more(part)
        return f"{broke} {by:+,}" if by else broke, "bad"
    if part.new and request.previous is not None:
        more = request.more(part)
        return f"NEW {more:+,}" if more else "NEW", "key"
    if part.cached:
        return "same", "good"
    return "", "faint"


def call_row(call: CallInfo, before: CallInfo | None, width: int, ink: Ink, *, here: bool) -> Row:
    """One call of a list: when, which, why, how large, how much more than the one before it."""
    cached = call.usage.cache_read if call.usage else 0
    share = f"cached {100 * cached // call.tokens}%" if call.tokens and cached else ""
    by = call.tokens - before.tokens if before is not None else 0
    more = f"{by:+,}" if by else ""
    left: list[Span] = [
        ("● " if here else "  ", ink("good")),
        (f"{clock(call.started_ms):<6}", ink("faint")),
        (f"{short_run(call.run_id)} ", ink("muted")),
        (f"call {call.number:<3}", ink("claw", "b" if here else "")),
        (f"{cause_words(call):<11}", ink("text")),
    ]
    if width >= WIDE:
        left.append((f"{line(call.model)}  ", ink("faint")))
    if call.status not in ("ok", "running"):
        left.append((line(call.error or call.status), ink("bad")))
    right: list[Span] = [
        (f"{call.tokens:>9,}{' ' if call.measured else '~'}", ink("text")),
        (f"{more:>9}", ink("warn" if more.startswith("+") else "good")),
        (f"{share:>12}", ink("good")),
    ]
    if width >= WIDE:
        right.append((f"{took(call.duration_ms):>9}{cost_words(call.cost):>9}", ink("muted")))
    return Row(left, right)


def match_row(match: Match, parts: Sequence[PartInfo], width: int, ink: Ink) -> Row:
    """One place where the text was found, with some of what stands around it."""
    part = next((part for part in parts if part.id == match.part), None)
    label = line(part.label) if part is not None else line(match.part)
    room = max(4, (width - 26 - len(match.match)) // 2)
    before = line(match.before)[-room:]
    left: list[Span] = [
        (f"{clip(label, 20):<21} ", ink("muted")),
        (f"{before:>{min(room, 24)}}", ink("faint")),
        (line(match.match), ink("key", "r")),
        (line(match.after), ink("faint")),
    ]
    return Row(left)
