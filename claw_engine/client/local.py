"""The engine in this process: the same table, the same scope checks, no socket.

`strict` passes every value through JSON both ways, so that nothing works here that would not work
over the wire; every test uses it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping

from claw_engine.client.base import ClientError, ConnectionLost
from claw_engine.client.inflow import RESYNC, Inflow
from claw_engine.gateway.gateway import Gateway
from claw_engine.gateway.outbox import Outbox, Outgoing
from claw_engine.gateway.peer import Identity, Peer
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
        self._inflow = Inflow()
        self._peer: Peer | None = None
        self._pump: asyncio.Task[None] | None = None
        self._next_id = 0

    @property
    def connected(self) -> bool:
        return self._peer is not None

    async def connect(self) -> Mapping[str, object]:
        if self._peer is not None:
            raise ConnectionLost("This client is connected already.")
        gateway = self._gateway
        peer = Peer(gateway.parts.ids.uuid(), self._identity, Outbox(self._overflow))
        gateway.broadcaster.add(peer)
        hello = await gateway.hello(peer)
        self._peer = peer
        self._inflow.state("connected", "")
        self._pump = asyncio.get_running_loop().create_task(self._follow(peer), name="client pump")
        return _through_json(hello) if self._strict else hello

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> dict[str, object]:
        peer = self._peer
        if peer is None:
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
        if not frame.ok:
            raise ClientError(frame.error or ErrorShape("UNAVAILABLE", "no reason given"))
        payload = frame.payload if isinstance(frame.payload, dict) else {}
        return _through_json(payload) if self._strict else payload

    def events(self) -> AsyncIterator[EventFrame]:
        return self._inflow.events()

    async def close(self) -> None:
        self._inflow.close()
        peer = self._peer
        if peer is not None:
            self._peer = None
            self._gateway.broadcaster.remove(peer)
            peer.outbox.close(discard=True)
        if self._pump is not None:
            await asyncio.wait({self._pump})

    async def _follow(self, peer: Peer) -> None:
        while True:
            outbox = peer.outbox
            while await outbox.wait():
                for item in outbox.take():
                    if isinstance(item, Outgoing):
                        self._inflow.put(self._frame(item))
            if peer.outbox is outbox:
                break
            self._inflow.state("connected", RESYNC)
        if self._peer is peer:
            self._gateway.broadcaster.remove(peer)
            self._peer = None
            self._inflow.state("disconnected", "the engine stopped")

    def _overflow(self) -> None:
        """This loop was too busy to follow: go on with an empty outbox, and say so."""
        if self._peer is not None:
            self._peer.outbox = Outbox(self._overflow)

    def _frame(self, item: Outgoing) -> EventFrame:
        payload = item.event.payload
        return EventFrame(
            item.event.name, _through_json(payload) if self._strict else payload, item.seq
        )


def _not_final(frame: ResponseFrame) -> None:
    """The first of two answers; the caller waits for the second."""


def _through_json(value: Mapping[str, object]) -> dict[str, object]:
    """What arrives at the other end of a wire. Raises TypeError, ValueError as a wire would."""
    parsed: dict[str, object] = json.loads(json.dumps(dict(value), allow_nan=False))
    return parsed
