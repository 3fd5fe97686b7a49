"""Whether a call still fits its budgets: decided before it is made, from what is spent and what is
under way. Pure; money and tokens are judged alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from claw_engine.config.sections.budgets import Budget, BudgetsSettings
from claw_engine.usage.records import Sums

Scope: TypeAlias = Literal["session", "day"]
Unit: TypeAlias = Literal["tokens", "cost"]


class Limit(Struct, frozen=True):
    """One limit for one time: `period` is the day's name or the session's id."""

    scope: Scope
    period: str
    unit: Unit
    limit: float
    action: Literal["warn", "ask", "stop"]
    warn_at: tuple[float, ...]
    step: float

    @property
    def key(self) -> tuple[Scope, str, Unit]:
        """What makes it this one, whatever its settings are."""
        return self.scope, self.period, self.unit

    @property
    def setting(self) -> str:
        """Where it is set."""
        return f"claw.budgets.{self.scope}.{self.unit}"


class Standing(Struct, frozen=True):
    """Where a budget stands: spent, under way in other calls, and granted beyond the limit."""

    limit: Limit
    spent: float
    under_way: float = 0
    granted: float = 0

    @property
    def allowed(self) -> float:
        return self.limit.limit + self.granted

    def over(self, more: float) -> bool:
        """Whether a call that takes `more` does not fit any more."""
        return self.spent + self.under_way + more > self.allowed

    def passed(self, more: float) -> tuple[float, ...]:
        """The shares of the limit that a call of `more` would reach, the limit itself included."""
        used = self.spent + self.under_way + more
        shares = sorted({*self.limit.warn_at, 1.0})
        return tuple(share for share in shares if used >= share * self.limit.limit)

    def next_grant(self, more: float) -> float:
        """What one `y` grants in all: whole steps, as many as this call needs."""
        step = self.limit.limit * self.limit.step
        missing = self.spent + self.under_way + more - self.allowed
        return self.granted + step * max(1, math.ceil(missing / step))

    def stands(self, more: float = 0) -> str:
        """`512,000 of 500,000 tokens`, and what the next call needs."""
        unit = self.limit.unit
        text = f"{amount(self.spent, unit)} of {amount(self.allowed, unit)} spent"
        if self.under_way:
            text += f", {amount(self.under_way, unit)} under way"
        return f"{text}, and this call needs about {amount(more, unit)}" if more else text

    def to_json(self) -> dict[str, object]:
        """For clients."""
        limit = self.limit
        return {
            "scope": limit.scope, "period": limit.period, "unit": limit.unit,
            "limit": limit.limit, "spent": self.spent, "underWay": self.under_way,
            "granted": self.granted, "action": limit.action, "over": self.over(0),
            "share": round(self.spent / limit.limit, 4),
        }  # fmt: skip


def amount(value: float, unit: Unit) -> str:
    """`12,345 tokens` or `$1.23`."""
    if unit == "tokens":
        return f"{math.ceil(value):,} tokens"
    return f"${value:.2f}" if value >= 1 or not value else f"${value:.4f}"


def limits_of(budgets: BudgetsSettings, day: str, session_id: str) -> tuple[Limit, ...]:
    """The limits that are set."""
    return (
        *_limits("session", session_id, budgets.session),
        *_limits("day", day, budgets.day),
    )


def spent_of(sums: Sums, unit: Unit) -> float:
    """What a sum has in a unit."""
    return float(sums.total) if unit == "tokens" else sums.cost


def refusal(standing: Standing, more: float, until: str) -> tuple[str, str]:
    """Title and hint of the error of a call that is not made; `until`: when the day ends."""
    limit = standing.limit
    whose = "The budget of this session" if limit.scope == "session" else "Today's budget"
    title = f"{whose} is used up: {standing.stands(more)}. Nothing was sent."
    wanted = standing.next_grant(more) + limit.limit
    value = str(math.ceil(wanted)) if limit.unit == "tokens" else f"{wanted:.2f}"
    way = "start a new session (/new)" if limit.scope == "session" else f"wait until {until}"
    hint = f"Raise {limit.setting} (claw config set {limit.setting} {value}), or {way}."
    return title, hint


def worst(standings: Iterable[tuple[Standing, float]]) -> tuple[Standing, float] | None:
    """The budget that decides: one that stops before one that asks."""
    over = [(s, more) for s, more in standings if s.limit.action != "warn" and s.over(more)]
    over.sort(key=lambda pair: pair[0].limit.action != "stop")
    return over[0] if over else None


def _limits(scope: Scope, period: str, budget: Budget) -> list[Limit]:
    units: tuple[tuple[Unit, float | None], ...] = (
        ("tokens", budget.tokens), ("cost", budget.cost),
    )  # fmt: skip
    return [
        Limit(scope, period, unit, limit, budget.action, budget.warn_at, budget.step)
        for unit, limit in units
        if limit is not None
    ]
