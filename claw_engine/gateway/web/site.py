"""What answers at the port: WebSockets become sessions, HTTP paths find their handler.

Who may, is the gatekeeper's; what the answers are, is the handlers'.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec.structs import replace

from claw_engine.config.sections.gateway import GatewaySettings
from claw_engine.gateway.auth.admission import Gatekeeper
from claw_engine.gateway.auth.place import Arrival, is_loopback
from claw_engine.gateway.close import Close
from claw_engine.gateway.connection import Admit
from claw_engine.gateway.peer import Identity
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.session import ClientSession, Shop
from claw_engine.gateway.web import completions, tools_invoke
from claw_engine.gateway.web.http import (
    ClientGone,
    HttpError,
    HttpRequest,
    Receive,
    Send,
    answer,
    headers_of,
    problem,
)
from claw_engine.gateway.web.run_child import RunChildren
from claw_engine.gateway.web.socket import GatewaySocket

log = logging.getLogger(__name__)

MAX_CLIENTS = 512
"""WebSocket clients at once; more are told to come back."""

Handler = Callable[[HttpRequest, Send], Awaitable[None]]


class PortSite:
    """A `Site` (server.py)."""

    def __init__(
        self,
        shop: Shop,
        gatekeeper: Gatekeeper,
        parts: GatewayParts,
        settings: Callable[[], GatewaySettings],
    ) -> None:
        self._shop = shop
        self._gatekeeper = gatekeeper
        self._parts = parts
        self._settings = settings
        self._run_children = RunChildren(os.getpid())
        self._sessions: set[ClientSession] = set()
        self._closing = False
        self._routes: Mapping[str, tuple[str, Handler]] = {
            "/": ("GET", self._front),
            "/health": ("GET", self._health),
            "/healthz": ("GET", self._health),
            "/ready": ("GET", self._ready),
            "/readyz": ("GET", self._ready),
            "/tools/invoke": ("POST", self._tools_invoke),
            "/v1/chat/completions": ("POST", self._completions),
        }

    @property
    def sessions(self) -> int:
        """WebSocket clients at the moment."""
        return len(self._sessions)

    # ── WebSocket ───────────────────────────────────────────────────────────────────────────

    async def websocket(self, wire: GatewaySocket) -> None:
        if self._closing or len(self._sessions) >= MAX_CLIENTS:
            wire.refuse(503, "gateway busy\n" if not self._closing else "gateway stopping\n")
            return
        scope = wire.scope
        peer, own = scope.get("client") or ("", 0), scope.get("server") or ("", 0)
        arrival = Arrival(peer[0], headers_of(scope))
        wire.accept()
        # While the client makes its request we look who it is.
        looking = asyncio.ensure_future(self._confined(arrival, peer[1], (own[0], own[1] or 0)))

        async def admit(nonce: str, asked: Admit) -> Identity:
            identity = await self._gatekeeper.admit(nonce, asked, arrival)
            if await looking:
                return replace(identity, scopes=frozenset(), scope_names=(), confined=True)
            return identity

        session = ClientSession(self._shop, wire, admit)
        self._sessions.add(session)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)
            looking.cancel()

    def disconnect(self, device_id: str, why: Close) -> None:
        """End every connection of a device."""
        for session in list(self._sessions):
            if session.peer is not None and session.peer.identity.device_id == device_id:
                session.end(why)

    def close(self) -> None:
        """Take nobody new and let everybody go."""
        self._closing = True
        for session in list(self._sessions):
            session.end(Close.RESTART)

    # ── HTTP ────────────────────────────────────────────────────────────────────────────────

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        request = HttpRequest(scope, receive)
        try:
            await self._route(request, send)
        except HttpError as error:
            await answer(send, error.status, error.payload, error.headers)
        except ClientGone:
            pass
        except Exception:
            log.exception("http %s %s failed", request.method, request.path)
            await answer(send, 500, "Internal Server Error")

    async def _route(self, request: HttpRequest, send: Send) -> None:
        found = self._routes.get(request.path)
        if found is None:
            await answer(send, 404, "Not Found")
            return
        method, handler = found
        if request.method != method and not (method == "GET" and request.method == "HEAD"):
            await answer(send, 405, "Method Not Allowed", {"allow": method})
            return
        await handler(request, send)

    async def _front(self, request: HttpRequest, send: Send) -> None:
        version = self._parts.host.version
        await answer(send, 200, (
            f"claw-tui gateway {version}\n\n"
            "A WebSocket here speaks OpenClaw's gateway protocol, versions 3 and 4.\n"
            "There is no web page: attach with `claw-tui --url`, or with a client of OpenClaw.\n"
            "HTTP: GET /healthz, GET /readyz, POST /tools/invoke, POST /v1/chat/completions.\n"
        ))  # fmt: skip

    async def _health(self, request: HttpRequest, send: Send) -> None:
        await answer(send, 200, {"ok": True, "status": "live"})

    async def _ready(self, request: HttpRequest, send: Send) -> None:
        await answer(send, 503 if self._closing else 200, {"ready": not self._closing})

    async def _tools_invoke(self, request: HttpRequest, send: Send) -> None:
        await self._authorise(request)
        await tools_invoke.handle(self._parts, self._settings().tools, request, send)

    async def _completions(self, request: HttpRequest, send: Send) -> None:
        if not self._settings().http.endpoints.chat_completions.enabled:
            raise problem(
                404, "not_found",
                "This endpoint is off; gateway.http.endpoints.chatCompletions.enabled turns it on.",
            )  # fmt: skip
        await self._authorise(request)
        await completions.handle(self._parts, request, send)

    async def _authorise(self, request: HttpRequest) -> None:
        """Let only those pass who know the shared secret. Raises HttpError."""
        keeper, arrival = self._gatekeeper, request.arrival
        if not keeper.page_allowed(arrival, needed=False):
            raise problem(403, "forbidden", "This web page is not among "
                          "gateway.controlUi.allowedOrigins.")  # fmt: skip
        place = keeper.place(arrival)
        verdict = keeper.shared(request.bearer, request.bearer, arrival, place)
        if not verdict.ok:
            if verdict.reason == "rate_limited":
                wait = max(1, keeper.locked_ms("shared-secret", place) // 1000)
                text = "Too many failed attempts."
                raise problem(429, "rate_limited", text, {"retry-after": str(wait)})
            if verdict.tried:
                keeper.failed("shared-secret", place)
            raise problem(401, "unauthorized", "Unauthorized", {"www-authenticate": "Bearer"})
        if await self._confined(arrival, request.peer_port, request.own):
            text = "This is not for processes that an agent run started."
            raise problem(403, "forbidden", text)

    async def _confined(self, arrival: Arrival, peer_port: int, own: tuple[str, int]) -> bool:
        """Whether the client is a child of one of our runs."""
        if not is_loopback(arrival.peer_ip):
            return False
        peer = (arrival.peer_ip, peer_port)
        return await asyncio.to_thread(self._run_children.from_a_run, peer, own)
