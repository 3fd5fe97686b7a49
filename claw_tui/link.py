"""Keeps the store true: connects, asks for what the screen shows, follows the events, and does
it all again after a lost connection. The only reader of the client's events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from claw_engine.client.base import CLIENT_STATE_EVENT, RESYNC, Client, ClientError
from claw_engine.errors import ClawError
from claw_tui.store.store import Store
from claw_tui.store.wire import EMPTY, Json, obj, text

RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
REFETCH_SECONDS = 0.2
"""How long changes of the session list are gathered before it is asked for again."""

Sleep = Callable[[float], Awaitable[None]]


class LinkTask:
    """Run `run()` as a task; `call` is for everything the operator asks for."""

    def __init__(
        self,
        client: Client,
        store: Store,
        *,
        on_reset: Callable[[], None],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.client = client
        self.store = store
        self._on_reset = on_reset
        self._sleep = sleep
        self._refetching: asyncio.Task[None] | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._closing = False

    async def run(self) -> None:
        """Connect and follow until the client is closed."""
        if not await self._connect_once():
            self._start_reconnect()
        async for frame in self.client.events():
            if frame.event == CLIENT_STATE_EVENT:
                self._client_state(obj(frame.payload))
                continue
            self.store.apply(frame.event, frame.payload)
            if self.store.refetch and (self._refetching is None or self._refetching.done()):
                self._refetching = asyncio.create_task(self._refetch())

    async def close(self) -> None:
        self._closing = True
        for task in (self._refetching, self._reconnecting):
            if task is not None and not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self.client.close()

    async def call(self, method: str, params: Mapping[str, object] | None = None) -> Json | None:
        """Call, and turn a failure into words on the toast line; None then."""
        try:
            return await self.client.call(method, params)
        except ClawError as error:
            self.store.notice("error", f"{method}: {error.title}", hint=error.hint)
            return None

    # ── connection ──────────────────────────────────────────────────────────────────────────

    def _client_state(self, payload: Json) -> None:
        if text(payload, "state") == "disconnected":
            self._on_reset()
            self.store.lost(text(payload, "reason"))
            self._start_reconnect()
        elif text(payload, "reason") == RESYNC:
            self.store.notice("warn", "Some events did not arrive; everything was read again.")
            self._start_reconnect(at_once=True)

    def _start_reconnect(self, *, at_once: bool = False) -> None:
        if not self._closing and (self._reconnecting is None or self._reconnecting.done()):
            self._reconnecting = asyncio.create_task(self._reconnect(at_once))

    async def _reconnect(self, at_once: bool = False) -> None:
        """Connect if need be, and read everything again; tries until it has worked."""
        attempt = 0
        while True:
            if not (at_once and attempt == 0):
                await self._sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
            if await self._connect_once():
                return
            attempt += 1

    async def _connect_once(self) -> bool:
        try:
            if not self.client.connected:
                await self.client.connect()
            self._on_reset()
            self.store.connected(self.client.hello)
            await self.resync()
        except ClawError as error:
            self.store.lost(error.title)
            return False
        return True

    async def resync(self) -> None:
        """Everything the screen shows, from the start: subscribe first, so nothing is missed."""
        self.store.set_live(await self._maybe("trace.subscribe", {}))
        self.store.set_status(await self._maybe("status", {}))
        self.store.set_sessions(await self._maybe("sessions.list", {"limit": 1000}))
        self.store.set_approvals(await self._maybe("exec.approval.list", {}))
        self.store.set_approval_history(await self._maybe("approval.history", {"limit": 100}))
        self.store.set_interrupted(await self._maybe("runs.interrupted", {}))
        self.store.set_rules(await self._maybe("exec.approvals.rules", {}))
        self.store.set_permission(await self._maybe("permission.get", {}))
        await self.load_history(self.store.selected)

    async def load_history(self, key: str) -> None:
        self.store.set_history(
            key, await self._maybe("chat.history", {"sessionKey": key, "limit": 200})
        )

    async def _maybe(self, method: str, params: Mapping[str, object]) -> Json:
        """A method that a foreign gateway may lack: then there is simply nothing to show."""
        if self.store.engine.methods and method not in self.store.engine.methods:
            return EMPTY
        try:
            return await self.client.call(method, params)
        except ClientError as error:
            if error.title.startswith("missing scope"):  # a connection that may only read
                return EMPTY
            raise

    async def _refetch(self) -> None:
        await self._sleep(REFETCH_SECONDS)
        while self.store.refetch:
            wanted = set(self.store.refetch)
            self.store.refetch.clear()
            with contextlib.suppress(ClawError):
                await self._fetch(wanted)

    async def _fetch(self, wanted: set[str]) -> None:
        if "sessions" in wanted:
            self.store.set_sessions(await self._maybe("sessions.list", {"limit": 1000}))
        if "interrupted" in wanted:
            self.store.set_interrupted(await self._maybe("runs.interrupted", {}))
        if "permission" in wanted:
            self.store.set_permission(await self._maybe("permission.get", {}))
        if "rules" in wanted:
            self.store.set_rules(await self._maybe("exec.approvals.rules", {}))
