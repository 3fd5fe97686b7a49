"""Who answers about what was spent, as the gateway needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from claw_engine.usage.days import Day

Json = Mapping[str, object]


class UsageSource(Protocol):
    """Where the answers come from; what answers is loaded when it is asked for."""

    @property
    def bound(self) -> bool:
        """Whether there is any budget."""
        ...

    def desk(self) -> UsagePort: ...


class UsagePort(Protocol):
    """All raise ClawError when the ledger cannot be read; `days` raises ValueError."""

    def days(
        self, first: str | None, last: str | None, days: int | None, where: str | None
    ) -> Sequence[Day]: ...

    @property
    def ratios(self) -> Mapping[str, float]: ...

    async def daily(self, days: Sequence[Day]) -> Json: ...

    async def totals(
        self,
        days: Sequence[Day],
        by: Literal["session", "model", "cause", "agent", "day"],
        session: str | None,
    ) -> Json: ...

    async def sessions(self, days: Sequence[Day], session: str | None) -> Json: ...
    async def course(self, session_id: str) -> Json: ...
    async def budgets(self, session_key: str, session_id: str) -> Sequence[Json]: ...
