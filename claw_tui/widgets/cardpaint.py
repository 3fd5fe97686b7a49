"""An approval card as lines: the whole truth, every hidden character shown. Pure."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip

from claw_tui.store.approval import Approval, Segment
from claw_tui.store.approvals import Card
from claw_tui.store.sanitize import line, reveal, reveal_line, tame
from claw_tui.store.sessions import short_key
from claw_tui.store.words import clock, short_run
from claw_tui.widgets.cells import Span, clip, clip_left, measure, spans, wrap
from claw_tui.widgets.ink import Ink

LABEL = 6
WHY_LINES = 3
_LABELS = {"exec": "RUN", "read": "READ", "write": "WRITE", "edit": "EDIT", "budget": "PAY"}


def _labelled(label: str, rows: list[str], ink: Ink, pen: Style) -> list[Strip]:
    head: Span = (f" {label:<{LABEL - 1}}", ink("faint", "b"))
    gap: Span = (" " * LABEL, Style.null())
    return [spans([head if i == 0 else gap, (text, pen)]) for i, text in enumerate(rows)]


def why_lines(card: Approval, width: int, ink: Ink, most: int = WHY_LINES) -> list[Strip]:
    """The model's own words before the call, at most `most` lines."""
    words = " ".join(tame(card.why).split())
    if not words and card.kind == "budget":
        return []  # the engine asks, not the model
    if not words:
        return _labelled("WHY", ["the model gave no reason"], ink, ink("warn", "i"))
    rows = wrap(f"“{words}”", width - LABEL - 1)
    if len(rows) > most:
        more = "…  (enter: all)"
        rows = rows[:most]
        rows[-1] = clip(rows[-1], width - LABEL - 1 - len(more)).rstrip("…") + more
    return _labelled("WHY", rows, ink, ink("text", "i"))


def command_lines(card: Approval, width: int, ink: Ink) -> list[Strip]:
    """The command, whole; scrolls when it is longer than its place."""
    label = _LABELS.get(card.kind, "DO")
    rows = wrap(reveal(card.command), width - LABEL - 1)
    return _labelled(label, rows, ink, ink("text", "b"))


def part_lines(card: Approval, width: int, ink: Ink, *, details: bool) -> list[Strip]:
    """Every parsed segment with what it is and why it matched or missed. Stays where it is
    while the command scrolls."""
    out: list[Strip] = []
    for number, segment in enumerate(card.segments, 1):
        out += _segment(number, segment, width, ink)
    for text in card.redirections:
        out += _labelled(
            "→", wrap(f"redirects {reveal_line(text)}", width - LABEL - 1), ink, ink("warn")
        )
    said = [segment.why for segment in card.segments if segment.why]
    for text in card.reasons:
        if any(text.endswith(why) for why in said):
            continue  # the segment's own line says it
        out += _labelled("·", wrap(tame(text), width - LABEL - 1), ink, ink("muted"))
    if len(card.env) > 1:
        out += _labelled("ENV", [reveal_line(item) for item in card.env], ink, ink("warn"))
    out += _always(card, width, ink)
    if details:
        out += _details(card, width, ink)
    return out


def _always(card: Approval, width: int, ink: Ink) -> list[Strip]:
    """What "always" would open, or why it is not there, in one line; `w` and details have all."""
    always = card.always
    if not always.patterns and not always.refusal:
        return []
    opens = ", ".join(map(reveal_line, always.opens()))
    words = f"always: {opens}" if opens else f"no always: {line(always.refusal)}"
    return _labelled("W", [clip(words, width - LABEL - 1)], ink, ink("muted"))


def _segment(number: int, segment: Segment, width: int, ink: Ink) -> list[Strip]:
    name = reveal_line(segment.argv[0] if segment.argv else segment.text)
    where = reveal_line(segment.resolved) if segment.resolved else "not found"
    head: list[Span] = [
        (f" {number} ", ink("faint")),
        (clip(name, 16), ink("tool", "b")),
        (" → ", ink("faint")),
        (clip_left(where, max(12, width // 2)), ink("text" if segment.resolved else "bad")),
    ]
    verdict = (
        f"allowed by {reveal_line(segment.rule)}"
        if segment.rule
        else line(segment.why) or "no rule matches"
    )
    risks = " · ".join(line(risk) for risk in segment.risks)
    tail: list[Span] = [(verdict, ink("good" if segment.rule else "muted"))]
    if risks:
        tail.append((f" · {risks}", ink("bad", "b")))
    if measure(head) + measure(tail) + 3 <= width - 1:
        return [spans([*head, ("   ", Style.null()), *tail])]
    out = [spans(head)]
    for text, pen in tail:
        out += [
            spans([("   ", Style.null()), (part, pen)])
            for part in wrap(text.removeprefix(" · "), width - 5)
        ]
    return out


def _details(card: Approval, width: int, ink: Ink) -> list[Strip]:
    out = [spans([(" ─ all fields ", ink("faint")), ("─" * max(0, width - 15), ink("faint"))])]
    fields = [
        ("why", tame(card.why) or "–"),
        ("agent", line(card.agent)),
        ("session", line(card.session)),
        ("run", line(card.run_id)),
        ("call", line(card.tool_call_id)),
        ("request", line(card.id)),
        ("asked", clock(card.created_ms)),
        ("expires", clock(card.expires_ms)),
        ("folder", reveal(card.cwd)),
        ("always", card.always.refusal or ", ".join(map(reveal_line, card.always.patterns)) or "–"),
    ]
    fields += [("", line(note)) for note in card.always.notes]
    fields += [("grant", line(offer.words)) for offer in card.offers]
    if card.no_grants:
        fields.append(("grant", f"none: {line(card.no_grants)}"))
    fields += [
        (f"argv {i}", " ".join(f"[{reveal_line(a)}]" for a in s.argv))
        for i, s in enumerate(card.segments, 1)
    ]
    for label, value in fields:
        rows = wrap(value, width - 11)
        for index, text in enumerate(rows):
            out.append(
                spans([(f" {label if index == 0 else '':<9}", ink("faint")), (text, ink("muted"))])
            )
    return out


def foot_lines(card: Approval, width: int, ink: Ink) -> list[Strip]:
    """Where it would run, in how many walls, with which environment. Never scrolls away. Nothing
    for a budget: what it asks about runs nowhere."""
    if card.kind == "budget":
        return []
    host = "this host" if card.host in ("gateway", "") else line(card.host)
    box = "no sandbox" if card.sandbox in ("none", "") else f"sandbox {line(card.sandbox)}"
    env = (
        "unchanged"
        if not card.env
        else (
            reveal_line(card.env[0])
            if len(card.env) == 1
            else f"{len(card.env)} changes, see above"
        )
    )
    on_env: list[Span] = [
        ("ON ", ink("faint", "b")),
        (f"{host}, {box}", ink("warn" if box == "no sandbox" else "good")),
        ("   ENV ", ink("faint", "b")),
        (clip(env, 40), ink("warn" if card.env else "muted")),
    ]
    place = reveal_line(card.cwd)
    first: list[Span] = [(f" {'IN':<{LABEL - 1}}", ink("faint", "b"))]
    if LABEL + len(place) + 3 + measure(on_env) < width:
        return [spans([*first, (place, ink("text")), ("   ", Style.null()), *on_env])]
    return [
        spans([*first, (clip_left(place, width - LABEL - 1), ink("text"))]),
        spans([(" " * 1, Style.null()), *on_env]),
    ]


def card_title(card: Approval, index: int, total: int, count: int = 1) -> str:
    """Which card of how many, how often the same was asked, and by whom."""
    many = f"{count} times the same · " if count > 1 else ""
    who = (
        f"client {card.client}"
        if card.client
        else f"agent {card.agent} · {short_key(card.session)} · run {short_run(card.run_id)}"
    )
    return f"{index} of {total} ─ {many}{who} · asked {clock(card.created_ms)}"


def batch_lines(cards: list[Card], width: int, ink: Ink) -> list[Strip]:
    """The page for several marked cards: one line each, in full where it fits."""
    total = sum(card.count for card in cards)
    out = [spans([(f" Allow these {total} once each:", ink("text"))]), spans([])]
    for number, card in enumerate(cards, 1):
        item = card.picture
        rows = wrap(reveal(item.command), width - 6)
        out += [
            spans([(f" {number if i == 0 else '':>2}  ", ink("faint")), (text, ink("text", "b"))])
            for i, text in enumerate(rows)
        ]
        many = f"{card.count} times · " if card.count > 1 else ""
        place = f"{line(short_key(item.session))} · in {reveal_line(item.cwd)}"
        out.append(spans([("     ", Style.null()), (many, ink("warn")), (place, ink("muted"))]))
    return out
