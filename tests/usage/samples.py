"""Calls for tests of the usage room."""

from __future__ import annotations

from pathlib import Path

from claw_engine.config.sections.budgets import Budget, BudgetsSettings
from claw_engine.messages import Usage
from claw_engine.usage.calibration import Calibration
from claw_engine.usage.ledger import Ledger
from claw_engine.usage.meter import Caller, Meter, Over, Ticket
from claw_engine.usage.records import Spent
from claw_engine.world import World
from tests.support.fakes import START_MS, fake_world

PRICES = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}


def spent(
    tokens: int = 100, *, at: int = START_MS, session: str = "agent:main:main", sid: str = "s1",
    model: str = "fake/one", cause: str = "turn", measured: bool = True, cost: float | None = 0.5,
) -> Spent:  # fmt: skip
    """One call of `tokens` in all, a tenth of them output."""
    out = tokens // 10
    usage = Usage(tokens - out, out, 0, 0, tokens)
    return Spent(at, session, sid, "main", "run", "call-1", model, cause, "stop", usage, measured,
                 cost)  # fmt: skip


def caller(sid: str = "s1", *, prices: dict[str, float] | None = PRICES) -> Caller:
    return Caller(f"agent:main:{sid}", sid, "main", f"run-{sid}", "fake/one", prices)


class Desk:
    """A meter on a fake clock, its budgets and what it told."""

    def __init__(self, root: Path, world: World | None = None) -> None:
        self.world = world or fake_world()
        self.troubles: list[str] = []
        self.told: list[str] = []
        self.board: list[str] = []
        self.budgets = BudgetsSettings()
        self.timezone = "UTC"
        self.anew: list[Path] = []
        self.ledger = Ledger(
            self.world, root / "usage" / "usage.db", self.troubles.append, self.anew.append
        )
        self.calibration = Calibration(self.world, root / "usage" / "calibration.json")
        self.meter = Meter(
            self.world.clock, self.ledger, self.calibration, lambda: self.budgets,
            lambda: self.timezone, lambda key: key.rpartition(":")[2],
            lambda code, title: self.board.append(code),
        )  # fmt: skip

    def limit(self, scope: str, **fields: object) -> None:
        """Set one budget, the other is none."""
        self.budgets = BudgetsSettings(**{scope: Budget(**fields)})

    async def admit(self, tokens: int, who: Caller | None = None) -> Ticket | Over:
        who = who or caller()
        await self.meter.ready(who.session_id)
        return self.meter.admit(who, tokens, lambda level, text: self.told.append(text))

    async def call(self, tokens: int, who: Caller | None = None) -> None:
        """A whole call that is let through."""
        who = who or caller()
        ticket = await self.admit(tokens, who)
        assert isinstance(ticket, Ticket)
        now = self.world.clock.now_ms()
        self.meter.settle(ticket, spent(tokens, at=now, session=who.session_key,
                                        sid=who.session_id))  # fmt: skip
