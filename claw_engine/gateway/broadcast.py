"""From the event bus to every connection's outbox. Nothing here ever waits for a client.

One subscription follows the bus; each bus event becomes zero or more wire events, offered to the
peers that want them. What changes often (lanes, session list) is told at most four times a second
and only when it differs from what was told before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from claw_engine.approvals.events import ApprovalRan, StandingChanged
from claw_engine.approvals.model import ApprovalRecord, Status
from claw_engine.approvals.wire import record_to_wire
from claw_engine.events import Event, EventBus, Notice, Resync, Subscription
from claw_engine.gateway.pace import Pacer
from claw_engine.gateway.peer import Peer
from claw_engine.gateway.ports import SessionNews
from claw_engine.gateway.session_events import Injected, RowOf, SessionTeller, injected_event
from claw_engine.gateway.throttle import Throttle
from claw_engine.gateway.tide import Tide
from claw_engine.gateway.translate import CHAT_DELTA_MS, ChatTranslator, trace_event
from claw_engine.gateway.wire_events import OVERHEAD, Audience, Delivery, WireEvent
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.world import Clock, Timer

log = logging.getLogger(__name__)

TICK_S = 30.0
LANES_S = 0.25
MAILBOX = 8192

_TOKENS = WireEvent("agent", {}, audience=Audience.TOKEN_STREAM)


def _no_news(event: Event) -> SessionNews | None:
    return None


def _no_row(key: str) -> None:
    return None


def _tells_output(row: Mapping[str, object] | None) -> bool:
    return row is not None and row.get("verboseLevel") == "full"


class Broadcaster:
    """Owns the list of peers and what they are told. Use: `start()`, …, `await stop(reason)`."""

    def __init__(
        self,
        clock: Clock,
        bus: EventBus,
        lanes_payload: Callable[[], Mapping[str, object]],
        *,
        tick_s: float = TICK_S,
        news: Callable[[Event], SessionNews | None] = _no_news,
        session_row: RowOf = _no_row,
    ) -> None:
        self._clock = clock
        self._news = news
        self._teller = SessionTeller(session_row, clock.now_ms)
        self._bus = bus
        self._lanes_payload = lanes_payload
        self._tick_s = tick_s
        self._peers: dict[str, Peer] = {}
        self._tide = Tide(clock, lambda: len(self._peers))
        self.rouse = self._tide.rouse
        """For the outboxes of peers that are written to a wire."""
        self._token_readers: set[str] = set()
        self._trace_followed = False
        self._followed = False
        """Whether somebody follows a session."""
        self._translator = ChatTranslator(lambda key: _tells_output(session_row(key)))
        self._pacer = Pacer(clock, self.send)
        self._told_lanes: Mapping[str, object] | None = None
        self._changed: set[str] = set()
        self._lanes = Throttle(clock, LANES_S, self._tell_lanes)
        self._sessions = Throttle(clock, LANES_S, self._tell_sessions)
        self._chat_timer: Timer | None = None
        self._subscription: Subscription | None = None
        self._task: asyncio.Task[None] | None = None
        self._tick: Timer | None = None

    def start(self) -> None:
        """Follow the bus from now on."""
        topics = ("trace", "approval", "notice", "run", "lanes", "sessions")
        subscription = self._subscription = self._bus.subscribe(*topics, capacity=MAILBOX)

        async def follow() -> None:
            try:
                async for event in subscription:
                    self.handle(event)
            finally:
                subscription.close()

        self._task = asyncio.get_running_loop().create_task(follow(), name="broadcast")
        self._arm_tick()

    async def stop(self, reason: str, expected_ms: int | None = None) -> None:
        """Say goodbye to every peer and end; outboxes still deliver what waits. `expected_ms`:
        when it is only a restart."""
        self.send(WireEvent("shutdown", {"reason": reason, "restartExpectedMs": expected_ms}))
        for timer in (self._tick, self._chat_timer):
            if timer is not None:
                timer.cancel()
        self._pacer.cancel()
        self._tide.cancel()
        self._lanes.cancel()
        self._sessions.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for peer in list(self._peers.values()):
            peer.outbox.close()

    def catch_up(self) -> None:
        """Tell what the mailbox still holds: who subscribes now must not get it afterwards."""
        subscription = self._subscription
        while subscription is not None and (event := subscription.get_nowait()) is not None:
            self.handle(event)

    @property
    def peers(self) -> Sequence[Peer]:
        return list(self._peers.values())

    def add(self, peer: Peer) -> None:
        self._peers[peer.conn_id] = peer
        peer.watch(self._recount)
        self._recount()
        if peer.wants(_TOKENS):
            self._token_readers.add(peer.conn_id)

    def remove(self, peer: Peer) -> None:
        self._peers.pop(peer.conn_id, None)
        self._token_readers.discard(peer.conn_id)
        self._recount()

    def send(self, event: WireEvent) -> None:
        """Offer an event to every peer that wants it. One peer's failure is that peer's."""
        for peer in list(self._peers.values()):
            if not peer.wants(event):
                continue
            try:
                peer.outbox.put(event)
            except Exception:
                log.exception("event %s could not be queued conn=%s", event.name, peer.conn_id)
                peer.outbox.give_up()

    def handle(self, event: Event) -> None:
        """One event of the bus."""
        match event:
            case TraceEvent():
                self._trace(event)
            case Notice():
                size = len(event.title) + len(event.text) + len(event.hint)
                self.send(WireEvent("notice", notice_payload(event), cost=OVERHEAD + size))
            case Resync():
                log.warning("broadcast mailbox overflowed: dropped=%d", event.dropped)
                self._translator.forget()
                self._pacer.forget()
                for peer in self._peers.values():
                    peer.outbox.lose()
                self.send(WireEvent("tick", {"ts": self._clock.now_ms()}))
            case _:
                self._other(event)

    def _other(self, event: Event) -> None:
        match event.topic:
            case "approval" if isinstance(event, StandingChanged):
                self.send(CHANGED)
            case "approval" if isinstance(event, ApprovalRan):
                self.send(ran_event(event.record))
            case "approval":
                record = getattr(event, "record", None)
                if isinstance(record, ApprovalRecord):
                    self._pacer.put(approval_event(record))
            case "run" | "lanes":
                self._lanes.poke()
                key = getattr(event, "session_key", None)
                if isinstance(key, str):
                    self._session_changed([key])
            case "sessions" if isinstance(event, Injected):
                self.send(injected_event(event, self._clock.now_ms()))
            case "sessions" if (news := self._news(event)) is not None:
                if self._followed:
                    self._put_all(self._teller.news(news))
                self._session_changed([news.key])
            case "sessions":
                keys = getattr(event, "keys", None) or [getattr(event, "key", "")]
                self._session_changed(str(key) for key in keys)

    def _trace(self, event: TraceEvent) -> None:
        # Once for each token: nothing here may grow with clients that do not care.
        if self._trace_followed:
            self.send(trace_event(event))
        for wire in self._translator.feed(event, tokens=bool(self._token_readers)):
            self._pacer.put(wire)
        if event.kind in (TraceKind.RUN_STARTED, TraceKind.RUN_ENDED) and self._followed:
            self._put_all(self._teller.run(event))
        if event.kind is TraceKind.RUN_ENDED:
            for peer in self._peers.values():
                peer.forget_run(event.run_id)
        if self._translator.behind and self._chat_timer is None:
            self._chat_timer = self._clock.call_later(CHAT_DELTA_MS / 1000, self._flush_chat)

    def _flush_chat(self) -> None:
        self._chat_timer = None
        for wire in self._translator.flush(self._clock.now_ms()):
            self._pacer.put(wire)
        if self._translator.behind:
            self._chat_timer = self._clock.call_later(CHAT_DELTA_MS / 1000, self._flush_chat)

    def _tell_lanes(self) -> None:
        payload = self._lanes_payload()
        if payload != self._told_lanes:
            self._told_lanes = payload
            self.send(_latest("lanes", payload))

    def _session_changed(self, keys: Iterable[str]) -> None:
        self._changed.update(key for key in keys if key)
        self._sessions.poke()

    def _tell_sessions(self) -> None:
        keys, self._changed = sorted(self._changed), set()
        if keys:
            cost = OVERHEAD + sum(map(len, keys))
            told = WireEvent("sessions.changed", {"keys": keys}, cost, audience=Audience.KEYS)
            self.send(told)
            if self._followed:
                for key in keys:
                    self._pacer.put(self._teller.changed(key))

    def _recount(self) -> None:
        """Somebody came, went or follows something else."""
        peers = self._peers.values()
        self._trace_followed = any(peer.follows_trace for peer in peers)
        self._followed = any(peer.follows_sessions for peer in peers)

    def _put_all(self, events: Iterable[WireEvent]) -> None:
        for event in events:
            self._pacer.put(event)

    def _arm_tick(self) -> None:
        self._tick = self._clock.call_later(self._tick_s, self._send_tick)

    def _send_tick(self) -> None:
        self.send(_latest("tick", {"ts": self._clock.now_ms()}))
        self._arm_tick()


def _latest(name: str, payload: Mapping[str, object]) -> WireEvent:
    """An event of which only the newest matters."""
    return WireEvent(name, payload, OVERHEAD * 4, Delivery.DROPPABLE, group=(name,), merge_key=name)


def approval_event(record: ApprovalRecord) -> WireEvent:
    """`exec.approval.requested` or `.resolved`; an expiry is a resolution without a decision."""
    pending = record.status is Status.PENDING
    payload = record_to_wire(record)
    if not pending:
        payload["ts"] = record.decided_at_ms
    return WireEvent(
        "exec.approval.requested" if pending else "exec.approval.resolved",
        payload,
        cost=OVERHEAD * 8 + 2 * len(record.ask.command),
        audience=Audience.APPROVERS,
        run_id=record.ask.run_id,
        session_key=record.ask.session_key,
    )


CHANGED = WireEvent("exec.approvals.changed", {}, audience=Audience.APPROVERS)


def ran_event(record: ApprovalRecord) -> WireEvent:
    """What an allowed request did, for who shows the history."""
    payload = {"id": record.id, "ran": dict(record.ran or {})}
    return WireEvent(
        "exec.approval.ran",
        payload,
        audience=Audience.APPROVERS,
        run_id=record.ask.run_id,
        session_key=record.ask.session_key,
    )


def notice_payload(notice: Notice) -> dict[str, object]:
    return {
        "code": notice.code,
        "level": notice.level,
        "title": notice.title,
        "text": notice.text,
        "hint": notice.hint,
        "sticky": notice.sticky,
        "ts": notice.ts,
    }
