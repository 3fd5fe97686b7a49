"""One run's accounts: each of its calls is admitted, asked about if a budget says so, and counted.

The question goes through the approvals broker, so the run is parked while it waits. Without a
meter nothing is counted. Knows no ledger.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from claw_engine.agent.collect import Collector
from claw_engine.agent.context.tokens import estimate
from claw_engine.agent.parking import Parking
from claw_engine.agent.steps import Steps
from claw_engine.approvals.model import (
    AlwaysOffer,
    ApprovalAsk,
    ApprovalKind,
    Binding,
    Decision,
)
from claw_engine.errors import ClawError
from claw_engine.messages import Usage
from claw_engine.models.base import ModelRef
from claw_engine.runs import Run
from claw_engine.usage.budgets import amount, refusal
from claw_engine.usage.meter import Caller, Meter, Over, Ticket
from claw_engine.usage.price import cost_of
from claw_engine.usage.records import Spent, Sums

if TYPE_CHECKING:
    from claw_engine.approvals.broker import Broker


class BudgetReached(ClawError):
    """A call was not made: it does not fit the budget."""

    def __init__(self, over: Over, why: str = "") -> None:
        title, hint = refusal(over.standing, over.more, over.until)
        super().__init__(f"{title}{f' {why}' if why else ''}", hint=hint)


class Books:
    """Accounts of one run, for one model."""

    def __init__(
        self, meter: Meter, caller: Caller, broker: Broker, parking: Parking, steps: Steps
    ) -> None:
        self._meter = meter
        self._caller = caller
        self._broker = broker
        self._parking = parking
        self._steps = steps
        self.sums = Sums()
        """What this run has spent so far."""

    @classmethod
    async def of(
        cls, meter: Meter | None, ref: ModelRef, run: Run, broker: Broker, parking: Parking,
        steps: Steps,
    ) -> Books | None:  # fmt: skip
        """The accounts of a run; a rehearsal has none: it costs nobody anything."""
        if meter is None or not ref.is_ai:
            return None
        await meter.open()
        session_id = meter.session_id(run.session_key)
        caller = Caller(run.session_key, session_id, run.agent_id, run.id, ref.name, ref.cost)
        return cls(meter, caller, broker, parking, steps)

    @property
    def ratio(self) -> float:
        """By what estimates for this model are multiplied."""
        return self._meter.ratio(self._caller.model)

    async def admit(self, estimated: int, cause: str = "") -> Ticket:
        """Let a call of so many estimated tokens go, or wait for the operator's word.

        `estimated` is without the ratio. Raises BudgetReached: then nothing may be sent.
        """
        meter, tokens = self._meter, round(estimated * self.ratio)
        while True:
            if meter.bound:
                await meter.ready(self._caller.session_id)
            found = meter.admit(self._caller, tokens, self._steps.notice, cause)
            if isinstance(found, Ticket):
                return found
            if found.standing.limit.action == "stop":
                raise BudgetReached(found)
            await self._ask(found)

    def settle(
        self, ticket: Ticket, estimated: int, answer: Collector, *, call_id: str, cause: str,
        status: str, silent: bool,
    ) -> Spent | None:  # fmt: skip
        """Count a call that has ended; None: the provider refused it before it said anything.

        `silent`: no event came. Where the provider did not count, both sides are estimated.
        """
        usage, caller = answer.usage, self._caller
        if usage is None and silent and status == "error":
            self._meter.settle(ticket, None)
            return None
        measured = usage is not None
        if usage is None:
            produced = round(estimate(answer.produced) * self.ratio)
            usage = Usage(ticket.tokens, produced, total=ticket.tokens + produced)
        else:
            counted = usage.input + usage.cache_read + usage.cache_write
            self._meter.learn(caller.model, estimated, counted)
            if not usage.total:
                usage = replace(usage, total=counted + usage.output)
        spent = Spent(
            self._meter.clock.now_ms(), caller.session_key, caller.session_id, caller.agent_id,
            caller.run_id, call_id, caller.model, cause, status, usage, measured,
            cost_of(usage, caller.prices),
        )  # fmt: skip
        self._meter.settle(ticket, spent)
        self.sums.add(spent)
        return spent

    def footer(self, mode: str) -> str:
        """The line under an answer: mode `tokens` or `full`, else nothing (agent digest §1.10)."""
        if mode not in ("tokens", "full", "on") or not self.sums.calls:
            return ""
        from claw_engine.usage.words import spent_line  # only where somebody wants the line

        line = spent_line(self.sums)
        return f"{line} · session {self._caller.session_key}" if mode == "full" else line

    async def _ask(self, over: Over) -> None:
        """Wait for the operator's word, parked. One question a budget at a time: who comes second
        looks again after it. Raises BudgetReached."""
        self._steps.notice("warn", f"Waiting for you: {over.standing.stands(over.more)}.")
        self._parking.begin(1)
        try:
            async with self._parking(), self._meter.question(over):
                still = self._meter.still(over, self._caller)
                if still is not None:
                    await self._put(still)
        finally:
            self._parking.call_ended()

    async def _put(self, over: Over) -> None:
        record = await self._broker.open(self._question(over))
        try:
            ended = await self._broker.wait(record.id)
        except asyncio.CancelledError:
            await self._broker.withdraw(record.id, "stopped")
            raise
        if ended.decision is Decision.ALLOW_ONCE:
            self._meter.grant(over)
        elif ended.decision is Decision.DENY:
            raise BudgetReached(over, f"{ended.by or 'The operator'} said no.")
        else:
            raise BudgetReached(over, f"Nobody said yes ({ended.reason}).")

    def _question(self, over: Over) -> ApprovalAsk:
        caller, standing = self._caller, over.standing
        limit = standing.limit
        whose = "this session's" if limit.scope == "session" else "today's"
        up_to = replace(standing, granted=standing.next_grant(over.more))
        text = f"go on beyond {whose} budget, up to {amount(up_to.allowed, limit.unit)}"
        return ApprovalAsk(
            kind=ApprovalKind.BUDGET,
            command=text,
            cwd="",
            agent_id=caller.agent_id,
            session_key=caller.session_key,
            run_id=caller.run_id,
            tool_call_id="",
            why="",
            binding=Binding(text, "", "", (0, 0), ""),
            reasons=(standing.stands(over.more), f"{limit.setting} is {limit.limit:g}"),
            always=AlwaysOffer(refusal=f"raise it in the settings: {limit.setting}"),
        )
