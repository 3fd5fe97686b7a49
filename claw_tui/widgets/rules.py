"""How standing rules, grants and decisions look: a row each, and all of one."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from claw_tui.store.approval import Approval
from claw_tui.store.rules import Rule
from claw_tui.store.sanitize import line, reveal, reveal_line, tame
from claw_tui.store.sessions import short_key
from claw_tui.store.words import day
from claw_tui.widgets.cells import Span, clip, spans, wrap
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.queue import outcome, ran_words
from claw_tui.widgets.rowlist import Row

Fact = tuple[str, str, str]
"""Label, words, pen."""


def rule_rows(rules: Sequence[Rule], width: int, ink: Ink) -> list[Row]:
    """When a rule was used last, what it allows, and by which command it was used."""
    room = max(20, (width - 27) // 2)
    out = []
    for rule in rules:
        left: list[Span] = [
            (f"{day(rule.used_ms) or 'never':<13}", ink("faint")),
            ("grant  " if rule.grant else "rule   ", ink("warn" if rule.grant else "faint")),
            (f"{clip(reveal_line(rule.label), room):<{room}}", ink("text")),
            ("  ", ink("faint")),
            (reveal_line(rule.command), ink("muted")),
        ]
        where = "" if rule.agent == "main" else line(rule.agent)
        until = f"until {day(rule.until_ms)[-5:]}" if rule.until_ms else ""
        words = " ".join(part for part in (where, until) if part)
        right: list[Span] = [(f" {words}", ink("warn"))] if words else []
        out.append(Row(left, right))
    return out


def rule_lines(rule: Rule, width: int, ink: Ink) -> list[Strip]:
    """Everything known of a rule or a grant, nothing hidden in it."""
    facts: list[Fact] = [("ALLOWS", reveal(rule.label), "text")]
    if rule.cwd:
        facts.append(("IN", reveal(rule.cwd), "muted"))
    facts.append(("FOR", f"{_whose(rule)}, {_bound(rule)}", "muted"))
    if rule.grant:
        until = day(rule.until_ms) or "it is taken back"
        facts.append(("UNTIL", f"{until} · made {day(rule.made_ms)} by {line(rule.made_by)}",
                      "warn" if rule.until_ms else "muted"))  # fmt: skip
    last = day(rule.used_ms) or "never used"
    facts.append(("LAST", f"{last} · {rule.uses} uses" if rule.grant else last, "muted"))
    if rule.command:
        facts.append(("RAN", reveal(rule.command), "text"))
    if rule.resolved and rule.resolved != rule.label:
        facts.append(("AS", reveal(rule.resolved), "muted"))
    return _lines(facts, width, ink)


def _whose(rule: Rule) -> str:
    if rule.session:
        return f"session {line(short_key(rule.session))}"
    return "every agent" if rule.agent == "*" else f"agent {line(rule.agent)}"


def _bound(rule: Rule) -> str:
    if rule.grant and rule.bound:
        return "exactly this command, while its files are the same"
    if rule.bound:
        return "only while the file's content is the same"
    return "whatever the file holds"


def decision_lines(item: Approval, width: int, ink: Ink) -> list[Strip]:
    """Everything known of a decision: what, who, when, how, and what came of it."""
    words, pen = outcome(item)
    who = f" by {line(item.by)}" if item.by else ""
    reason = f" · {tame(item.reason)}" if item.reason else ""
    facts: list[Fact] = [
        ("RUN", reveal(item.command), "text"),
        ("IN", reveal(item.cwd), "muted"),
        ("WHY", " ".join(tame(item.why).split()) or "no reason given", "muted"),
        ("ENDED", f"{words}{who}, {day(item.decided_ms or item.expires_ms)}{reason}", pen),
    ]
    if item.decision.startswith("allow"):
        facts.append(("RAN", ran_words(item.ran, full=True) or "not known (yet)", "text"))
    if item.grant:
        facts.append(("GRANT", line(item.grant), "muted"))
    asked = f"{day(item.created_ms)} · {line(item.agent)} · {line(item.session or item.client)}"
    facts.append(("ASKED", f"{asked} · request {line(item.id)}", "muted"))
    return _lines(facts, width, ink)


def _lines(facts: Sequence[Fact], width: int, ink: Ink) -> list[Strip]:
    out: list[Strip] = []
    for label, words, pen in facts:
        for index, part in enumerate(wrap(words, max(10, width - 9))):
            head = label if index == 0 else ""
            out.append(spans([(f" {head:<7} ", ink("faint")), (part, ink(pen))]))
    return out
