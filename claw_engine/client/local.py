"""The engine in this process: the same table, the same scope checks, no socket.

`strict` passes every value through JSON both ways, so that nothing works here that would not work
over the wire; every test uses it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping

from claw_engine.client.base import CLIENT_STATE_EVENT, RESYNC, ClientError, ConnectionLost
from claw_engine.gateway.gateway import Gateway
from claw_engine.gateway.outbox import Outbox, Outgoing
from claw_engine.gateway.peer import Identity, Peer
from claw_engine.gateway.wire_events import WireEvent
from claw_engine.protocol.frames import ErrorShape, EventFrame, RequestFrame, ResponseFrame
from claw_engine.protocol.names import ALL_SCOPES, Scope


class LocalClient:
    """A `Client` of an engine in the same loop (see client/base.py)."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        strict: bool = False,
        client_id: str = "gateway-client",
        mode: str = "ui",
        scopes: Iterable[Scope] = ALL_SCOPES,
        caps: Iterable[str] = ("trace", "tool-events"),
    ) -> None:
        self._gateway = gateway
        self._strict = strict
        self._identity = Identity(client_id, mode, "", frozenset(scopes), frozenset(caps))
        self._outbox = Outbox(self._overflow)
        self._peer: Peer | None = None
        self._next_id = 0
        self._seq = 0
        self.hello: Mapping[str, object] = {}
        self._closed = False

    @property
    def connected(self) -> bool:
        return self._peer is not None and not self._outbox.closed

    async def connect(self) -> Mapping[str, object]:
        if self._peer is not None:
            raise ConnectionLost("This client has been connected before.")
        gateway = self._gateway
        peer = self._peer = Peer(gateway.parts.ids.uuid(), self._identity, self._outbox)
        self._outbox.put(_state("connected", ""))
        gateway.broadcaster.add(peer)
        hello = await gateway.hello(peer)
        self.hello = _through_json(hello) if self._strict else hello
        return self.hello

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> dict[str, object]:
        peer = self._peer
        if peer is None or self._outbox.closed:
            raise ConnectionLost("There is no connection to the engine.")
        self._next_id += 1
        sent = _through_json(params or {}) if self._strict else params or {}
        request = RequestFrame(str(self._next_id), method, sent)
        try:
            async with asyncio.timeout(timeout):
                frame = await self._gateway.dispatcher.handle(peer, request, _not_final)
        except TimeoutError:
            shape = ErrorShape("AGENT_TIMEOUT", f"{method}: no answer within {timeout:g} s")
            raise ClientError(shape) from None
        self._gateway.broadcaster.catch_up()  # events from before the answer come before it
        if not frame.ok:
            raise ClientError(frame.error or ErrorShape("UNAVAILABLE", "no reason given"))
        payload = frame.payload if isinstance(frame.payload, dict) else {}
        return _through_json(payload) if self._strict else payload

    async def events(self) -> AsyncIterator[EventFrame]:
        # The consumer reads the outbox itself: every hop between two tasks costs each token.
        while True:
            outbox = self._outbox
            while await outbox.wait():
                for item in outbox.take(1):
                    if isinstance(item, Outgoing):
                        if item.seq is not None:
                            if item.seq > self._seq + 1:
                                yield self._frame(Outgoing(_state("connected", RESYNC), None))
                            self._seq = item.seq
                        yield self._frame(item)
            if self._outbox is outbox:
                break
            self._seq = 0
        if not self._closed:
            yield self._frame(Outgoing(_state("disconnected", "the engine stopped"), None))

    async def close(self) -> None:
        self._closed = True
        if self._peer is not None:
            self._gateway.broadcaster.remove(self._peer)
        self._outbox.close()

    def _overflow(self) -> None:
        """Nobody read for long: go on with an empty outbox, and say so."""
        self._outbox = Outbox(self._overflow)
        self._outbox.put(_state("connected", RESYNC))
        if self._peer is not None:
            self._peer.outbox = self._outbox

    def _frame(self, item: Outgoing) -> EventFrame:
        payload = item.event.payload
        return EventFrame(
            item.event.name, _through_json(payload) if self._strict else payload, item.seq
        )


def _state(state: str, reason: str) -> WireEvent:
    return WireEvent(CLIENT_STATE_EVENT, {"state": state, "reason": reason}, numbered=False)


def _not_final(frame: ResponseFrame) -> None:
    """The first of two answers; the caller waits for the second."""


def _through_json(value: Mapping[str, object]) -> dict[str, object]:
    """What arrives at the other end of a wire. Raises TypeError, ValueError as a wire would."""
    parsed: dict[str, object] = json.loads(json.dumps(dict(value), allow_nan=False))
    return parsed
