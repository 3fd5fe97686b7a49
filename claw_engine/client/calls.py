"""Requests that wait for their answers, whatever carries the frames. Knows no socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from claw_engine.client.base import ClientError, ConnectionLost
from claw_engine.client.door import TWO_ANSWERS
from claw_engine.protocol.frames import ErrorShape, RequestFrame, ResponseFrame


class Calls:
    """One connection's calls. `prefix` makes the ids of two connections differ."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._next_id = 0
        self._waiting: dict[str, tuple[str, asyncio.Future[ResponseFrame]]] = {}

    def begin(self, method: str, params: Mapping[str, object] | None) -> RequestFrame:
        """The frame to send; `answer` with its id waits for what comes back."""
        self._next_id += 1
        frame = RequestFrame(f"{self._prefix}{self._next_id}", method, params or {})
        future: asyncio.Future[ResponseFrame] = asyncio.get_running_loop().create_future()
        self._waiting[frame.id] = (method, future)
        return frame

    def drop(self, frame: RequestFrame) -> None:
        """A call that was not sent, or whose caller has gone."""
        self._waiting.pop(frame.id, None)

    async def answer(self, frame: RequestFrame, timeout: float | None) -> dict[str, object]:
        """The payload of the (final) answer; seconds. Raises ClientError or ConnectionLost."""
        _, future = self._waiting[frame.id]
        try:
            async with asyncio.timeout(timeout):
                answered = await future
        except TimeoutError:
            text = f"{frame.method}: no answer within {timeout:g} s"
            raise ClientError(ErrorShape("AGENT_TIMEOUT", text)) from None
        finally:
            self.drop(frame)
        return payload_of(answered)

    def answered(self, frame: ResponseFrame) -> None:
        """A response came. The first of two answers only says that there will be a second."""
        method, future = self._waiting.get(frame.id, ("", None))
        if future is None or future.done():
            return
        payload = frame.payload
        accepted = isinstance(payload, dict) and payload.get("status") == "accepted"
        if not (accepted and method in TWO_ANSWERS):
            future.set_result(frame)

    def lost(self, reason: str) -> None:
        """The connection is gone: nobody knows whether the calls in flight took effect."""
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionLost(f"The connection was lost: {reason}."))


def payload_of(frame: ResponseFrame) -> dict[str, object]:
    """The payload; an answer that is a bare list stands under `items`.

    Raises ClientError for an error response.
    """
    if not frame.ok:
        raise ClientError(frame.error or ErrorShape("UNAVAILABLE", "the engine gave no reason"))
    if isinstance(frame.payload, list):
        return {"items": frame.payload}
    return frame.payload if isinstance(frame.payload, dict) else {}
