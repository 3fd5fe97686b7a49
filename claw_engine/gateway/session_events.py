"""What protocol 4 tells of sessions as it happens: `session.message` and `sessions.changed`.

Only for connections that subscribed. Shapes: protocol digest §3.1. Knows no store: rows and news
come through functions that are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

from claw_engine.events import Event
from claw_engine.gateway.history_rows import row_for
from claw_engine.gateway.ports import SessionNews
from claw_engine.gateway.translate import message
from claw_engine.gateway.translate4 import agent_of
from claw_engine.gateway.wire_events import OVERHEAD, Audience, Delivery, WireEvent
from claw_engine.protocol.trace import TraceEvent, TraceKind

Row = Mapping[str, object]
RowOf = Callable[[str], Row | None]

ROW_COST = 2048
"""Bytes of a row and its copy: an estimate."""


class Injected(Event, frozen=True):
    """A client put words into a conversation as if the agent had said them."""

    topic: ClassVar[str] = "sessions"
    key: str
    entry_id: str
    text: str
    label: str = ""


def injected_event(event: Injected, now_ms: int) -> WireEvent:
    """The `chat` event that ends a run which there was none of (gateway digest §1.11)."""
    text = f"[{event.label}]\n\n{event.text}" if event.label else event.text
    payload = {
        "runId": f"inject-{event.entry_id}",
        "sessionKey": event.key,
        "seq": 0,
        "state": "final",
        "message": message(text, now_ms),
    }
    return WireEvent("chat", payload, OVERHEAD + len(text), session_key=event.key,
                     payload4={**payload, "agentId": agent_of(event.key)})  # fmt: skip


class SessionTeller:
    """Wire events for who follows sessions. `row` gives a session's row now."""

    def __init__(self, row: RowOf, now_ms: Callable[[], int]) -> None:
        self._row = row
        self._now_ms = now_ms

    def news(self, news: SessionNews) -> Iterator[WireEvent]:
        """A stored message, or a session that begins anew."""
        if news.message is not None:
            yield self._message(news.key, news.message)
        elif news.reason:
            yield self.changed(news.key, reason=news.reason)

    def run(self, event: TraceEvent) -> Iterator[WireEvent]:
        """A run that starts or ends."""
        if event.kind is TraceKind.RUN_STARTED:
            key, run_id = event.session_key, event.run_id
            yield self.changed(key, reason="agent.run.started", run_id=run_id)
        elif event.kind is TraceKind.RUN_ENDED:
            phase = "error" if event.data.get("status") == "failed" else "end"
            yield self.changed(event.session_key, phase=phase, run_id=event.run_id)

    def changed(
        self, key: str, *, reason: str = "", phase: str = "", run_id: str = ""
    ) -> WireEvent:
        """`sessions.changed` of one session."""
        row = self._row(key)
        word = reason or ("" if phase else "patch")
        why = {"reason": word, "phase": phase, "runId": run_id, "clientRunId": run_id}
        payload: dict[str, object] = {
            **(row or {}),
            "sessionKey": key,
            "agentId": agent_of(key),
            "ts": self._now_ms(),
            **{name: value for name, value in why.items() if value},
            "session": row,
            "ancestorSessions": [],
        }
        # The newest word on a session replaces an older one, but a run's end is told.
        what = None if phase or reason else "row"
        return WireEvent(
            "sessions.changed", payload, ROW_COST,
            Delivery.MUST if what is None else Delivery.DROPPABLE,
            audience=Audience.SESSIONS, session_key=key, run_id=run_id, only4=True,
            group=("sessions.changed", key), merge_key=what,
        )  # fmt: skip

    def _message(self, key: str, stored: Row) -> WireEvent:
        row, told = self._row(key), row_for(stored, 4)
        place = told.get("__openclaw")
        known = place if isinstance(place, Mapping) else {}
        payload = {
            **(row or {}),
            "sessionKey": key,
            "agentId": agent_of(key),
            "message": told,
            "messageId": known.get("id"),
            "messageSeq": known.get("seq"),
            "session": row,
            "ancestorSessions": [],
        }
        cost = ROW_COST + len(str(told.get("content", "")))
        return WireEvent("session.message", payload, cost, audience=Audience.MESSAGES,
                         session_key=key, only4=True)  # fmt: skip
