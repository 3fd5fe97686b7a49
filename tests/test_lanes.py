"""Lanes: order, widths, parking, and a state machine that looks for lost wake-ups."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from claw_engine.events import Event
from claw_engine.lanes import LaneCycle, Lanes, LanesDraining, Ticket
from tests.support.fakes import FakeClock, settle


def make(widths: dict[str, int] | None = None) -> tuple[Lanes, list[Event], FakeClock]:
    events: list[Event] = []
    clock = FakeClock()
    return Lanes(clock, events.append, widths or {"main": 4, "cron": 1}), events, clock


async def test_second_message_waits_for_the_first() -> None:
    lanes, _, _ = make()
    first, second = lanes.enqueue("r1", "s"), lanes.enqueue("r2", "s")
    await first.acquire()
    assert second.place == "session"
    assert lanes.waiting_behind(second) == ["r1"]
    first.release()
    await second.acquire()
    assert second.place == "running"


async def test_four_parked_runs_leave_room_for_a_fifth() -> None:
    lanes, _, _ = make()
    tickets = [lanes.enqueue(f"r{n}", f"s{n}") for n in range(5)]
    for ticket in tickets[:4]:
        await ticket.acquire()
    assert tickets[4].place == "global"
    tickets[0].park()
    assert tickets[4].place == "running"
    assert next(s for s in lanes.status() if s.lane == "main").parked == 1


async def test_a_decided_run_goes_before_those_that_wait() -> None:
    lanes, _, _ = make({"main": 1})
    parked, running, waiting = (lanes.enqueue(f"r{n}", f"s{n}") for n in range(3))
    await parked.acquire()
    parked.park()
    await running.acquire()
    back = asyncio.create_task(parked.unpark())
    await settle()
    assert (parked.place, waiting.place) == ("returning", "global")
    running.release()
    await back
    assert (parked.place, waiting.place) == ("running", "global")


async def test_pause_holds_new_work_but_not_a_decided_run() -> None:
    lanes, _, _ = make({"main": 2})
    first = lanes.enqueue("r1", "s1")
    await first.acquire()
    first.park()
    lanes.pause()
    new = lanes.enqueue("r2", "s2")
    back = asyncio.create_task(first.unpark())
    await back
    assert (first.place, new.place) == ("running", "global")
    lanes.resume()
    assert new.place == "running"


async def test_wait_is_measured_and_long_waits_warn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "claw.lanes")
    lanes, _, clock = make({"main": 1})
    first, second = lanes.enqueue("r1", "s1"), lanes.enqueue("r2", "s2")
    await first.acquire()
    await clock.advance(2.5)
    first.release()
    assert await second.acquire() == 2500
    warned = [r for r in caplog.records if r.levelname == "WARNING"]
    assert "lane dequeue: lane=main waitMs=2500 queueSize=0" in warned[0].getMessage()


@pytest.mark.parametrize("when", ["session", "global", "parked", "returning"])
async def test_a_cancelled_ticket_leaves_no_trace(when: str) -> None:
    lanes, _, _ = make({"main": 1})
    blocker = lanes.enqueue("b", "s" if when == "session" else "other")
    await blocker.acquire()
    if when in ("parked", "returning"):
        blocker.release()
    ticket = lanes.enqueue("t", "s")
    if when in ("session", "global"):
        task = asyncio.create_task(ticket.acquire())
        await settle()
        assert ticket.place == when
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        blocker.release()
    else:
        await ticket.acquire()
        ticket.park()
        if when == "returning":
            holder = lanes.enqueue("h", "h")
            await holder.acquire()
            task = asyncio.create_task(ticket.unpark())
            await settle()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            holder.release()
        else:
            ticket.release()
    assert [(s.active, s.queued, s.parked) for s in lanes.status()] == [(0, 0, 0)]
    await lanes.enqueue("next", "s").acquire()


async def test_a_new_generation_ignores_what_still_runs_and_keeps_what_waits() -> None:
    lanes, _, _ = make({"main": 1})
    zombie, waiting, next_ = (lanes.enqueue(f"r{n}", f"s{n}") for n in range(3))
    await zombie.acquire()
    lanes.drain()
    with pytest.raises(LanesDraining):
        lanes.enqueue("late", "s")
    lanes.reset()
    assert (zombie.place, waiting.place, next_.place) == ("stale", "running", "global")
    zombie.park()
    await zombie.unpark()  # a zombie waits for nobody
    zombie.release()
    assert (waiting.place, next_.place) == ("running", "global")
    waiting.release()
    assert next_.place == "running"
    assert lanes.generation == 1
    lanes.enqueue("late", "s")


async def test_a_moved_run_goes_first_but_not_before_one_that_returns() -> None:
    lanes, _, _ = make({"main": 1})
    parked = lanes.enqueue("p", "p")
    await parked.acquire()
    parked.park()
    holder, first, second = (lanes.enqueue(f"r{n}", f"s{n}") for n in range(3))
    back = asyncio.create_task(parked.unpark())
    await settle()
    assert lanes.move("r2", 0)
    assert not lanes.move("r0", 0)
    assert lanes.blockers("r1") == ["r0", "p", "r2"]
    holder.release()
    await back
    parked.release()
    assert (second.place, first.place) == ("running", "global")


async def test_a_run_never_waits_for_itself() -> None:
    lanes, _, _ = make({"main": 4, "nested": 1})
    a, b = lanes.enqueue("a", "sa"), lanes.enqueue("b", "sb")
    await a.acquire()
    await b.acquire()
    with pytest.raises(LaneCycle):
        lanes.enqueue("aa", "sa", "nested", parent="a")
    child = lanes.enqueue("ab", "sb", "nested", parent="a")
    a.park()
    assert child.place == "session"
    with pytest.raises(LaneCycle):
        lanes.enqueue("ba", "sa", "nested", parent="b")
    assert lanes.enqueue("bc", "sc", "nested", parent="b").place == "running"


class LaneHistory(RuleBasedStateMachine):
    """Any order of enqueue, park, return, release, pause: widths hold and nobody is forgotten."""

    tickets = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.lanes = Lanes(FakeClock(), lambda _event: None, {"main": 2, "sub": 1})
        self.all: list[Ticket] = []
        self.returns: list[asyncio.Task[None]] = []

    def teardown(self) -> None:
        for task in self.returns:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*self.returns, return_exceptions=True))
        self.loop.close()
        asyncio.set_event_loop(None)

    @rule(target=tickets, session=st.sampled_from("abc"), lane=st.sampled_from(["main", "sub"]))
    def enqueue(self, session: str, lane: str) -> Ticket:
        ticket = self.lanes.enqueue(f"r{len(self.all)}", session, lane)
        self.all.append(ticket)
        return ticket

    @rule(ticket=tickets)
    def park(self, ticket: Ticket) -> None:
        ticket.park()

    @rule(ticket=tickets)
    def come_back(self, ticket: Ticket) -> None:
        if ticket.place == "parked":
            self.returns.append(self.loop.create_task(ticket.unpark()))
            self.loop.run_until_complete(settle(3))

    @rule(ticket=tickets)
    def release(self, ticket: Ticket) -> None:
        ticket.release()

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        if paused:
            self.lanes.pause()
        else:
            self.lanes.resume()

    @invariant()
    def widths_hold_and_no_wake_up_is_lost(self) -> None:
        by_lane: dict[str, list[Ticket]] = {"main": [], "sub": []}
        for ticket in self.all:
            by_lane[ticket.lane].append(ticket)
        for lane, width in (("main", 2), ("sub", 1)):
            places = [t.place for t in by_lane[lane]]
            running = places.count("running")
            assert running <= width
            if running < width:
                assert "returning" not in places
                assert self.lanes.paused or "global" not in places
        for session in "abc":
            holding = [
                t
                for t in self.all
                if t._session.name == f"session:{session}"
                and t.place in ("global", "running", "parked", "returning")
            ]
            assert len(holding) <= 1
            if not holding:
                assert not [
                    t
                    for t in self.all
                    if t._session.name == f"session:{session}" and t.place == "session"
                ]


TestLaneHistory = LaneHistory.TestCase
TestLaneHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
