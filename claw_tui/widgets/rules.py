"""How the standing rules look: a row each, and all of one."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from claw_tui.store.rules import Rule
from claw_tui.store.sanitize import line, reveal, reveal_line
from claw_tui.store.words import day
from claw_tui.widgets.cells import Span, clip_left, spans, wrap
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.rowlist import Row


def rule_rows(rules: Sequence[Rule], width: int, ink: Ink) -> list[Row]:
    """When a rule was used last, what it allows, and by which command it was used."""
    room = max(20, (width - 20) // 2)
    out = []
    for rule in rules:
        left: list[Span] = [
            (f"{day(rule.used_ms) or 'never':<13}", ink("faint")),
            (f"{clip_left(reveal_line(rule.pattern), room):<{room}}", ink("text")),
            ("  ", ink("faint")),
            (reveal_line(rule.command), ink("muted")),
        ]
        right: list[Span] = [] if rule.agent == "main" else [(f" {line(rule.agent)}", ink("warn"))]
        out.append(Row(left, right))
    return out


def rule_lines(rule: Rule, width: int, ink: Ink) -> list[Strip]:
    """Everything known of a rule, nothing hidden in it."""
    bound = "only while the file's content is the same" if rule.bound else "whatever the file holds"
    whose = "every agent" if rule.agent == "*" else f"agent {line(rule.agent)}"
    facts = [
        ("ALLOWS", reveal(rule.pattern), "text"),
        ("FOR", f"{whose}, {bound}", "muted"),
        ("LAST", day(rule.used_ms) or "never used", "muted"),
    ]
    if rule.command:
        facts.append(("RAN", reveal(rule.command), "text"))
    if rule.resolved and rule.resolved != rule.pattern:
        facts.append(("AS", reveal(rule.resolved), "muted"))
    out: list[Strip] = []
    for label, words, pen in facts:
        for index, part in enumerate(wrap(words, max(10, width - 9))):
            head = label if index == 0 else ""
            out.append(spans([(f" {head:<7} ", ink("faint")), (part, ink(pen))]))
    return out
