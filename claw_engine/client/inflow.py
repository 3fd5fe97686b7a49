"""Events on the client's side: one consumer, bounded, gaps noticed.

A consumer that never reads costs a bounded amount of memory: the queue is emptied and leaves one
`client.state` that tells it to read the state again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from claw_engine.client.base import CLIENT_STATE_EVENT, RESYNC
from claw_engine.protocol.frames import EventFrame

NUDGE = "client.nudge"
CAPACITY = 20_000
"""Events that may wait; more means nobody reads them."""


class Inflow:
    """Events in, in order; `events` hands them to one consumer until `close`."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._queue: deque[EventFrame] = deque()
        self._wake = asyncio.Event()
        self._closed = False
        self._seq: int | None = None

    def put(self, frame: EventFrame) -> None:
        if self._closed:
            return
        if frame.seq is not None:
            gap = self._seq is not None and frame.seq > self._seq + 1
            self._seq = frame.seq
            if gap:
                self.state("connected", RESYNC)
        if len(self._queue) >= self._capacity:
            self._queue.clear()
            self.state("connected", RESYNC)
        self._queue.append(frame)
        self._wake.set()

    def state(self, state: str, reason: str) -> None:
        """Our own event: connected or disconnected, and why."""
        if state == "disconnected":
            self._seq = None
        self._queue.append(EventFrame(CLIENT_STATE_EVENT, {"state": state, "reason": reason}))
        self._wake.set()

    def nudge(self) -> None:
        """An event that means nothing (`NUDGE`), so that the reader looks at what it keeps."""
        if not self._closed:
            self._queue.append(EventFrame(NUDGE, {}))
            self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    async def events(self) -> AsyncIterator[EventFrame]:
        while True:
            while self._queue:
                yield self._queue.popleft()
            if self._closed:
                return
            self._wake.clear()
            await self._wake.wait()
