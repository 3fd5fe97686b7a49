"""Small HTTP over ASGI: a request with a bounded body, answers, a stream of events. No routes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    MutableMapping,
)
from typing import Any, TypeAlias, TypeVar

from claw_engine.gateway.auth.place import Arrival

Message: TypeAlias = MutableMapping[str, Any]
"""An ASGI message: its values are of many types by design of ASGI."""
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

T = TypeVar("T")

BODY_TIMEOUT_S = 30.0

STANDARD_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))


class HttpError(Exception):
    """An answer that ends the request early."""

    def __init__(
        self, status: int, payload: Mapping[str, object], headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status)
        self.status = status
        self.payload = payload
        self.headers = headers or {}


def problem(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> HttpError:
    """An error in the shape of gateway digest §1.12."""
    return HttpError(status, {"error": {"message": message, "type": kind}}, headers)


class ClientGone(Exception):
    """The client hung up before it was answered."""


class HttpRequest:
    """One request."""

    def __init__(self, scope: Mapping[str, Any], receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = headers_of(scope)
        peer = scope.get("client") or ("", 0)
        own = scope.get("server") or ("", 0)
        self.peer_port: int = peer[1]
        self.own: tuple[str, int] = (own[0], own[1] or 0)
        self.arrival = Arrival(peer[0], self.headers)
        self._receive = receive

    @property
    def bearer(self) -> str:
        scheme, _, value = self.headers.get("authorization", "").partition(" ")
        return value.strip() if scheme.lower() == "bearer" else ""

    async def body(self, limit: int) -> bytes:
        """The body. Raises HttpError for one that is too long or too slow."""
        declared = self.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            raise _too_large(limit)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limit:
                        raise _too_large(limit)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            text = "The body did not arrive in time."
            raise problem(408, "invalid_request_error", text) from None

    async def or_gone(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives, unless the client hangs up first. Raises ClientGone, then."""
        doing = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._disconnected())
        both: tuple[asyncio.Future[Any], ...] = (doing, gone)
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
            raise ClientGone
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """Header names in lower case; what came twice is joined as HTTP joins it."""
    out: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        out[name] = f"{out[name]}, {value}" if name in out else value
    return out


async def answer(
    send: Send, status: int, payload: object, headers: Mapping[str, str] | None = None
) -> None:
    """A JSON answer, or text when `payload` is a string."""
    if isinstance(payload, str):
        body, kind = payload.encode(), "text/plain; charset=utf-8"
    else:
        body = json.dumps(payload, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        kind = "application/json; charset=utf-8"
    head = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}
    await _start(send, status, head)
    await send({"type": "http.response.body", "body": body})


async def stream_events(send: Send, events: AsyncIterator[str]) -> None:
    """Server-sent events, each sent as it comes."""
    head = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    await _start(send, 200, head)
    async for data in events:
        body = f"data: {data}\n\n".encode()
        await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send(
        {"type": "http.response.start", "status": status, "headers": [*STANDARD_HEADERS, *raw]}
    )


def _too_large(limit: int) -> HttpError:
    text = f"The body is larger than {limit >> 20} MB."
    return problem(413, "invalid_request_error", text, {"connection": "close"})
