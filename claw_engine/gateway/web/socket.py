"""One WebSocket: frames in and out over uvicorn's protocol, which `websockets` speaks for.

It must not know sessions: it hands itself, a `Wire`, to whoever was given as `serve`.
"""

from __future__ import annotations

import asyncio
import logging
from struct import Struct
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.server import ServerProtocol

from claw_engine.gateway.close import Close
from claw_engine.gateway.connection import MAX_HANDSHAKE
from claw_engine.gateway.session import FrameTooLarge

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

log = logging.getLogger(__name__)

MAX_REASON = 120
"""Bytes of a close reason (the WebSocket protocol allows 123)."""
FLUSH_BYTES = 256 * 1024

_SHORT, _MEDIUM, _LONG = (Struct(form).pack for form in ("!BB", "!BBH", "!BBQ"))
"""Heads of a whole text frame that is not masked (RFC 6455, 5.2)."""

_COPIED = 2048
"""Bytes under which one copy is quicker than three parts."""

_UNSAID = frozenset({Close.NORMAL, Close.TIMEOUT, Close.TOO_LARGE})
"""Ends whose code says all: recorded gateways give no reason."""


class _Quiet(ServerProtocol):
    def fail(self, code: int, reason: str = "") -> None:
        super().fail(code, "" if code == Close.TOO_LARGE.code else reason)


class GatewaySocket(WebSocketsSansIOProtocol):
    """A `Wire` (session.py). Many small frames leave in one write."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # uvicorn's signature
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = _Quiet(max_size=MAX_HANDSHAKE, logger=self.logger)
        self._waiting = 0
        self._frames: list[bytes] = []
        """Heads and bodies of what leaves with the next write."""
        self._flushing = False
        self._gone = asyncio.Event()

    # ── uvicorn's side ──────────────────────────────────────────────────────────────────────

    async def run_asgi(self) -> None:
        """Instead of an ASGI application the gateway's own session takes over."""
        try:
            await self.config.loaded_app.websocket(self)
        except Exception:
            log.exception("websocket failed")
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._gone.set()

    def accept(self) -> None:
        """Finish the upgrade."""
        self.handshake_complete = True
        self.conn.send_response(self.response)
        self._send()

    def refuse(self, status: int, text: str) -> None:
        """Answer the upgrade with an HTTP error."""
        self.handshake_complete = True
        self.close_sent = True
        self.conn.send_response(self.conn.reject(status, text))
        self._send()
        self.transport.close()

    # ── the session's side ──────────────────────────────────────────────────────────────────

    async def receive(self, limit: int = MAX_HANDSHAKE) -> Any:  # frames; uvicorn types its own
        """The next frame's text; None at the end. Raises FrameTooLarge."""
        self.conn.max_message_size = limit
        while True:
            message = await super().receive()
            match message["type"]:
                case "websocket.receive":
                    text = message.get("text")
                    return message.get("bytes") if text is None else text
                case "websocket.disconnect":
                    if message.get("code") == Close.TOO_LARGE.code and self._we_closed():
                        raise FrameTooLarge
                    return None
                case _:
                    continue

    def write(self, line: bytes) -> None:
        if self.close_sent or self.disconnected:
            return
        self.write_event(line[:-1], b"")

    def write_event(self, body: bytes, tail: bytes) -> None:
        if self.close_sent or self.disconnected:
            return
        # A server's text frame is its length and its text: the library takes 20 times as long to
        # say so, for every client of every event. Long ones are not copied before they leave.
        size = len(body) + len(tail)
        if size < 126:
            self._frames.append(b"%b%b%b" % (_SHORT(0x81, size), body, tail))
        elif size < _COPIED:
            self._frames.append(b"%b%b%b" % (_MEDIUM(0x81, 126, size), body, tail))
        elif size < 1 << 16:
            self._frames += (_MEDIUM(0x81, 126, size), body, tail)
        else:
            self._frames += (_LONG(0x81, 127, size), body, tail)
        self._waiting += size
        if self._waiting >= FLUSH_BYTES:
            self._send()

    def flush_soon(self) -> None:
        if not self._flushing:  # one write for all frames of this turn of the loop
            self._flushing = True
            self.loop.call_soon(self._send)

    @property
    def open(self) -> bool:
        return self.writable.is_set()

    @property
    def unsent(self) -> int:
        return self.transport.get_write_buffer_size()

    async def drain(self) -> None:
        """Wait until the peer took most of it. Raises OSError when it is gone."""
        self._send()
        await self.writable.wait()
        if self.disconnected:
            raise ConnectionResetError("the client is gone")

    async def hang_up(self, why: Close, reason: str) -> None:
        """Say why and wait until the peer has read it."""
        if not self.close_sent and not self.disconnected:
            said = "" if why in _UNSAID else _shortened(reason)
            self._send()
            try:
                self.conn.send_close(why.code, said)
            except InvalidState:
                return  # the peer closed first
            self._send()
            self.close_sent = True
            if self.read_paused:
                self.read_paused = False
                self.transport.resume_reading()
        await self._gone.wait()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def handle_parser_exception(self) -> None:
        self._send_frames()
        super().handle_parser_exception()

    def handle_close(self, event: Any) -> None:  # a frame of websockets
        self._send_frames()
        super().handle_close(event)
        if self.close_sent and not self.transport.is_closing():
            self.transport.close()

    def _we_closed(self) -> bool:
        return self.conn.close_rcvd is None

    def _send(self) -> None:
        output = b"".join(self.conn.data_to_send())
        if output and not self.transport.is_closing():
            self.transport.write(output)
        self._send_frames()

    def _send_frames(self) -> None:
        frames, self._frames, self._waiting = self._frames, [], 0
        self._flushing = False
        if frames and not self.transport.is_closing():
            self.transport.write(b"".join(frames))


def _shortened(reason: str) -> str:
    return reason.encode()[:MAX_REASON].decode("utf-8", "ignore")
