"""What tokens cost at configured prices. Pure; a price that was not given is never guessed."""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.messages import Usage

PER = 1_000_000
"""Prices are per million tokens, as OpenClaw has them."""
KINDS = ("input", "output", "cache_read", "cache_write")
NAMES = (
    ("input", "input"), ("output", "output"), ("cache_read", "cacheRead"),
    ("cache_write", "cacheWrite"),
)  # fmt: skip
"""Our name of each kind, and the transcript's."""


def cost_of(usage: Usage, prices: Mapping[str, float] | None) -> float | None:
    """Money for `usage`; None when a price that it needs is not there.

    `prices` has those of `KINDS` that are known.
    """
    if prices is None:
        return None
    total = 0.0
    for kind in KINDS:
        tokens: int = getattr(usage, kind)
        if tokens:
            price = prices.get(kind)
            if price is None:
                return None
            total += tokens * price / PER
    return total


def costs_of(usage: Usage, prices: Mapping[str, float] | None) -> dict[str, float] | None:
    """Money by the transcript's names, `total` among them; None as for `cost_of`."""
    total = cost_of(usage, prices)
    if total is None or prices is None:
        return None
    parts = {name: getattr(usage, kind) * prices.get(kind, 0.0) / PER for kind, name in NAMES}
    return {**parts, "total": total}


def at_least(tokens: int, prices: Mapping[str, float] | None) -> float | None:
    """Money for an input of `tokens`, before anybody knows the rest; None: no price."""
    return cost_of(Usage(input=tokens), prices)
