"""Sums in words, one line. Pure."""

from __future__ import annotations

from claw_engine.usage.budgets import amount
from claw_engine.usage.records import Sums


def spent_line(sums: Sums) -> str:
    """`Usage: 18,422 in (16,384 cached) / 96 out · est $0.0124`: money only where it is known."""
    return f"Usage: {counts(sums)}"


def counts(sums: Sums) -> str:
    """Tokens in and out, money, and what of it is not certain."""
    cached = f" ({sums.cache_read:,} cached)" if sums.cache_read else ""
    taken = sums.input + sums.cache_read + sums.cache_write
    text = f"{taken:,} in{cached} / {sums.output:,} out"
    if sums.unpriced < sums.calls:
        text += f" · est {amount(sums.cost, 'cost')}"
    if sums.unpriced and sums.unpriced < sums.calls:
        text += f" without {_calls(sums.unpriced)} of unknown price"
    if sums.estimated:
        all_of = sums.estimated == sums.calls
        text += " · tokens estimated" if all_of else f" · {_calls(sums.estimated)} estimated"
    return text


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count:,} calls"
