"""The port's servers in the engine's loop: uvicorn's protocols without its process management.

Signals, lifespan and reloading are the engine's; here are sockets, protocols and their end.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from typing import Any, Protocol

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from claw_engine.gateway.web.socket import GatewaySocket
from claw_engine.protocol.frames import MAX_PAYLOAD

log = logging.getLogger(__name__)

HEAD_TIMEOUT_S = 10.0
"""How long a client may take for the head of its first request."""
KEEP_ALIVE_S = 15
MAX_CONNECTIONS = 1024
MAX_HEAD = 32 * 1024
LAST_WORDS_S = 1.5


class Site(Protocol):
    """What answers: an ASGI application for HTTP, and a taker of WebSockets."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...  # ASGI's types

    async def websocket(self, wire: GatewaySocket) -> None: ...


class PatientHttp(H11Protocol):
    """HTTP for clients that come with a request, and not too many of them."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._head_timeout)
        if len(self.connections) > MAX_CONNECTIONS:
            log.warning("port: too many connections, one refused")
            transport.abort()

    def handle_websocket_upgrade(self, event: Any) -> None:  # of h11
        self._head_timer.cancel()  # which would keep all of this for its ten seconds
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_timer.cancel()
        super().connection_lost(exc)

    def _head_timeout(self) -> None:
        if self.scope is None:
            self.transport.close()


class WebServer:
    """Use: `await start(sockets)`, …, `await close()`."""

    def __init__(self, site: Site, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._config = Config(
            site, http=PatientHttp, ws=GatewaySocket, ws_max_size=MAX_PAYLOAD,
            ws_per_message_deflate=False, ws_ping_interval=None, ws_ping_timeout=None,
            interface="asgi3", lifespan="off", loop="none", log_config=None, access_log=False,
            proxy_headers=False, server_header=False, date_header=False,
            timeout_keep_alive=KEEP_ALIVE_S, h11_max_incomplete_event_size=MAX_HEAD,
        )  # fmt: skip
        self._config.load()
        # uvicorn tells of every connection; so do we, with more.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._state = ServerState()
        self._servers: list[asyncio.Server] = []

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Serve on listening sockets, which are ours from now on."""
        loop = asyncio.get_running_loop()

        def protocol() -> PatientHttp:
            return PatientHttp(self._config, self._state, {}, loop)

        for sock in sockets:
            self._servers.append(await loop.create_server(protocol, sock=sock, ssl=self._tls))

    def stop_listening(self) -> None:
        for server in self._servers:
            server.close()

    async def close(self) -> None:
        """Let HTTP answers that are under way finish for a moment, then let go."""
        self.stop_listening()
        for connection in list(self._state.connections):
            if isinstance(connection, H11Protocol):
                connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=LAST_WORDS_S)
        for task in list(self._state.tasks):
            task.cancel()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=LAST_WORDS_S)
        for connection in list(self._state.connections):
            connection.transport.abort()
