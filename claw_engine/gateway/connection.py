"""One connection as a state machine: frames in, actions out, no I/O.

    CHALLENGED ──connect──▶ ADMITTING ──admitted──▶ OPEN ──…──▶ CLOSED
         └──anything else──────┴──refused──────────────▶

Rules and sentences: gateway digest §1.2-1.3, protocol digest §1. The shell reads, decides about an
`Admit`, writes, keeps time and closes; it must do the actions in order. Nothing here knows
sockets, secrets, methods or the bus.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from claw_engine.gateway.close import Close
from claw_engine.gateway.handshake import Refusal, check_connect
from claw_engine.gateway.peer import Identity
from claw_engine.gateway.request import request_from
from claw_engine.gateway.validate import ConnectParams
from claw_engine.protocol.frames import (
    MAX_PAYLOAD,
    ErrorShape,
    EventFrame,
    FrameError,
    RequestFrame,
    ResponseFrame,
)

HANDSHAKE_TIMEOUT_S = 10.0
MAX_HANDSHAKE = 64 * 1024
"""Bytes of the first frame: nobody who has not proved anything makes us read more."""


class Send(Struct, frozen=True):
    """Write this frame."""

    frame: ResponseFrame | EventFrame


class Admit(Struct, frozen=True):
    """Decide who this is, then call `admitted` or `refused`; read nothing before that."""

    request_id: str
    params: ConnectParams
    protocol: int


class Opened(Struct, frozen=True):
    """The handshake is done: answer request `request_id` with hello-ok, then serve."""

    request_id: str
    identity: Identity


class Serve(Struct, frozen=True):
    """Dispatch this request."""

    request: RequestFrame


class Ignored(Struct, frozen=True):
    """Text that is no JSON, after the handshake: worth a log line, nothing more."""

    size: int


class End(Struct, frozen=True):
    """Close after what was sent before; `reason` says more than `why` does."""

    why: Close
    reason: str = ""


Action: TypeAlias = Send | Admit | Opened | Serve | Ignored | End


class Phase(StrEnum):
    CHALLENGED = "challenged"
    ADMITTING = "admitting"
    OPEN = "open"
    CLOSED = "closed"


class Connection:
    """Feed `message` with whole frames and do what it says."""

    def __init__(self, nonce: str, now_ms: int, *, max_frame: int = MAX_PAYLOAD) -> None:
        self.nonce = nonce
        self._started_ms = now_ms
        self._max_frame = max_frame
        self._connect_id = ""
        self.phase = Phase.CHALLENGED

    @property
    def limit(self) -> int:
        """Bytes that the next frame may have."""
        return self._max_frame if self.phase is Phase.OPEN else MAX_HANDSHAKE

    def start(self) -> Action:
        # Clients of protocol 4 need `ts`; those of 3 read over `capabilities`.
        challenge = {"nonce": self.nonce, "ts": self._started_ms, "capabilities": []}
        return Send(EventFrame("connect.challenge", challenge))

    def message(self, data: bytes | str) -> list[Action]:
        """Actions for one whole frame."""
        if self.phase is Phase.CLOSED:
            return []
        if self.phase is Phase.ADMITTING:
            raise RuntimeError("a frame was read before the client was admitted")
        first = self.phase is Phase.CHALLENGED
        size = len(data)
        if size > self.limit:
            return self.too_large()
        try:
            # RecursionError: a megabyte of "[" must not end the connection's task.
            raw = json.loads(data, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return [self._end(Close.NORMAL) if first else Ignored(size)]
        return self._first(raw) if first else [self._later(raw)]

    def admitted(self, identity: Identity) -> Action:
        """The shell knows who it is."""
        self.phase = Phase.OPEN
        return Opened(self._connect_id, identity)

    def refused(self, refusal: Refusal) -> list[Action]:
        """The shell lets nobody in."""
        answer = ResponseFrame(self._connect_id, False, error=refusal.shape)
        return [Send(answer), self._end(refusal.close, refusal.reason)]

    def too_large(self) -> list[Action]:
        """A frame over the limit: there is no way to go on."""
        return [self._end(Close.TOO_LARGE)] if self.phase is not Phase.CLOSED else []

    def handshake_timeout(self) -> list[Action]:
        done = self.phase in (Phase.OPEN, Phase.CLOSED)
        return [] if done else [self._end(Close.TIMEOUT)]

    def _later(self, raw: object) -> Action:
        try:
            return Serve(request_from(raw))
        except FrameError as error:
            shape = ErrorShape("INVALID_REQUEST", f"invalid request frame: {error}")
            return Send(ResponseFrame(error.frame_id, False, error=shape))

    def _first(self, raw: object) -> list[Action]:
        try:
            frame = request_from(raw)
        except FrameError:
            return [self._end(Close.INVALID_FRAME)]
        self._connect_id = frame.id
        try:
            params, protocol = check_connect(frame)
        except Refusal as refusal:
            return self.refused(refusal)
        self.phase = Phase.ADMITTING
        return [Admit(frame.id, params, protocol)]

    def _end(self, why: Close, reason: str = "") -> End:
        self.phase = Phase.CLOSED
        return End(why, reason or why.value)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
