"""What a card says of a question that is not about a command."""

from __future__ import annotations

from claw_engine.agent.books import Books
from claw_engine.approvals.model import ApprovalRecord, to_wire
from claw_engine.usage.budgets import Limit, Standing
from claw_engine.usage.meter import Caller, Over
from claw_tui.store.approval import approval_from
from claw_tui.widgets.cardpaint import command_lines, foot_lines, part_lines, why_lines
from claw_tui.widgets.ink import Ink

INK = Ink({}, dark=True, ansi=False)


def test_a_budgets_card_says_what_a_yes_would_spend_and_blames_no_model() -> None:
    books = Books.__new__(Books)
    books._caller = Caller("agent:main:main", "s1", "main", "run-1", "fake/one", None)
    limit = Limit("day", "2026-11-30", "tokens", 1000, "ask", (), 0.5)
    ask = books._question(Over(Standing(limit, 900), 200, "2026-12-01 00:00 UTC"))
    card = approval_from(to_wire(ApprovalRecord("a1", ask, 0, 1)))
    assert why_lines(card, 80, INK) == foot_lines(card, 80, INK) == []
    text = "\n".join(
        strip.text.rstrip()
        for strip in (*command_lines(card, 100, INK), *part_lines(card, 100, INK, details=False))
    )
    assert text == (
        " PAY  go on beyond today's budget, up to 1,500 tokens\n"
        " ·    900 tokens of 1,000 tokens spent, and this call needs about 200 tokens\n"
        " ·    claw.budgets.day.tokens is 1000\n"
        " W    no always: raise it in the settings: claw.budgets.day.tokens"
    )
