"""A `Client` for gateways that may not be ours: the console sees one model either way.

With our own gateway everything passes through. An OpenClaw gateway has no `trace` and other
answers; its events become trace events (`foreign_events.py`), its answers our payloads, and the
methods it does not have are not among `features.methods`, so that the console says so.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

from claw_engine.client.base import CLIENT_STATE_EVENT, Client
from claw_engine.client.foreign_events import ForeignEvents
from claw_engine.client.foreign_shapes import (
    approval,
    approvals,
    history,
    session_rows,
    status,
)
from claw_engine.client.inflow import NUDGE
from claw_engine.errors import ClawError
from claw_engine.protocol.frames import EventFrame

Json = Mapping[str, object]

OURS = "trace.subscribe"
"""A gateway that has this method is one of ours."""

PASSED = frozenset({
    "agent", "agent.wait", "chat.abort", "models.list", "sessions.delete", "sessions.patch",
    "sessions.reset", "health",
})  # fmt: skip
"""Methods whose answers mean the same everywhere."""


class Addressed(Client, Protocol):
    """A client that knows where it connects to."""

    @property
    def host(self) -> str: ...

    def nudge(self) -> None:
        """Makes `events` yield a `NUDGE`, so that what we add ourselves waits for nobody."""
        ...


class ForeignClient:
    """Wraps a client of a gateway elsewhere. `now_ms` is wall time."""

    def __init__(
        self, inner: Addressed, *, now_ms: Callable[[], int] = lambda: int(time.time() * 1000)
    ) -> None:
        self._inner = inner
        self._now_ms = now_ms
        self._events = ForeignEvents()
        self._extra: deque[EventFrame] = deque()
        self._ours = True
        self._methods: frozenset[str] = frozenset()
        self._hello: Json = {}
        self.hello: Json = {}
        self._defaults: Json = {}

    @property
    def connected(self) -> bool:
        return self._inner.connected

    async def connect(self) -> Json:
        hello = await self._inner.connect()
        features = hello.get("features")
        names = features.get("methods") if isinstance(features, dict) else None
        known = frozenset(str(name) for name in names) if isinstance(names, list) else frozenset()
        self._ours = OURS in known
        if self._ours:
            self.hello = hello
            return hello
        self._events.forget()
        self._hello, self._defaults = hello, {}
        self._methods = frozenset(self._offered(known))
        if "sessions.subscribe" in known:  # protocol 4 tells of other sessions only then
            with contextlib.suppress(ClawError):
                await self._inner.call("sessions.subscribe", {})
        if "sessions.list" in known:  # the only place that names the model
            with contextlib.suppress(ClawError):
                await self._sessions({"limit": 1})
        self.hello = {
            "type": "hello-ok",
            "protocol": hello.get("protocol"),
            "features": {"methods": sorted(self._methods)},
            "snapshot": self._status(),
        }
        return self.hello

    async def call(
        self, method: str, params: Json | None = None, *, timeout: float | None = 30.0
    ) -> dict[str, object]:
        if self._ours:
            return await self._inner.call(method, params, timeout=timeout)
        given = dict(params or {})
        match method:
            case "trace.subscribe":
                return {"live": []}
            case "status":
                return self._status()
            case "sessions.list":
                return await self._sessions(given)
            case "chat.history":
                answer = await self._inner.call(method, given)
                going = self._events.active(str(given.get("sessionKey", "")))
                return history(answer, going=bool(going))
            case "chat.send":
                return await self._send(given)
            case "exec.approval.list":
                return approvals(await self._inner.call(method, {}))
            case "exec.approval.resolve":
                given.pop("reason", None)  # OpenClaw's parameters are closed
                return await self._inner.call(method, given, timeout=timeout)
            case _:
                return await self._inner.call(method, given, timeout=timeout)

    async def events(self) -> AsyncIterator[EventFrame]:
        async for frame in self._inner.events():
            if self._ours or frame.event == CLIENT_STATE_EVENT:
                yield frame
                continue
            while self._extra:  # what our own sends began comes before what they led to
                yield self._extra.popleft()
            if frame.event == NUDGE:
                continue
            payload = frame.payload if isinstance(frame.payload, dict) else {}
            for trace in self._events.feed(frame.event, payload, self._now_ms()):
                yield EventFrame("trace", trace)
                if trace["kind"] == "run.ended":
                    yield EventFrame("sessions.changed", {"keys": [trace["sessionKey"]]})
            if frame.event == "exec.approval.requested":
                yield EventFrame(frame.event, approval(payload))
            elif frame.event.startswith("exec.approval.") or frame.event == "shutdown":
                yield frame
            elif frame.event == "sessions.changed":
                yield EventFrame("sessions.changed", {"keys": []})

    async def close(self) -> None:
        await self._inner.close()

    def _offered(self, known: frozenset[str]) -> set[str]:
        out = {"trace.subscribe", "status", "chat.send", "chat.history"}
        out |= known & (PASSED | {"sessions.list", "exec.approval.list"})
        # 2026.2.26 has the method and does not list it (gateway digest §5.6).
        return out | {"exec.approval.resolve"}

    def _status(self) -> dict[str, object]:
        return status(self._hello, self._defaults, self._inner.host)

    async def _sessions(self, given: dict[str, object]) -> dict[str, object]:
        more = {"includeDerivedTitles": True, "includeLastMessage": True}
        answer = await self._inner.call("sessions.list", {**given, **more})
        defaults = answer.get("defaults")
        if isinstance(defaults, dict):
            self._defaults = defaults
        return session_rows(answer, self._events.active)

    async def _send(self, given: dict[str, object]) -> dict[str, object]:
        answer = await self._inner.call("chat.send", given)
        run_id, key = answer.get("runId"), given.get("sessionKey")
        if isinstance(run_id, str) and answer.get("status") == "started" and isinstance(key, str):
            text = str(given.get("message", ""))
            for trace in self._events.sent(run_id, key, text, self._now_ms()):
                self._extra.append(EventFrame("trace", trace))
            self._inner.nudge()
        return answer
