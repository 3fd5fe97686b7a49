"""Settings of budgets (`claw.budgets`): how much a session and a day may cost."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from claw_engine.config.sections.base import Count, Section

Share = Annotated[float, Meta(gt=0, le=1)]
Positive = Annotated[float, Meta(gt=0)]


class Budget(Section, frozen=True):
    """`tokens` of input and output, `cost` in the currency of the prices; None = no limit.

    At the limit `action` decides; `warn_at` are shares of it that are told once each. `step` is
    the share of the limit that one `y` adds when `action` is ask.
    """

    tokens: Count | None = None
    cost: Positive | None = None
    action: Literal["warn", "ask", "stop"] = "ask"
    warn_at: tuple[Share, ...] = (0.8,)
    step: Positive = 0.25

    @property
    def binds(self) -> bool:
        """Whether it sets a limit."""
        return self.tokens is not None or self.cost is not None


class BudgetsSettings(Section, frozen=True):
    """`session`: since the session began; `day`: since midnight in agents.defaults.userTimezone."""

    session: Budget = Budget()
    day: Budget = Budget()

    @property
    def bind(self) -> bool:
        """Whether there is any limit at all."""
        return self.session.binds or self.day.binds
