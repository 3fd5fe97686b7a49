"""Frames over the door's stream: one line of JSON each (see session.py)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from claw_engine.gateway.close import Close
from claw_engine.gateway.lines import LineSplitter
from claw_engine.gateway.session import FrameTooLarge
from claw_engine.gateway.wire_events import WireEvent

READ_BYTES = 64 * 1024


class DoorWire:
    """A `Wire` over a stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._lines = LineSplitter()
        self._ready: deque[bytes] = deque()
        self._lines_out: list[bytes] = []
        self._flushing = False

    async def receive(self, limit: int) -> bytes | None:
        while not self._ready:
            data = await self._reader.read(READ_BYTES)
            if not data:
                return None
            self._ready.extend(self._lines.feed(data))
            if not self._ready and self._lines.rest > limit:
                raise FrameTooLarge
        return self._ready.popleft()

    def write(self, line: bytes) -> None:
        self._lines_out.append(line)

    def write_event(self, body: bytes, tail: bytes) -> None:
        self._lines_out += (body, tail, b"\n")

    def flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    @property
    def open(self) -> bool:
        return self.unsent == 0

    def _flush(self) -> None:
        self._flushing = False
        lines, self._lines_out = self._lines_out, []
        if lines:
            self._writer.write(b"".join(lines))

    @property
    def unsent(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    async def drain(self) -> None:
        self._flush()
        await self._writer.drain()

    async def hang_up(self, why: Close, reason: str) -> None:
        """A Unix socket has no close codes: an event says it."""
        self._flush()
        if why is not Close.NORMAL:
            self._writer.write(_closing(why, reason))
        self._writer.close()
        await self._writer.wait_closed()

    def abort(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.transport.abort()


def _closing(why: Close, reason: str) -> bytes:
    return WireEvent("connection.closing", {"code": why.code, "reason": reason}).line(None)
