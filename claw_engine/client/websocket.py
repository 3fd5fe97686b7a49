"""A gateway elsewhere, through its WebSocket port: ours, or OpenClaw's of protocol 3 or 4.

Speaks frames and the handshake; what a foreign gateway's events mean is `foreign.py`'s matter.
When the connection breaks, calls in flight fail with `ConnectionLost` and the event stream says so;
whether and when to `connect` again is the caller's wish.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping

import msgspec
from msgspec import Struct
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    InvalidURI,
)

from claw_engine.client.base import ClientError, ConnectionLost
from claw_engine.client.calls import Calls, payload_of
from claw_engine.client.device import Device
from claw_engine.client.door import CLIENT_VERSION
from claw_engine.client.gateways import Address, Gateways
from claw_engine.client.inflow import Inflow
from claw_engine.client.trust import tls_context, verify_pin
from claw_engine.errors import ClawError
from claw_engine.protocol.frames import (
    MAX_PAYLOAD,
    PROTOCOLS,
    ErrorShape,
    EventFrame,
    Frame,
    FrameError,
    ResponseFrame,
    from_json,
)
from claw_engine.protocol.names import Scope

log = logging.getLogger(__name__)

HANDSHAKE_S = 10.0
KEEPALIVE_S = 20.0
"""A ping this often, and this long for its answer: a dead line is noticed within 40 s."""
MAX_FRAME = 64 * 1024 * 1024
"""Bytes taken from a gateway; a long history is larger than what it takes from us."""

UI_SCOPES = (Scope.ADMIN, Scope.READ, Scope.WRITE, Scope.APPROVALS)
"""What an operator's terminal asks for, in the order that is signed (protocol digest §1.3)."""
CAPS = ("agent-kind", "approvals", "exec-approvals", "tool-events", "trace")
"""`approvals`: without it a gateway of protocol 4 takes us for no approver and denies at once."""

_HINTS = {
    "AUTH_TOKEN_MISSING": "Give its token with --token, or set CLAW_GATEWAY_TOKEN.",
    "AUTH_TOKEN_MISMATCH": "Its token stands in its openclaw.json under gateway.auth.token.",
    "AUTH_PASSWORD_MISSING": "Give its password with --password.",
    "AUTH_PASSWORD_MISMATCH": "Its password is not this one.",
    "AUTH_DEVICE_TOKEN_MISMATCH": "It has revoked this device's token; give --token once more.",
    "AUTH_RATE_LIMITED": "Too many wrong attempts from here; wait five minutes.",
    "PAIRING_REQUIRED": "Approve this device there: claw devices approve REQUEST",
    "PROTOCOL_MISMATCH": "It is older than OpenClaw 2026.2 or newer than this program knows.",
    "DEVICE_AUTH_SIGNATURE_EXPIRED": "The clocks of the two computers are minutes apart.",
}


class NoGateway(ClawError):
    """Nobody answers at this address."""

    retryable = True


class NotAGateway(ClawError):
    """Something answers, but not a gateway."""


class AuthNeeded(ClientError):
    """The gateway wants a credential that we do not have, or does not take the one we sent."""


class Secret(Struct, frozen=True):
    """What the operator gave for one address; it never prints."""

    token: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return "Secret(…)"


class WebSocketClient:
    """A `Client` over one address (see client/base.py)."""

    def __init__(
        self,
        address: Address,
        device: Device,
        gateways: Gateways,
        secret: Secret = Secret(),  # noqa: B008  # immutable
        *,
        scopes: Iterable[Scope] = UI_SCOPES,
        caps: Iterable[str] = CAPS,
        client_id: str = "gateway-client",
        mode: str = "ui",
    ) -> None:
        self.address = address
        self._device = device
        self._gateways = gateways
        self._secret = secret
        self._scopes = [scope.value for scope in scopes]
        self._caps = list(caps)
        self._client = {
            "id": client_id,
            "displayName": "claw-tui",
            "version": CLIENT_VERSION,
            "platform": sys.platform,
            "mode": mode,
            "instanceId": str(uuid.uuid4()),
        }
        self.hello: Mapping[str, object] = {}
        self._inflow = Inflow()
        self._calls = Calls()
        self._socket: ClientConnection | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._socket is not None

    @property
    def host(self) -> str:
        """The gateway's host as it was addressed."""
        return self.address.host

    async def connect(self) -> Mapping[str, object]:
        """Open and shake hands. Raises NoGateway, NotAGateway, AuthNeeded, ClientError,
        TlsUntrusted, ConnectionLost."""
        if self._socket is not None:
            raise ConnectionLost("This client is connected already.")
        socket = await self._open()
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                hello = await self._handshake(socket)
        except (ConnectionClosed, OSError, TimeoutError, ValueError, RecursionError) as error:
            await _abandon(socket)
            why = f"it hung up ({error})" if isinstance(error, ConnectionClosed) else repr(error)
            netloc = self.address.netloc
            raise ConnectionLost(f"{netloc} did not finish the handshake: {why}.") from error
        except BaseException:
            await _abandon(socket)
            raise
        self._socket, self.hello = socket, hello
        self._inflow.state("connected", "")
        self._reading = asyncio.get_running_loop().create_task(
            self._read(socket), name="gateway read"
        )
        return hello

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> dict[str, object]:
        socket = self._socket
        if socket is None:
            raise ConnectionLost("There is no connection to the gateway.")
        frame = self._calls.begin(method, params)
        # ASCII: its length is its bytes, and half a surrogate pair can travel.
        text = json.dumps(frame.to_json(), separators=(",", ":"))
        if len(text) > MAX_PAYLOAD:
            self._calls.drop(frame)
            words = f"The request is larger than {MAX_PAYLOAD >> 20} MB and was not sent."
            raise ClientError(ErrorShape("INVALID_REQUEST", words))
        try:
            await socket.send(text)
        except ConnectionClosed as error:
            self._calls.drop(frame)
            raise ConnectionLost(f"The connection was lost: {_closed(error)}.") from None
        return await self._calls.answer(frame, timeout)

    def events(self) -> AsyncIterator[EventFrame]:
        return self._inflow.events()

    def nudge(self) -> None:
        """Let the reader of `events` look at what it has of its own (client/inflow.py)."""
        self._inflow.nudge()

    async def close(self) -> None:
        self._inflow.close()
        socket, reading = self._socket, self._reading
        if reading is not None:
            reading.cancel()
            await asyncio.wait({reading})
        if socket is not None:
            self._lost("closed")
            await _abandon(socket)

    # ── opening ─────────────────────────────────────────────────────────────────────────────

    async def _open(self) -> ClientConnection:
        where = self.address
        pin = self._gateways.pin(where)
        secure = tls_context(pinned=bool(pin)) if where.scheme == "wss" else None
        try:
            socket = await _Direct(
                where.url,
                ssl=secure,
                compression=None,  # gateways refuse it (protocol digest §1.1)
                proxy=None,
                open_timeout=HANDSHAKE_S,
                ping_interval=KEEPALIVE_S,
                ping_timeout=KEEPALIVE_S,
                close_timeout=2,
                max_size=MAX_FRAME,
                user_agent_header=f"claw-tui/{CLIENT_VERSION}",
            )
        except ssl.SSLCertVerificationError as error:
            raise await _untrusted(where, error) from None
        except InvalidStatus as error:
            status = error.response.status_code
            if status == 503:  # starting, or draining
                raise NoGateway(f"{where.netloc} is not ready (HTTP 503).") from None
            words = f"{where.netloc} answers with HTTP {status}, not as a gateway."
            raise NotAGateway(words) from None
        except (InvalidMessage, InvalidHandshake, InvalidURI) as error:
            raise NotAGateway(f"What answers at {where.netloc} is no gateway: {error}.") from None
        except ssl.SSLError as error:
            raise NotAGateway(
                f"{where.netloc} does not speak TLS: {error.reason}.", hint="Try ws:// instead."
            ) from None
        except TimeoutError:
            raise NoGateway(f"{where.netloc} does not answer.") from None
        except OSError as error:
            why = error.strerror or str(error) or "no connection"
            raise NoGateway(
                f"Nothing answers at {where.netloc}: {why}.",
                hint="Is `claw gateway run` running there, and is the port reachable from here? "
                "An SSH tunnel does it: ssh -L 18789:127.0.0.1:18789 HOST",
            ) from None
        if pin:
            await verify_pin(socket, where, pin)
        return socket

    async def _handshake(self, socket: ClientConnection) -> Mapping[str, object]:
        challenge = _frame(await socket.recv())
        payload = challenge.payload if isinstance(challenge, EventFrame) else None
        nonce = payload.get("nonce") if isinstance(payload, dict) else None
        if not isinstance(nonce, str) or not isinstance(payload, dict):
            raise NotAGateway(f"What answers at {self.address.netloc} is no gateway.")
        kept = ""
        if not (self._secret.token or self._secret.password):
            kept = self._gateways.device_token(self.address)
        # The server's own time: a laptop's clock may be off.
        stamp = payload.get("ts")
        at_ms = stamp if isinstance(stamp, int) else int(time.time() * 1000)
        await socket.send(json.dumps(self._connect_frame(nonce, at_ms, kept)))
        while True:
            frame = _frame(await socket.recv())
            if isinstance(frame, ResponseFrame):
                break
        try:
            hello = payload_of(frame)
        except ClientError as error:
            raise await self._refused(error, kept) from None
        auth = hello.get("auth")
        given = auth.get("deviceToken") if isinstance(auth, dict) else None
        token = given if isinstance(given, str) else kept
        await asyncio.to_thread(self._gateways.remember, self.address, token)
        return hello

    def _connect_frame(self, nonce: str, at_ms: int, kept: str) -> dict[str, object]:
        auth = {"token": self._secret.token or kept, "password": self._secret.password}
        params = {
            "minProtocol": min(PROTOCOLS),
            "maxProtocol": max(PROTOCOLS),
            "client": self._client,
            "role": "operator",
            "scopes": self._scopes,
            "caps": self._caps,
            "device": self._device.prove(self._client, self._scopes, auth["token"], nonce, at_ms),
        }
        if given := {name: value for name, value in auth.items() if value}:
            params["auth"] = given
        return {"type": "req", "id": "connect", "method": "connect", "params": params}

    async def _refused(self, error: ClientError, kept: str) -> ClawError:
        shape = error.shape
        details = shape.details or {}
        code = str(details.get("code", ""))
        request = details.get("requestId")
        hint = _HINTS.get(code, error.hint)
        if code == "PAIRING_REQUIRED" and isinstance(request, str):
            hint = hint.replace("REQUEST", request)
        if code.startswith("AUTH_") or shape.code == "NOT_PAIRED":
            if kept and code.startswith("AUTH_") and code != "AUTH_RATE_LIMITED":
                await asyncio.to_thread(self._gateways.forget_token, self.address)
            return AuthNeeded(shape, hint=hint)
        return ClientError(shape, hint=hint)

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    async def _read(self, socket: ClientConnection) -> None:
        reason = "the gateway closed the connection"
        try:
            while True:
                try:
                    frame = _frame(await socket.recv())
                except FrameError as error:  # a frame of a kind we do not know: the next may do
                    log.debug("frame left out: %s", error)
                    continue
                if isinstance(frame, ResponseFrame):
                    self._calls.answered(frame)
                elif isinstance(frame, EventFrame):
                    self._inflow.put(frame)
        except asyncio.CancelledError:
            reason = "closed"
            raise
        except ConnectionClosed as error:
            reason = _closed(error)
        except (OSError, ValueError, RecursionError) as error:
            reason = f"the connection broke: {error}"
        finally:
            self._lost(reason)
            socket.transport.abort()

    def _lost(self, reason: str) -> None:
        if self._socket is None:
            return
        self._socket = None
        self._calls.lost(reason)
        self._inflow.state("disconnected", reason)


class _Direct(connect):
    """No redirects: a credential goes to the address it was given for."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


def _frame(text: str | bytes) -> Frame:
    """Raises FrameError; ValueError for what is no JSON."""
    try:
        return from_json(msgspec.json.decode(text))
    except msgspec.DecodeError:
        return from_json(json.loads(text))  # lone surrogates, which JavaScript does send


def _closed(error: ConnectionClosed) -> str:
    got = error.rcvd
    if got is None:
        return "the line went dead"
    return f"the gateway closed the connection ({got.code}{': ' + got.reason if got.reason else ''})"  # fmt: skip  # noqa: E501


async def _abandon(socket: ClientConnection) -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(1):
            await socket.close()
    socket.transport.abort()


async def _untrusted(where: Address, error: ssl.SSLCertVerificationError) -> ClawError:
    from claw_engine.client.trust import TlsUntrusted, fingerprint_of

    pin = await asyncio.to_thread(fingerprint_of, where)
    return TlsUntrusted(where, error.verify_message, pin)
