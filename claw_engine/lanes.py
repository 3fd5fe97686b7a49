"""Lanes: who runs now and who waits.

A run passes its session lane (width 1: one answer at a time per conversation) and then a global
lane (`main` 4, `cron` 1, `subagent` 8, `nested` 1). Order is fixed at `enqueue`. A run that waits
for a person, or for a run it started, is parked: it gives its global slot back, keeps its session
lane, and re-enters the global lane at the head. Knows no run and no session beyond their names.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

from msgspec import Struct

from claw_engine.errors import ClawError
from claw_engine.events import Event
from claw_engine.world import Clock

log = logging.getLogger("claw.lanes")

DEFAULT_WIDTHS: Mapping[str, int] = {"main": 4, "cron": 1, "subagent": 8, "nested": 1}
WAIT_WARNING_MS = 2000
"""A wait longer than this is logged as a warning (agent digest §1.1)."""


class LanesDraining(ClawError):
    """Nothing new is taken: the engine is about to stop."""

    retryable = True


class LaneCycle(ClawError):
    """A run would wait for itself: it asks a session that waits for it."""

    code = "INVALID_REQUEST"


class LanesChanged(Event, frozen=True):
    """Some lane's numbers changed; read `status` again."""

    topic: ClassVar[str] = "lanes"

    def merge_key(self) -> str:
        return "lanes"

    def merge(self, newer: Event) -> Event | None:
        return newer


class LaneStatus(Struct, frozen=True):
    """One global lane. Waits in ms; `parked` runs hold no slot."""

    lane: str
    width: int
    active: int
    queued: int
    parked: int
    last_wait_ms: int

    def to_json(self) -> dict[str, object]:
        return {
            "lane": self.lane,
            "width": self.width,
            "active": self.active,
            "queued": self.queued,
            "parked": self.parked,
            "lastWaitMs": self.last_wait_ms,
        }


class _Lane:
    __slots__ = ("active", "last_wait_ms", "name", "parked", "waiting", "width")

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.width = width
        self.active: set[Ticket] = set()
        self.parked: set[Ticket] = set()
        self.waiting: deque[Ticket] = deque()
        self.last_wait_ms = 0


Place = Literal["session", "global", "running", "parked", "returning", "stale", "released"]


class Ticket:
    """A run's place in the lanes. Use: `await acquire()`, …, `release()` (in a finally)."""

    def __init__(
        self, lanes: Lanes, run_id: str, session: _Lane, lane: _Lane, now: int, parent: str | None
    ) -> None:
        self._lanes = lanes
        self.run_id = run_id
        self.parent = parent
        self._session = session
        self._lane = lane
        self._enqueued_ms = now
        self._granted = asyncio.Event()
        self.place: Place = "session"
        self.wait_ms = 0

    @property
    def lane(self) -> str:
        return self._lane.name

    async def acquire(self) -> int:
        """Wait for the session lane and then the global one; returns the wait in ms.

        After `Lanes.reset` a run that is still going on holds no place any more. A cancelled wait
        leaves the lanes as if the ticket had never been there.
        """
        try:
            await self._granted.wait()
        except asyncio.CancelledError:
            self.release()
            raise
        return self.wait_ms

    def park(self) -> None:
        """Give the global slot back while a person decides; the session lane is kept."""
        self._lanes._park(self)

    async def unpark(self) -> None:
        """Take a global slot again, before everybody who waits for one."""
        self._lanes._return(self)
        try:
            await self._granted.wait()
        except asyncio.CancelledError:
            self.release()
            raise

    def release(self) -> None:
        """Leave both lanes, from wherever the ticket is. Safe to call twice."""
        self._lanes._release(self)


class Lanes:
    """All lanes of the engine; loop thread only."""

    def __init__(
        self,
        clock: Clock,
        publish: Callable[[Event], None],
        widths: Mapping[str, int] = DEFAULT_WIDTHS,
    ) -> None:
        self._clock = clock
        self._publish = publish
        self._global = {name: _Lane(name, max(1, width)) for name, width in widths.items()}
        self._sessions: dict[str, _Lane] = {}
        self._paused = False
        self._draining = False
        self.generation = 0

    @property
    def paused(self) -> bool:
        return self._paused

    def enqueue(
        self, run_id: str, session_key: str, lane: str = "main", parent: str | None = None
    ) -> Ticket:
        """Take a place; the order of calls is the order of runs. Unknown lanes have width 1.

        `parent` is the run that waits for this one; it must be parked while it does. Raises
        LanesDraining, and LaneCycle when the two would wait for each other for ever.
        """
        if self._draining:
            raise LanesDraining("The engine is stopping.", hint="Send it again in a moment.")
        session = self._sessions.get(session_key)
        if parent is not None and session is not None and self._waits_for(session, parent):
            raise LaneCycle(
                f"{session_key} waits for this run itself; it cannot answer it.",
                hint="Ask another session, or do not wait for the answer.",
            )
        if session is None:
            session = self._sessions[session_key] = _Lane(f"session:{session_key}", 1)
        target = self._global.get(lane)
        if target is None:
            target = self._global[lane] = _Lane(lane, 1)
        ticket = Ticket(self, run_id, session, target, self._clock.now_ms(), parent)
        session.waiting.append(ticket)
        size = len(session.waiting) + len(session.active)
        log.info("lane enqueue: lane=%s queueSize=%d", session.name, size)
        self._pump_session(session)
        self._publish(LanesChanged())
        return ticket

    def configure(self, lane: str, width: int) -> None:
        """Set a lane's width (at least 1). Running work is not stopped by a smaller one."""
        target = self._global.setdefault(lane, _Lane(lane, 1))
        target.width = max(1, width)
        self._pump_global(target)
        self._publish(LanesChanged())

    def names(self) -> list[str]:
        """The global lanes there are."""
        return list(self._global)

    def move(self, run_id: str, position: int) -> bool:
        """Give a run that waits for a global slot another place among those that have not begun
        (0 = next); False if it does not wait there."""
        for lane in self._global.values():
            fresh = [ticket for ticket in lane.waiting if ticket.place == "global"]
            mine = next((ticket for ticket in fresh if ticket.run_id == run_id), None)
            if mine is None:
                continue
            fresh.remove(mine)
            fresh.insert(max(0, min(position, len(fresh))), mine)
            back = [ticket for ticket in lane.waiting if ticket.place != "global"]
            lane.waiting = deque((*back, *fresh))
            self._publish(LanesChanged())
            return True
        return False

    def drain(self) -> None:
        """Take nothing new from here on; `reset` ends it."""
        self._draining = True

    def reset(self) -> None:
        """Start over with what waits, after a restart inside the process.

        A new generation begins: runs of an older one keep going but hold no place and free none.
        """
        self._draining = False
        self.generation += 1
        for lane in (*self._sessions.values(), *self._global.values()):
            for ticket in (*lane.active, *lane.parked):
                if ticket.place in ("running", "parked", "returning"):
                    ticket.place = "stale"
                    ticket._granted.set()
            lane.active = {ticket for ticket in lane.active if ticket.place == "global"}
            lane.parked.clear()
            lane.waiting = deque(t for t in lane.waiting if t.place != "stale")
        for session in list(self._sessions.values()):
            self._pump_session(session)
        for lane in self._global.values():
            self._pump_global(lane)
        self._publish(LanesChanged())

    def pause(self) -> None:
        """Start nothing new; what runs goes on, what is decided may return."""
        self._paused = True
        self._publish(LanesChanged())

    def resume(self) -> None:
        self._paused = False
        for lane in self._global.values():
            self._pump_global(lane)
        self._publish(LanesChanged())

    def status(self) -> list[LaneStatus]:
        """Numbers of the global lanes; those waiting for their session count as queued."""
        held: dict[str, int] = {}
        for session in self._sessions.values():
            for ticket in session.waiting:
                held[ticket.lane] = held.get(ticket.lane, 0) + 1
        return [
            LaneStatus(
                lane.name,
                lane.width,
                len(lane.active),
                len(lane.waiting) + held.get(lane.name, 0),
                len(lane.parked),
                lane.last_wait_ms,
            )
            for lane in self._global.values()
        ]

    def blockers(self, run_id: str) -> list[str]:
        """Run ids that must end or park before this one can begin; empty if none is needed."""
        for session in self._sessions.values():
            for ticket in session.waiting:
                if ticket.run_id == run_id:
                    return self.waiting_behind(ticket)
        for lane in self._global.values():
            ahead: list[str] = []
            for ticket in lane.waiting:
                if ticket.run_id == run_id:
                    return [*(t.run_id for t in lane.active), *ahead]
                ahead.append(ticket.run_id)
        return []

    def waiting_behind(self, ticket: Ticket) -> list[str]:
        """Run ids of the same session that go first."""
        ahead = [other.run_id for other in ticket._session.active if other is not ticket]
        for other in ticket._session.waiting:
            if other is ticket:
                break
            ahead.append(other.run_id)
        return ahead

    def _waits_for(self, session: _Lane, run_id: str) -> bool:
        """Whether anything ahead in a session waits, however indirectly, for a run to end."""
        lanes = {lane.name: lane for lane in self._sessions.values()}
        children: dict[str, list[Ticket]] = {}
        for lane in lanes.values():
            for ticket in (*lane.active, *lane.waiting):
                if ticket.parent is not None:
                    children.setdefault(ticket.parent, []).append(ticket)
        todo: list[Ticket] = [*session.active, *session.waiting]
        seen: set[str] = set()
        while todo:
            ticket = todo.pop()
            if ticket.run_id == run_id:
                return True
            if ticket.run_id in seen:
                continue
            seen.add(ticket.run_id)
            for child in children.get(ticket.run_id, ()):
                todo.append(child)
                home = lanes[child._session.name]
                ahead = {*self.waiting_behind(child)}
                todo += [t for t in (*home.active, *home.waiting) if t.run_id in ahead]
        return False

    def _pump_session(self, session: _Lane) -> None:
        while session.waiting and len(session.active) < session.width:
            ticket = session.waiting.popleft()
            session.active.add(ticket)
            ticket.place = "global"
            ticket._lane.waiting.append(ticket)
            lane = ticket._lane
            size = len(lane.waiting) + len(lane.active)
            log.info("lane enqueue: lane=%s queueSize=%d", lane.name, size)
            self._pump_global(lane)

    def _pump_global(self, lane: _Lane) -> None:
        while lane.waiting and len(lane.active) < lane.width:
            ticket = lane.waiting[0]
            # A pause holds new work back, not a run that was already under way.
            if self._paused and ticket.place != "returning":
                return
            lane.waiting.popleft()
            lane.active.add(ticket)
            if ticket.place == "global":
                ticket.wait_ms = max(0, self._clock.now_ms() - ticket._enqueued_ms)
                lane.last_wait_ms = ticket.wait_ms
            ticket.place = "running"
            level = logging.WARNING if ticket.wait_ms > WAIT_WARNING_MS else logging.INFO
            log.log(
                level,
                "lane dequeue: lane=%s waitMs=%d queueSize=%d",
                lane.name,
                ticket.wait_ms,
                len(lane.waiting),
            )
            ticket._granted.set()

    def _park(self, ticket: Ticket) -> None:
        if ticket.place != "running":
            return
        lane = ticket._lane
        lane.active.discard(ticket)
        lane.parked.add(ticket)
        ticket.place = "parked"
        ticket._granted.clear()
        self._pump_global(lane)
        self._publish(LanesChanged())

    def _return(self, ticket: Ticket) -> None:
        if ticket.place != "parked":
            return
        lane = ticket._lane
        lane.parked.discard(ticket)
        ticket.place = "returning"
        # Behind others that are returning, before all that have not started.
        position = 0
        while position < len(lane.waiting) and lane.waiting[position].place == "returning":
            position += 1
        lane.waiting.insert(position, ticket)
        self._pump_global(lane)
        self._publish(LanesChanged())

    def _release(self, ticket: Ticket) -> None:
        if ticket.place in ("released", "stale"):
            ticket.place = "released"
            return
        lane, session = ticket._lane, ticket._session
        for queue in (lane.waiting, session.waiting):
            if ticket in queue:
                queue.remove(ticket)
        lane.active.discard(ticket)
        lane.parked.discard(ticket)
        session.active.discard(ticket)
        ticket.place = "released"
        ticket._granted.set()
        self._pump_session(session)
        if not session.waiting and not session.active:
            self._sessions.pop(session.name.removeprefix("session:"), None)
        self._pump_global(lane)
        self._publish(LanesChanged())
