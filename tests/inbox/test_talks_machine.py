"""A state machine over talks and lanes: any history of sending, parking, deciding, expiring,
aborting, nesting, pausing and generation resets keeps order and caps, and ends.

`soak(n)` plays n histories; the suite a hundred or so (CLAW_HISTORIES changes that).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from claw_engine.agent.ports import RunResult
from claw_engine.agent.steering import Steering
from claw_engine.config.settings import Settings
from claw_engine.inbox.entry import Entry
from claw_engine.inbox.model import InboundMessage
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.queue_modes import Drop, QueueMode, QueueRules
from claw_engine.inbox.talks import Talks
from claw_engine.lanes import LaneCycle, Lanes, Ticket
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.runs import AbortReason, Run, Runs, RunState
from tests.support.fakes import FakeClock, fake_world, settle

SESSIONS = "abc"
WIDTHS = {"main": 2, "nested": 1}
EXPIRY_S = 30.0


class Quiet:
    """Journal, sessions and approvals that always succeed at once."""

    async def mark(self, run_id: str, kind: str, detail: str = "") -> None: ...
    def mark_soon(self, run_id: str, kind: str, detail: str = "") -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def sync(self) -> None: ...
    async def cancel(self, run_id: str, reason: str) -> None: ...
    def unanswered(self, run_id: str) -> tuple[str, ...]: ...
    async def update(self, key: str, fn: object) -> None: ...
    def get(self, key: str) -> None: ...


class Play:
    """A run that does what the history tells it: wait for the operator, ask another run, end."""

    def __init__(self, world: Machine, run: Run, ticket: Ticket, steps: Any, marked: Any) -> None:
        self.world, self.run, self.ticket, self.steps = world, run, ticket, steps
        self.orders: asyncio.Queue[Callable[[], Any] | None] = asyncio.Queue()
        self.decided = asyncio.Event()
        self.steering = Steering()
        self.books = None
        self.result = RunResult("aborted", "user")
        self.executing = False
        self.marked = marked

    async def execute(self, wait_ms: int) -> RunResult:
        self.executing = True
        self.world.plays[self.run.id] = self
        self.steps.state(RunState.BUILDING, "run started")
        self.steps.tell(TraceKind.RUN_STARTED)
        self.steering.start()
        try:
            await self.marked()
            while (order := await self.orders.get()) is not None:
                await order()
                self.steering.take()
            self.steps.state(RunState.DELIVERING, "answered")
            self.result = RunResult("done", "stop", "answer")
            return self.result
        finally:
            self.executing = False
            self.steering.abandon()
            self.world.plays.pop(self.run.id, None)

    async def park(self) -> None:
        self.decided.clear()
        self.ticket.park()
        self.steps.state(RunState.PARKED, "asks")
        expiry = self.world.clock.call_later(EXPIRY_S, self.decided.set)
        try:
            await self.decided.wait()
        finally:
            expiry.cancel()
        await self.ticket.unpark()
        self.steps.state(RunState.TOOL, "decided")

    async def nest(self, session: str) -> None:
        child = self.world.entry(session, QueueMode.FOLLOWUP)
        try:
            self.world.talks.start(child, lane="nested", parent_id=self.run.id)
        except LaneCycle:
            return
        self.ticket.park()
        self.steps.state(RunState.PARKED, "asks another run")
        await child.done.wait()
        await self.ticket.unpark()
        self.steps.state(RunState.TOOL, "answered")


class Machine(RuleBasedStateMachine):
    """The history; every rule leaves the loop settled."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.clock = FakeClock()
        self.plays: dict[str, Play] = {}
        self.entries: list[Entry] = []
        self.ended: dict[str, int] = {}
        self.started: dict[str, list[int]] = {s: [] for s in SESSIONS}
        self.out_of_turn: set[str] = set()
        self.widest = 3
        self.runs = Runs(self.clock, lambda _event: None)
        self.lanes = Lanes(self.clock, lambda _event: None, WIDTHS)
        quiet: Any = Quiet()
        deps = DispatchDeps(
            world=fake_world(self.clock), publish=lambda _event: None, runs=self.runs,
            lanes=self.lanes, journal=quiet, sessions=quiet, agent=self, approvals=quiet,  # type: ignore[arg-type]  # the machine plays the agent
            settings=Settings,
        )  # fmt: skip
        self.talks = Talks(deps, self.hear, lambda entry, result: entry.settle(result))

    def open(self, run: Run, message: object, ticket: Ticket, steps: Any, marked: Any) -> Play:
        """What the supervisor asks of the agent."""
        return Play(self, run, ticket, steps, marked)

    def hear(self, event: TraceEvent) -> None:
        if event.kind is TraceKind.RUN_ENDED:
            self.ended[event.run_id] = self.ended.get(event.run_id, 0) + 1
        # A message that another run answers has no turn of its own: collected ones follow their
        # run, and one that the cap folded into a summary follows the newer message it went with.
        own = "answeredBy" not in event.data
        if event.kind is TraceKind.RUN_STARTED and own and event.run_id not in self.out_of_turn:
            number = int(event.run_id.removeprefix("m"))
            self.started[event.session_key].append(number)

    def act(self, what: Callable[[], object]) -> None:
        """Do something on the loop and let everybody react."""

        async def inside() -> None:
            what()
            await settle(30)

        self.loop.run_until_complete(inside())

    def entry(self, session: str, mode: QueueMode, cap: int = 20) -> Entry:
        number = len(self.entries)
        message = InboundMessage(f"m{number}", session, "main", f"text {number}", "console", 0)
        entry = Entry(message, QueueRules(mode, 0, cap, Drop.SUMMARIZE))
        self.entries.append(entry)
        return entry

    def chosen(self, plays: list[Play], pick: int) -> Play:
        return plays[pick % len(plays)]

    def idle(self) -> list[Play]:
        return [p for p in self.plays.values() if p.run.state not in (RunState.PARKED,)]

    def parked(self) -> list[Play]:
        return [p for p in self.plays.values() if p.run.state is RunState.PARKED]

    @rule(
        session=st.sampled_from(SESSIONS),
        mode=st.sampled_from(QueueMode),
        cap=st.sampled_from([1, 3, 20]),
    )
    def send(self, session: str, mode: QueueMode, cap: int) -> None:
        entry = self.entry(session, mode, cap)
        if mode in (QueueMode.INTERRUPT, QueueMode.STEER, QueueMode.STEER_BACKLOG):
            self.out_of_turn.add(entry.id)
        self.act(lambda: self.talks.admit(entry))

    @rule(session=st.sampled_from(SESSIONS))
    def send_nested(self, session: str) -> None:
        entry = self.entry(session, QueueMode.FOLLOWUP)
        self.out_of_turn.add(entry.id)
        self.act(lambda: self.talks.start(entry, lane="nested"))

    @precondition(lambda self: self.idle())
    @rule(pick=st.integers(0, 9))
    def park(self, pick: int) -> None:
        play = self.chosen(self.idle(), pick)
        self.act(lambda: play.orders.put_nowait(play.park))

    @precondition(lambda self: self.idle())
    @rule(pick=st.integers(0, 9), session=st.sampled_from(SESSIONS))
    def nest(self, pick: int, session: str) -> None:
        play = self.chosen(self.idle(), pick)
        before = len(self.entries)
        self.out_of_turn.add(f"m{before}")
        self.act(lambda: play.orders.put_nowait(lambda: play.nest(session)))
        if len(self.entries) == before:  # not done yet: the run waits for a slot
            self.out_of_turn |= {f"m{n}" for n in range(before, before + 50)}

    @precondition(lambda self: self.parked())
    @rule(pick=st.integers(0, 9))
    def decide(self, pick: int) -> None:
        self.act(self.chosen(self.parked(), pick).decided.set)

    @rule()
    def expire(self) -> None:
        self.loop.run_until_complete(self.clock.advance(EXPIRY_S))
        self.act(lambda: None)

    @precondition(lambda self: self.idle())
    @rule(pick=st.integers(0, 9))
    def finish(self, pick: int) -> None:
        play = self.chosen(self.idle(), pick)
        self.act(lambda: play.orders.put_nowait(None))

    @precondition(lambda self: self.runs.active())
    @rule(pick=st.integers(0, 9))
    def abort(self, pick: int) -> None:
        active = self.runs.active()
        self.act(lambda: self.runs.abort(active[pick % len(active)].id, AbortReason.USER))

    @precondition(lambda self: self.runs.active())
    @rule(pick=st.integers(0, 9), position=st.integers(0, 3))
    def move(self, pick: int, position: int) -> None:
        active = self.runs.active()
        run = active[pick % len(active)]
        entry = self.entries[int(run.id.removeprefix("m"))]
        waiting = self.talks.waiting(run.session_key)
        self.out_of_turn |= {e.id for e in waiting} | {entry.id}
        self.act(lambda: self.talks.move(entry, position))

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        self.act(self.lanes.pause if paused else self.lanes.resume)

    @rule(width=st.integers(1, 2))
    def configure(self, width: int) -> None:
        # Running work is not stopped by a smaller width: the cap is the widest there was.
        self.act(lambda: self.lanes.configure("main", width + 1))

    @rule()
    def new_generation(self) -> None:
        self.act(self.lanes.reset)

    def tickets(self) -> list[Ticket]:
        cases = (case for talk in self.talks._talks.values() for case in talk.cases.values())
        return [case.ticket for case in cases]

    @invariant()
    def caps_hold_and_no_wake_up_is_lost(self) -> None:
        tickets = self.tickets()
        for status in self.lanes.status():
            mine = [t.place for t in tickets if t.lane == status.lane]
            assert status.active <= max(status.width, self.widest)
            assert mine.count("running") == status.active
            if mine.count("running") < status.width:
                assert "returning" not in mine
                assert self.lanes.paused or "global" not in mine
        for talk in self.talks._talks.values():
            assert talk.cases or not talk.queue, "queued messages and nothing that will start them"
            live = [c.ticket for c in talk.cases.values()
                    if c.ticket.place in ("global", "running", "parked", "returning")]  # fmt: skip
            assert len(live) <= 1, "one run at a time in a session"

    @invariant()
    def order_holds_and_ends_are_told_once(self) -> None:
        for numbers in self.started.values():
            plain = [n for n in numbers if f"m{n}" not in self.out_of_turn]
            assert plain == sorted(plain)
        assert all(count == 1 for count in self.ended.values())
        for entry in self.entries:
            if entry.result is not None:
                assert self.ended.get(entry.id) == 1

    def wind_up(self) -> None:
        for play in list(self.plays.values()):
            play.decided.set()
            if play.run.state is not RunState.PARKED:
                play.orders.put_nowait(None)

    def teardown(self) -> None:
        """Everybody decides and finishes: then every message must have its end."""
        self.act(self.lanes.resume)
        for _ in range(6 * len(self.entries) + 10):
            self.act(self.wind_up)
            if not self.runs.active():
                break
        try:
            stuck = [(run.id, run.state.value) for run in self.runs.active()]
            assert stuck == [], stuck
            assert [e.id for e in self.entries if e.result is None and e.run is not None] == []
            assert all((s.active, s.queued, s.parked) == (0, 0, 0) for s in self.lanes.status())
        finally:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.close()
            asyncio.set_event_loop(None)


def soak(histories: int) -> None:
    """Play this many histories. Raises on the first that breaks an invariant."""
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=histories, stateful_step_count=40, deadline=None, database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


def test_histories() -> None:
    soak(int(os.environ.get("CLAW_HISTORIES", "120")))
