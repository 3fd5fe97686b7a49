"""One client at the door: runs the connection's state machine over a stream.

Reads, keeps the handshake's time, hands requests to the dispatcher, writes what the outbox holds.
Requests are answered concurrently; a client that hangs up does not undo what it asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from claw_engine.errors import ClawError
from claw_engine.gateway.broadcast import Broadcaster
from claw_engine.gateway.close import Close
from claw_engine.gateway.connection import (
    HANDSHAKE_TIMEOUT_S,
    Action,
    Connection,
    End,
    Ignored,
    Opened,
    Send,
    Serve,
)
from claw_engine.gateway.dispatch import Dispatcher
from claw_engine.gateway.encoding import response_line
from claw_engine.gateway.errors import TooManyRequests, to_shape
from claw_engine.gateway.outbox import Outbox
from claw_engine.gateway.peer import Identity, Peer
from claw_engine.gateway.validate import ConnectParams
from claw_engine.gateway.wire_events import WireEvent
from claw_engine.protocol.frames import ErrorShape, RequestFrame, ResponseFrame, encode
from claw_engine.world import Clock, Ids

log = logging.getLogger(__name__)

READ_BYTES = 64 * 1024
LAST_WORDS_S = 1.0
"""How long a closing connection may take to accept what is left for it."""
MAX_IN_FLIGHT = 256

Hello = Callable[[Peer], Awaitable[Mapping[str, object]]]


class Shop(Struct, frozen=True):
    """What every session at the door shares. `tasks` holds requests being answered."""

    clock: Clock
    ids: Ids
    dispatcher: Dispatcher
    broadcaster: Broadcaster
    hello: Hello
    tasks: set[asyncio.Task[None]]
    soft_limit: int
    hard_limit: int


class DoorSession:
    """Use: `await run()`. `admit(nonce, params)` decides who the client is."""

    def __init__(
        self,
        shop: Shop,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        admit: Callable[[str, ConnectParams], Identity],
    ) -> None:
        self._shop = shop
        self._reader = reader
        self._writer = writer
        self.conn_id = shop.ids.uuid()
        nonce = shop.ids.token(32)
        self._connection = Connection(
            nonce, shop.clock.now_ms(), lambda params: admit(nonce, params)
        )
        self._outbox = Outbox(
            lambda: self.end(Close.SLOW), soft_limit=shop.soft_limit, hard_limit=shop.hard_limit
        )
        self._peer: Peer | None = None
        self._in_flight = 0
        self._why: Close | None = None
        self._reason = ""
        self._ended = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until either side ends it. Never raises for what a peer does."""
        timer = self._shop.clock.call_later(HANDSHAKE_TIMEOUT_S, self._handshake_timeout)
        loop = asyncio.get_running_loop()
        reading = loop.create_task(self._read(), name=f"door read {self.conn_id}")
        ended = loop.create_task(self._ended.wait(), name=f"door end {self.conn_id}")
        try:
            await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            for task in (reading, ended):
                task.cancel()
            await asyncio.wait({reading, ended})
            await self._close()

    def end(self, why: Close, reason: str = "") -> None:
        """Close after what was said before; the first reason stays."""
        if self._why is None:
            self._why = why
            self._reason = reason or why.value
            self._ended.set()

    async def _read(self) -> None:
        try:
            for action in self._connection.start():
                await self._do(action)
            while data := await self._reader.read(READ_BYTES):
                for action in self._connection.receive(data):
                    await self._do(action)
        except OSError:
            pass  # the peer is gone, however it went
        except Exception:
            log.exception("door connection failed conn=%s", self.conn_id)
        self.end(Close.NORMAL)

    async def _do(self, action: Action) -> None:
        match action:
            case Send(frame):
                self._say(encode(frame))
            case Opened(request_id, identity):
                await self._open(request_id, identity)
            case Serve(request):
                self._serve(request)
            case Ignored(size):
                log.warning("door: not JSON, ignored conn=%s bytes=%d", self.conn_id, size)
            case End(why, reason):
                self.end(why, reason)

    def _say(self, line: bytes) -> None:
        if self._peer is None:
            self._writer.write(line)
        else:
            self._outbox.put_line(line)

    async def _open(self, request_id: str, identity: Identity) -> None:
        peer = self._peer = Peer(self.conn_id, identity, self._outbox)
        # Events queue from here on, but none leaves before the hello.
        self._shop.broadcaster.add(peer)
        try:
            payload = await self._shop.hello(peer)
            frame = ResponseFrame(request_id, True, payload)
        except ClawError as error:
            frame = ResponseFrame(request_id, False, error=to_shape(error))
        self._outbox.put_first(await response_line(frame))
        loop = asyncio.get_running_loop()
        self._writing = loop.create_task(self._write(), name=f"door write {self.conn_id}")

    def _serve(self, request: RequestFrame) -> None:
        peer = self._peer
        assert peer is not None
        if self._in_flight >= MAX_IN_FLIGHT:
            error = TooManyRequests(f"{MAX_IN_FLIGHT} requests of this connection are unanswered.")
            self._say(encode(ResponseFrame(request.id, False, error=to_shape(error))))
            return
        self._in_flight += 1
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._answer(peer, request), name=f"request {request.method}")
        self._shop.tasks.add(task)
        task.add_done_callback(self._shop.tasks.discard)

    async def _answer(self, peer: Peer, request: RequestFrame) -> None:
        try:
            interim = lambda frame: self._outbox.put_line(encode(frame))  # noqa: E731 - one line
            frame = await self._shop.dispatcher.handle(peer, request, interim)
            # What was published before the answer goes before it, what comes after goes behind:
            # the end of a turn is not overtaken by its result, nor a snapshot by what follows it.
            self._shop.broadcaster.catch_up()
            slot = self._outbox.reserve()
            try:
                line = await response_line(frame)
            except (ValueError, TypeError):
                log.exception("answer of %s is no JSON", request.method)
                shape = ErrorShape("UNAVAILABLE", f"{request.method}: the answer is no JSON")
                line = encode(ResponseFrame(request.id, False, error=shape))
            self._outbox.fill(slot, line)
        finally:
            self._in_flight -= 1

    async def _write(self) -> None:
        try:
            while await self._outbox.wait():
                for item in self._outbox.take():
                    line = item if isinstance(item, bytes) else item.event.line(item.seq)
                    self._writer.write(line)
                await self._writer.drain()
        except OSError:
            self.end(Close.NORMAL)
        except Exception:
            # A frame that cannot be sent must not leave the client waiting for it (case GW-03).
            log.exception("door: a frame could not be sent conn=%s", self.conn_id)
            self.end(Close.SLOW)

    def _handshake_timeout(self) -> None:
        for action in self._connection.handshake_timeout():
            assert isinstance(action, End)
            self.end(action.why, action.reason)

    async def _close(self) -> None:
        why = self._why or Close.NORMAL
        if self._peer is not None:
            self._shop.broadcaster.remove(self._peer)
        self._outbox.close()
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                if self._writing is not None:
                    await self._writing
                if why is not Close.NORMAL:
                    self._writer.write(_closing(why, self._reason))
                self._writer.close()
                await self._writer.wait_closed()
        except (TimeoutError, OSError):
            pass
        finally:
            if self._writing is not None:
                self._writing.cancel()
                await asyncio.wait({self._writing})
            with contextlib.suppress(OSError):
                self._writer.transport.abort()
        log.info("door closed conn=%s code=%d reason=%s", self.conn_id, why.code, self._reason)


def _closing(why: Close, reason: str) -> bytes:
    return WireEvent("connection.closing", {"code": why.code, "reason": reason}).line(None)
