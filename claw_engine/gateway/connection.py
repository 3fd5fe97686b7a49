"""One connection of the local door as a state machine: bytes in, actions out, no I/O.

    CHALLENGED ──connect ok──▶ OPEN ──…──▶ CLOSED
         └──anything else──────────────────▶

Rules and sentences: gateway digest §1.2-1.3. The shell reads, writes, keeps time and closes; it
must do the actions in order. Nothing here knows sockets, methods or the bus.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from claw_engine.gateway.close import Close
from claw_engine.gateway.handshake import Refusal, check_connect
from claw_engine.gateway.peer import Identity
from claw_engine.gateway.validate import ConnectParams
from claw_engine.protocol.frames import (
    MAX_PAYLOAD,
    ErrorShape,
    EventFrame,
    FrameError,
    RequestFrame,
    ResponseFrame,
    from_json,
)

HANDSHAKE_TIMEOUT_S = 10.0
MAX_HANDSHAKE = 64 * 1024
"""Bytes of the first frame: nobody who has not proved anything makes us read more."""


class Send(Struct, frozen=True):
    """Write this frame."""

    frame: ResponseFrame | EventFrame


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


Action: TypeAlias = Send | Opened | Serve | Ignored | End


class Phase(StrEnum):
    CHALLENGED = "challenged"
    OPEN = "open"
    CLOSED = "closed"


class Connection:
    """Feed `receive` and do what it says.

    `admit` turns checked connect parameters into an identity or raises `Refusal`.
    """

    def __init__(
        self,
        nonce: str,
        now_ms: int,
        admit: Callable[[ConnectParams], Identity],
        *,
        max_frame: int = MAX_PAYLOAD,
    ) -> None:
        self._nonce = nonce
        self._started_ms = now_ms
        self._admit = admit
        self._max_frame = max_frame
        self._buffer = bytearray()
        self._searched = 0
        self.phase = Phase.CHALLENGED

    def start(self) -> list[Action]:
        challenge = {"nonce": self._nonce, "ts": self._started_ms}
        return [Send(EventFrame("connect.challenge", challenge))]

    def receive(self, data: bytes) -> Iterator[Action]:
        """Actions for some bytes; to be consumed fully, one by one."""
        self._buffer += data
        while self.phase is not Phase.CLOSED:
            line = self._next_line()
            if line is None:
                break
            if line:
                yield from self._line(line)
        limit = MAX_HANDSHAKE if self.phase is Phase.CHALLENGED else self._max_frame
        if self.phase is not Phase.CLOSED and len(self._buffer) > limit:
            yield self._end(Close.TOO_LARGE)

    def handshake_timeout(self) -> list[Action]:
        return [self._end(Close.TIMEOUT)] if self.phase is Phase.CHALLENGED else []

    def _next_line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(memoryview(self._buffer)[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line.strip()

    def _line(self, line: bytes) -> Iterator[Action]:
        first = self.phase is Phase.CHALLENGED
        if len(line) > (MAX_HANDSHAKE if first else self._max_frame):
            yield self._end(Close.TOO_LARGE)
            return
        try:
            # RecursionError: a megabyte of "[" must not end the connection's task.
            raw = json.loads(line, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            yield self._end(Close.NORMAL) if first else Ignored(len(line))
            return
        if first:
            yield from self._handshake(raw)
        else:
            yield self._open_frame(raw)

    def _open_frame(self, raw: object) -> Action:
        try:
            frame = from_json(raw)
            if not isinstance(frame, RequestFrame):
                raise FrameError("at /type: must be equal to constant 'req'")
        except FrameError as error:
            shape = ErrorShape("INVALID_REQUEST", f"invalid request frame: {error}")
            return Send(ResponseFrame(error.frame_id, False, error=shape))
        return Serve(frame)

    def _handshake(self, raw: object) -> Iterator[Action]:
        try:
            frame = from_json(raw)
        except FrameError:
            frame = None
        if not isinstance(frame, RequestFrame):
            yield self._end(Close.INVALID_FRAME)
            return
        try:
            identity = self._admit(check_connect(frame))
        except Refusal as refusal:
            yield Send(ResponseFrame(frame.id, False, error=refusal.shape))
            yield self._end(refusal.close, refusal.shape.message)
            return
        self.phase = Phase.OPEN
        yield Opened(frame.id, identity)

    def _end(self, why: Close, reason: str = "") -> End:
        self.phase = Phase.CLOSED
        self._buffer.clear()
        return End(why, reason or why.value)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
