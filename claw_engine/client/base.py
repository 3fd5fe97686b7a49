"""What a client of the engine offers, wherever the engine runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from claw_engine.errors import ClawError
from claw_engine.protocol.frames import ErrorShape, EventFrame

CLIENT_STATE_EVENT = "client.state"
"""Synthetic event of the client itself: payload {state: connected|disconnected, reason}."""


RESYNC = "resync"
"""The reason of a `client.state` (state still connected) after events were lost."""


class ClientError(ClawError):
    """A call was refused or failed at the other end; `shape` is the error as it came."""

    def __init__(self, shape: ErrorShape, *, hint: str = "") -> None:
        details = dict(shape.details or {})
        super().__init__(shape.message, hint=hint or str(details.get("hint", "")), details=details)
        self.shape = shape
        self.retryable = bool(shape.retryable)


class ConnectionLost(ClawError):
    """The engine went away; calls in flight do not know whether they took effect."""

    retryable = True


class Client(Protocol):
    """One connection. `call` may be used concurrently; `events` has a single consumer."""

    @property
    def connected(self) -> bool: ...

    @property
    def hello(self) -> Mapping[str, object]:
        """What the engine said at the last `connect`; empty before."""
        ...

    async def connect(self) -> Mapping[str, object]:
        """Open and shake hands; returns the hello-ok payload. Raises ClawError."""
        ...

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> dict[str, object]:
        """The payload of the (final) answer. Raises ClientError or ConnectionLost. Seconds."""
        ...

    def events(self) -> AsyncIterator[EventFrame]:
        """Events in order, with `client.state` events of our own; ends after `close`."""
        ...

    async def close(self) -> None: ...
