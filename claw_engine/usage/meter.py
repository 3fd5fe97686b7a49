"""Counts every call, holds it against the budgets before it is made, corrects the estimates.

What budgets need of the past is read from the ledger once a day and once a session; from then on
it is kept in memory, so that a call waits for no disk. Knows no agent: who calls says who it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from msgspec import Struct

from claw_engine.errors import ClawError
from claw_engine.world import Clock

if TYPE_CHECKING:
    import sqlite3

    from claw_engine.config.sections.budgets import BudgetsSettings
    from claw_engine.usage.budgets import Limit, Standing
    from claw_engine.usage.calibration import Calibration
    from claw_engine.usage.days import Day
    from claw_engine.usage.desk import UsageDesk
    from claw_engine.usage.ledger import Ledger
    from claw_engine.usage.records import Spent, Sums

log = logging.getLogger("claw.usage")

SESSIONS = 256
"""Sessions whose sums are kept in memory."""

Notice = Callable[[str, str], None]


class Caller(Struct, frozen=True):
    """Who calls which model at what prices."""

    session_key: str
    session_id: str
    agent_id: str
    run_id: str
    model: str
    prices: Mapping[str, float] | None


class Ticket(Struct, eq=False):
    """A call that may be made; until it is settled it counts as under way."""

    caller: Caller
    tokens: int
    cost: float
    number: int
    """In the ledger."""


class Over(Struct, frozen=True):
    """A budget that a call does not fit into, and what the call needs."""

    standing: Standing
    more: float
    until: str


class Meter:
    """One for the engine; loop thread only. `settings` and `timezone` give what holds now."""

    def __init__(
        self, clock: Clock, ledger: Ledger, calibration: Calibration,
        settings: Callable[[], BudgetsSettings], timezone: Callable[[], str],
        session_id: Callable[[str], str], tell: Notice = lambda code, title: None,
    ) -> None:  # fmt: skip
        """`session_id` gives the id of a session's present life by its key, "" without one; `tell`
        puts a notice (code, title) before all operators."""
        self.clock = clock
        self.ledger = ledger
        self.calibration = calibration
        self._questions: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = (
            WeakValueDictionary()
        )
        self.session_id = session_id
        self._tell = tell
        self._settings = settings
        self._timezone = timezone
        self._day: tuple[Day, Sums] | None = None
        self._calendar: tuple[str, Day] | None = None
        self._sessions: dict[str, Sums] = {}
        self._tickets: set[Ticket] = set()
        self._granted: dict[tuple[str, str, str], float] = {}
        self._warned: set[tuple[object, ...]] = set()
        self._loading: list[list[Spent]] = []
        self._saving: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._unread: set[str] = set()
        """Periods (days and session ids) of which the past could not be read yet."""

    @property
    def where(self) -> tzinfo:
        """The person's time zone now: where days begin."""
        from claw_engine.usage.days import zone  # what budgets need is no part of a start

        return zone(self._timezone())

    def desk(self) -> UsageDesk:
        """Who answers questions about what was spent."""
        from claw_engine.usage.desk import UsageDesk

        return UsageDesk(self)

    async def open(self) -> None:
        """Have what earlier engines learnt about estimates, and their ledger open: a damaged one
        is told before the first call. Never raises; each file once."""
        if self._opening is None:
            loop = asyncio.get_running_loop()
            self._opening = loop.create_task(self._open(), name="usage opening")
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        if not self.calibration.loaded:
            await self.calibration.load()
        await self.ledger.open()

    # ── estimates ───────────────────────────────────────────────────────────────────────────

    def ratio(self, model: str) -> float:
        """By what an estimate for this model is multiplied."""
        return self.calibration.ratio(model)

    def learn(self, model: str, estimated: int, counted: int) -> None:
        """A finished call's input as we and its provider counted it."""
        if self.calibration.learn(model, estimated, counted) and self._saving is None:
            loop = asyncio.get_running_loop()
            self._saving = loop.create_task(self.calibration.save(), name="usage calibration")
            self._saving.add_done_callback(self._saved)

    def _saved(self, task: asyncio.Task[None]) -> None:
        self._saving = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("calibration is not written: %s", error)

    # ── before a call ───────────────────────────────────────────────────────────────────────

    @property
    def bound(self) -> bool:
        """Whether there is any budget: without one `ready` has nothing to wait for."""
        return self._settings().bind

    async def ready(self, session_id: str) -> None:
        """Have in memory what `judge` needs. Never raises: a ledger that cannot be read is told
        by its own notice, and what is known counts."""
        from claw_engine.usage import schema
        from claw_engine.usage.records import Sums

        chosen = self._settings()
        if chosen.day.binds:
            day = self._today()
            if self._day is None or self._day[0] != day or day.name in self._unread:
                inside = _inside(day)
                sums = await self._load(
                    day.name, lambda c: schema.between(c, day.start, day.end), inside
                )
                if sums is not None or self._day is None or self._day[0] != day:
                    self._day = (day, sums or Sums())
        if chosen.session.binds and (
            session_id not in self._sessions or session_id in self._unread
        ):
            sums = await self._load(
                session_id, lambda c: schema.of_session(c, session_id),
                lambda s: s.session_id == session_id,
            )  # fmt: skip
            if sums is None:
                sums = self._sessions.get(session_id) or Sums()
            if session_id not in self._sessions and len(self._sessions) >= SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[session_id] = sums

    def admit(self, caller: Caller, tokens: int, notice: Notice, cause: str = "") -> Ticket | Over:
        """Take a call in, or say which budget it does not fit into. `tokens` is its estimated
        input; `notice` is told once what was reached. Call `ready` first."""
        from claw_engine.usage import budgets
        from claw_engine.usage.price import at_least

        cost = at_least(tokens, caller.prices)
        if not self.bound:
            return self._taken(caller, tokens, cost, cause)
        standings = [(s, self._needs(s.limit, tokens, cost)) for s in self.standings(caller)]
        found = budgets.worst(standings)
        for standing, more in standings:
            if standing.limit.unit == "cost" and cost is None:
                self._tell_unpriced(standing.limit, caller, notice)
            if found is None or standing is not found[0]:
                self._tell_passed(standing, more, notice)
        if found is not None:
            return Over(found[0], found[1], self._until())
        return self._taken(caller, tokens, cost, cause)

    def question(self, over: Over) -> asyncio.Lock:
        """Held while the operator is asked about a budget."""
        return self._questions.setdefault(over.standing.limit.key, asyncio.Lock())

    def still(self, over: Over, caller: Caller) -> Over | None:
        """The same budget now, if the call does not fit yet."""
        for standing in self.standings(caller):
            if standing.limit.key == over.standing.limit.key and standing.over(over.more):
                return Over(standing, over.more, self._until())
        return None

    def grant(self, over: Over) -> None:
        """The operator lets a budget be passed, up to its next step."""
        key = over.standing.limit.key
        self._granted[key] = max(self._granted.get(key, 0.0), over.standing.next_grant(over.more))

    def standings(self, caller: Caller) -> list[Standing]:
        """Where each budget of a session and of today stands, as far as it is in memory."""
        from claw_engine.usage import budgets
        from claw_engine.usage.budgets import Standing
        from claw_engine.usage.records import Sums

        day = self._today()
        found = []
        for limit in budgets.limits_of(self._settings(), day.name, caller.session_id):
            if limit.scope == "day":
                sums = self._day[1] if self._day is not None and self._day[0] == day else Sums()
            else:
                sums = self._sessions.get(limit.period) or Sums()
            spent = budgets.spent_of(sums, limit.unit)
            granted = self._granted.get(limit.key, 0.0)
            found.append(Standing(limit, spent, self._under_way(limit), granted))
        return found

    # ── after a call ────────────────────────────────────────────────────────────────────────

    def settle(self, ticket: Ticket, spent: Spent | None) -> None:
        """The call has ended; None: it cost nothing."""
        self._tickets.discard(ticket)
        self.ledger.end(ticket.number, spent)
        if spent is None:
            return
        if self._day is not None and _inside(self._day[0])(spent):
            self._day[1].add(spent)
        if (sums := self._sessions.get(spent.session_id)) is not None:
            sums.add(spent)
        for since in self._loading:
            since.append(spent)

    async def close(self) -> None:
        """Write everything down. Never raises."""
        under_way = [task for task in (self._saving, self._opening) if task is not None]
        if under_way:
            await asyncio.wait(under_way)
        await self.ledger.close()

    # ── inside ──────────────────────────────────────────────────────────────────────────────

    def _taken(self, caller: Caller, tokens: int, cost: float | None, cause: str) -> Ticket:
        from claw_engine.messages import Usage
        from claw_engine.usage.records import Spent

        estimated = Spent(
            self.clock.now_ms(), caller.session_key, caller.session_id, caller.agent_id,
            caller.run_id, "", caller.model, cause, "running", Usage(tokens, 0, total=tokens),
            False, cost,
        )  # fmt: skip
        ticket = Ticket(caller, tokens, cost or 0.0, self.ledger.begin(estimated))
        self._tickets.add(ticket)
        return ticket

    def _today(self) -> Day:
        now, name = self.clock.now_ms(), self._timezone()
        if self._calendar is not None and self._calendar[0] == name:
            day = self._calendar[1]
            if day.start <= now < day.end:
                return day
        from claw_engine.usage.days import day_at, zone

        day = day_at(now, zone(name))
        self._calendar = (name, day)
        return day

    def _until(self) -> str:
        return f"{datetime.fromtimestamp(self._today().end / 1000, self.where):%Y-%m-%d %H:%M %Z}"

    async def _load(
        self, period: str, work: Callable[[sqlite3.Connection], Sums],
        mine: Callable[[Spent], bool],
    ) -> Sums | None:  # fmt: skip
        """None: it cannot be read now; the next call tries again."""
        since: list[Spent] = []
        try:
            sums = await self.ledger.read(work, lambda: self._loading.append(since))
        except ClawError as error:
            if period not in self._unread:
                log.warning("budgets start from zero: %s", error.sentence())
            self._unread.add(period)
            return None
        finally:
            self._loading = [other for other in self._loading if other is not since]
        self._unread.discard(period)
        for spent in since:
            if mine(spent):
                sums.add(spent)
        return sums

    def _under_way(self, limit: Limit) -> float:
        mine = [
            ticket
            for ticket in self._tickets
            if limit.scope == "day" or ticket.caller.session_id == limit.period
        ]
        return float(sum(t.tokens for t in mine)) if limit.unit == "tokens" else sum(
            t.cost for t in mine
        )  # fmt: skip

    def _needs(self, limit: Limit, tokens: int, cost: float | None) -> float:
        return float(tokens) if limit.unit == "tokens" else cost or 0.0

    def _tell_passed(self, standing: Standing, more: float, notice: Notice) -> None:
        limit = standing.limit
        fresh = [s for s in standing.passed(more) if (*limit.key, s) not in self._warned]
        self._warned.update((*limit.key, share) for share in fresh)
        if not fresh:
            return
        whose = "this session" if limit.scope == "session" else "today"
        reached = "is used up" if fresh[-1] >= 1 else f"is used to {fresh[-1]:.0%}"
        text = f"The budget of {whose} {reached}: {standing.stands(more)} ({limit.setting})."
        notice("warn", text)
        if limit.scope == "day":  # whoever looks elsewhere should see it too
            self._tell(f"budget-day-{limit.unit}", text)

    def _tell_unpriced(self, limit: Limit, caller: Caller, notice: Notice) -> None:
        key = (limit.scope, limit.unit, "unpriced", caller.model)
        if key not in self._warned:
            self._warned.add(key)
            notice(
                "warn",
                f"{limit.setting} does not count {caller.model}: its price is not configured "
                "(models.providers.….models[].cost).",
            )


def _inside(day: Day) -> Callable[[Spent], bool]:
    return lambda spent: day.start <= spent.at_ms < day.end
