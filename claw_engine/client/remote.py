"""The engine in another process, through its local door. Knows frames, not the engine.

When the connection breaks, calls in flight fail with `ConnectionLost`, and the event stream says
so; whether and when to `connect` again is the caller's wish. Afterwards the caller reads the
state again: nothing is replayed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

from claw_engine.client.base import ClientError, ConnectionLost
from claw_engine.client.calls import Calls, payload_of
from claw_engine.client.door import (
    DoorRefused,
    connect_params,
    open_socket,
    proof,
)
from claw_engine.client.inflow import Inflow
from claw_engine.protocol.frames import (
    MAX_PAYLOAD,
    ErrorShape,
    EventFrame,
    Frame,
    RequestFrame,
    ResponseFrame,
    decode,
    encode,
)
from claw_engine.protocol.names import ALL_SCOPES, Scope

log = logging.getLogger(__name__)

HANDSHAKE_S = 10.0


class RemoteClient:
    """A `Client` over `<state>/claw.sock` (see client/base.py)."""

    def __init__(
        self,
        state_dir: Path,
        *,
        client_id: str = "gateway-client",
        mode: str = "ui",
        scopes: Iterable[Scope] = ALL_SCOPES,
        caps: Iterable[str] = ("trace", "tool-events"),
    ) -> None:
        self._state_dir = state_dir
        self._client_id = client_id
        self._mode = mode
        self._scopes = sorted(scope.value for scope in scopes)
        self._caps = sorted(caps)
        self.hello: Mapping[str, object] = {}
        self._inflow = Inflow()
        self._calls = Calls()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._writer is not None

    async def connect(self) -> Mapping[str, object]:
        """Open and shake hands. Raises NoEngine, DoorRefused, ClientError, ConnectionLost."""
        if self._writer is not None:
            raise DoorRefused("This client is connected already.")
        # In a thread: a frozen engine with a full backlog would hold this loop.
        sock = await asyncio.to_thread(open_socket, self._state_dir, HANDSHAKE_S)
        sock.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=sock, limit=2 * MAX_PAYLOAD)
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                hello = await self._handshake(reader, writer)
        except (TimeoutError, OSError, EOFError, ValueError, RecursionError) as error:
            writer.transport.abort()
            why = "it hung up" if isinstance(error, EOFError) else repr(error)
            raise ConnectionLost(f"The engine did not finish the handshake: {why}.") from error
        except BaseException:
            writer.transport.abort()
            raise
        self._writer, self.hello = writer, hello
        self._inflow.state("connected", "")
        self._reading = asyncio.get_running_loop().create_task(
            self._read(reader, writer), name="client read"
        )
        return hello

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> dict[str, object]:
        writer = self._writer
        if writer is None:
            raise ConnectionLost("There is no connection to the engine.")
        frame = self._calls.begin(method, params)
        line = encode(frame)
        if len(line) > MAX_PAYLOAD:  # the engine would close the connection over it
            self._calls.drop(frame)
            text = f"The request is larger than {MAX_PAYLOAD >> 20} MB and was not sent."
            raise ClientError(ErrorShape("INVALID_REQUEST", text))
        writer.write(line)
        return await self._calls.answer(frame, timeout)

    def events(self) -> AsyncIterator[EventFrame]:
        return self._inflow.events()

    async def close(self) -> None:
        self._inflow.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
            if self._writer is not None:  # cancelled before its first step: nothing was undone
                self._lost(self._writer, "closed")

    async def _handshake(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Mapping[str, object]:
        challenge = await _read_frame(reader)
        payload = challenge.payload if isinstance(challenge, EventFrame) else None
        nonce = payload.get("nonce") if isinstance(payload, dict) else None
        if not isinstance(nonce, str):
            raise DoorRefused("What answers at the door does not speak the gateway protocol.")
        params = connect_params(
            proof(self._state_dir, nonce),
            client_id=self._client_id,
            mode=self._mode,
            scopes=self._scopes,
            caps=self._caps,
        )
        writer.write(encode(RequestFrame("connect", "connect", params)))
        while True:
            frame = await _read_frame(reader)
            if isinstance(frame, ResponseFrame):
                return payload_of(frame)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reason = "the engine closed the connection"
        try:
            while True:
                frame = await _read_frame(reader)
                if isinstance(frame, ResponseFrame):
                    self._calls.answered(frame)
                elif isinstance(frame, EventFrame):
                    if frame.event == "connection.closing" and isinstance(frame.payload, dict):
                        reason = str(frame.payload.get("reason", reason))
                    self._inflow.put(frame)
        except asyncio.CancelledError:
            reason = "closed"
            raise
        except (OSError, ValueError, RecursionError, EOFError) as error:
            if not isinstance(error, EOFError):
                reason = f"the connection broke: {error}"
        finally:
            self._lost(writer, reason)

    def _lost(self, writer: asyncio.StreamWriter, reason: str) -> None:
        self._writer = None
        with contextlib.suppress(OSError):
            writer.transport.abort()
        self._calls.lost(reason)
        self._inflow.state("disconnected", reason)


async def _read_frame(reader: asyncio.StreamReader) -> Frame:
    """One frame. Raises EOFError, ValueError (no frame, or too long), OSError."""
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return decode(line)
