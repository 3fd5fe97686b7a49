"""One client, whatever wire it came by: runs the connection's state machine.

Keeps the handshake's time, hands requests to the dispatcher, writes what the outbox holds.
Requests are answered concurrently; a client that hangs up does not undo what it asked for. It must
not know sockets: a `Wire` reads and writes whole frames.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from msgspec import Struct

from claw_engine.errors import ClawError
from claw_engine.gateway.broadcast import Broadcaster
from claw_engine.gateway.close import Close
from claw_engine.gateway.connection import (
    HANDSHAKE_TIMEOUT_S,
    Action,
    Admit,
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
from claw_engine.gateway.handshake import Refusal
from claw_engine.gateway.outbox import Outbox
from claw_engine.gateway.peer import Identity, Peer
from claw_engine.protocol.frames import ErrorShape, RequestFrame, ResponseFrame, encode
from claw_engine.world import Clock, Ids

log = logging.getLogger(__name__)

LAST_WORDS_S = 1.0
"""How long a closing connection may take to accept what is left for it."""
STALLED_S = 15.0
"""A client that takes nothing at all for this long to twice as long is let go. What waits for it
is bounded anyway; but a dead line, or a program that hangs, would stay a client for hours."""
MAX_IN_FLIGHT = 256

Hello = Callable[[Peer], Awaitable[Mapping[str, object]]]
Admission = Callable[[str, Admit], Awaitable[Identity]]
"""Who the client is, by nonce and parameters. Raises Refusal."""


class FrameTooLarge(Exception):
    """The peer sent more than a frame may have."""


class Wire(Protocol):
    """Whole frames in and out. Reading and draining raise OSError when the peer is gone."""

    async def receive(self, limit: int) -> bytes | str | None:
        """The next frame; None at the end. Raises FrameTooLarge over `limit` bytes."""
        ...

    @property
    def open(self) -> bool:
        """Whether the peer takes what is written (see outbox.Pipe)."""
        ...

    def write(self, line: bytes) -> None:
        """Take one frame, which ends with a newline; never waits. It leaves with the next flush
        or drain."""
        ...

    def write_event(self, body: bytes, tail: bytes) -> None:
        """The same in two pieces, without the newline."""
        ...

    def flush_soon(self) -> None:
        """Send what was written once this turn of the loop is over."""
        ...

    @property
    def unsent(self) -> int:
        """Bytes that the system has not taken yet."""
        ...

    async def drain(self) -> None:
        """Wait until the peer has taken most of it."""
        ...

    async def hang_up(self, why: Close, reason: str) -> None:
        """Say why, if the wire can, and close once what was written has left."""
        ...

    def abort(self) -> None:
        """Close at once, whatever is left unsaid."""
        ...


class Shop(Struct, frozen=True):
    """What every session shares. `tasks` holds requests being answered.

    `opened` is told of each client right after its hello, `closed` when one that was opened ends.
    """

    clock: Clock
    ids: Ids
    dispatcher: Dispatcher
    broadcaster: Broadcaster
    hello: Hello
    tasks: set[asyncio.Task[None]]
    soft_limit: int
    hard_limit: int
    opened: Callable[[Peer], None] = lambda peer: None
    closed: Callable[[Peer], None] = lambda peer: None
    stalled_s: float = STALLED_S


class ClientSession:
    """Use: `await run()`. `admit` decides who the client is."""

    def __init__(self, shop: Shop, wire: Wire, admit: Admission) -> None:
        self._shop = shop
        self._wire = wire
        self._admit = admit
        self.conn_id = shop.ids.uuid()
        self._connection = Connection(shop.ids.token(32), shop.clock.now_ms())
        self._outbox = Outbox(
            lambda: self.end(Close.SLOW), soft_limit=shop.soft_limit, hard_limit=shop.hard_limit,
            rouse=shop.broadcaster.rouse,
        )  # fmt: skip
        self._peer: Peer | None = None
        self._in_flight = 0
        self._why: Close | None = None
        self._reason = ""
        self._ended = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None

    @property
    def peer(self) -> Peer | None:
        """The client, once it was let in."""
        return self._peer

    async def run(self) -> None:
        """Serve until either side ends it. Never raises for what a peer does."""
        timer = self._shop.clock.call_later(HANDSHAKE_TIMEOUT_S, self._handshake_timeout)
        loop = asyncio.get_running_loop()
        reading = loop.create_task(self._read(), name=f"client read {self.conn_id}")
        ended = loop.create_task(self._ended.wait(), name=f"client end {self.conn_id}")
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
        connection, wire = self._connection, self._wire
        try:
            await self._do(connection.start())
            while (data := await wire.receive(connection.limit)) is not None:
                for action in connection.message(data):
                    await self._do(action)
                if self._why is not None:
                    return
        except FrameTooLarge:
            for action in connection.too_large():
                await self._do(action)
        except OSError:
            pass  # the peer is gone, however it went
        except Exception:
            log.exception("connection failed conn=%s", self.conn_id)
        self.end(Close.NORMAL)

    async def _do(self, action: Action) -> None:
        match action:
            case Send(frame):
                self._say(encode(frame))
            case Admit():
                await self._let_in(action)
            case Opened(request_id, identity):
                await self._open(request_id, identity)
            case Serve(request):
                self._serve(request)
            case Ignored(size):
                log.warning("not JSON, ignored conn=%s bytes=%d", self.conn_id, size)
            case End(why, reason):
                self.end(why, reason)

    def _say(self, line: bytes) -> None:
        if self._peer is None:
            self._wire.write(line)
            self._wire.flush_soon()
        else:
            self._outbox.put_line(line)

    async def _let_in(self, asked: Admit) -> None:
        connection = self._connection
        try:
            identity = await self._admit(connection.nonce, asked)
        except Refusal as refusal:
            client = asked.params.client
            log.warning(
                "refused conn=%s client=%s mode=%s code=%s: %s", self.conn_id, client.id,
                client.mode, refusal.shape.code, refusal.shape.message,
            )  # fmt: skip
            for action in connection.refused(refusal):
                await self._do(action)
            return
        if self._why is None:  # else its time was up while we looked
            await self._do(connection.admitted(identity))

    async def _open(self, request_id: str, identity: Identity) -> None:
        shop = self._shop
        self._outbox.protocol = identity.protocol
        peer = self._peer = Peer(self.conn_id, identity, self._outbox)
        # Events queue from here on, but none leaves before the hello.
        shop.broadcaster.add(peer)
        try:
            frame = ResponseFrame(request_id, True, await shop.hello(peer))
        except ClawError as error:
            frame = ResponseFrame(request_id, False, error=to_shape(error))
        self._outbox.put_first(await response_line(frame))
        shop.opened(peer)
        log.info(
            "client open conn=%s client=%s mode=%s protocol=%d auth=%s scopes=%s", self.conn_id,
            identity.client_id, identity.mode, identity.protocol, identity.method,
            ",".join(sorted(identity.scopes)),
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        self._writing = loop.create_task(self._write(), name=f"client write {self.conn_id}")

    def _serve(self, request: RequestFrame) -> None:
        peer = self._peer
        assert peer is not None
        if self._in_flight >= MAX_IN_FLIGHT:
            error = TooManyRequests(f"{MAX_IN_FLIGHT} requests of this connection are unanswered.")
            self._say(encode(ResponseFrame(request.id, False, error=to_shape(error))))
            return
        self._in_flight += 1
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._answer(peer, request), name=f"request {request.method[:64]}")
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
        outbox, wire = self._outbox, self._wire
        outbox.pipe = wire  # the hello waits in the queue, so nothing passes it
        try:
            while await outbox.wait():
                for item in outbox.take():
                    if isinstance(item, bytes):
                        wire.write(item)
                    else:
                        wire.write(item.event.line(item.seq, outbox.protocol))
                await self._drained()
        except TimeoutError:
            log.warning("nothing is read at the other end conn=%s", self.conn_id)
            self.end(Close.SLOW)
        except OSError:
            self.end(Close.NORMAL)
        except Exception:
            # A frame that cannot be sent must not leave the client waiting for it (case GW-03).
            log.exception("a frame could not be sent conn=%s", self.conn_id)
            self.end(Close.SLOW)

    async def _drained(self) -> None:
        """Raises TimeoutError when the peer takes nothing."""
        wire, left = self._wire, -1
        while True:
            try:
                async with asyncio.timeout(self._shop.stalled_s):
                    return await wire.drain()
            except TimeoutError:
                if wire.unsent == left:
                    raise
                left = wire.unsent

    def _handshake_timeout(self) -> None:
        for action in self._connection.handshake_timeout():
            assert isinstance(action, End)
            self.end(action.why, action.reason)

    async def _close(self) -> None:
        why, peer = self._why or Close.NORMAL, self._peer
        if peer is not None:
            self._shop.broadcaster.remove(peer)
            self._shop.closed(peer)
        self._outbox.close()
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                if self._writing is not None:
                    await self._writing
                await self._wire.hang_up(why, self._reason)
        except (TimeoutError, OSError):
            pass
        finally:
            if self._writing is not None:
                self._writing.cancel()
                await asyncio.wait({self._writing})
            self._wire.abort()
        log.info("closed conn=%s code=%d reason=%s", self.conn_id, why.code, self._reason)
