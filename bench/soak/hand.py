"""The operator's hand: sends, decides what is asked, and remembers all it was told."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any

from bench.soak.truth import Sent, Truth
from claw_engine.client.base import Client, ClientError, ConnectionLost
from claw_engine.errors import ClawError
from claw_engine.protocol.frames import EventFrame

SETTLE_S = 120.0
"""Seconds after which an engine that still has runs counts as stuck."""

Watch = Callable[[str], None]
"""Called at each moment seen from outside: ack, asked, decided, event."""


def _nobody(moment: str) -> None:
    """Default watch."""


class Hand:
    """One connection to one life of the engine. `deny` is the chance that a request is denied."""

    def __init__(
        self, client: Client, truth: Truth, rng: random.Random, *,
        deny: float = 0.15, watch: Watch = _nobody,
    ) -> None:  # fmt: skip
        self._client = client
        self._truth = truth
        self._rng = rng
        self._deny = deny
        self._watch = watch
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._following: asyncio.Task[None] | None = None
        self._decided: set[str] = set()
        self.undecided: list[str] = []  # the disk refused to keep our answer: still asked
        self.lost = asyncio.Event()
        self.refused: list[str] = []
        self.ended: dict[str, dict[str, Any]] = {}

    async def connect(self) -> None:
        """Shake hands, follow everything, and take up the requests that wait already."""
        await self._client.connect()
        self._following = asyncio.create_task(self._follow())
        await self._client.call("trace.subscribe", {})
        waiting = await self._client.call("exec.approval.list", {})
        for record in _list(waiting, "approvals"):
            self._asked(record)

    async def close(self) -> None:
        await self._client.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._following is not None:
            await self._following

    async def send(self, message: Sent) -> None:
        """Send; the message is acknowledged exactly when the answer came."""
        self._truth.sent[message.id] = message
        try:
            await self._client.call(
                "chat.send",
                {
                    "sessionKey": message.session,
                    "message": message.text,
                    "idempotencyKey": message.id,
                },
            )
        except ConnectionLost:
            return
        except (ClientError, ClawError) as error:
            self.refused.append(str(error))
            return
        self._truth.acked.add(message.id)
        self._watch("ack")

    async def decide_again(self) -> None:
        """Answer what a bad disk refused to keep."""
        again, self.undecided = self.undecided, []
        await asyncio.gather(*map(self._decide, again))

    async def settle(self) -> bool:
        """Wait until no run is left, deciding what is asked; False when the engine died first.

        Runs whose decision was refused may be left waiting for it, see `decide_again`. Raises
        TimeoutError when the engine never comes to rest.
        """
        async with asyncio.timeout(SETTLE_S):
            while not self.lost.is_set():
                self._news.clear()
                try:
                    status = await self._client.call("status", {})
                except (ConnectionLost, ClientError):
                    return False
                runs = status["runs"]
                assert isinstance(runs, dict)
                kinds = ("active",) if self.undecided else ("active", "queued", "parked")
                if not any(runs[kind] for kind in kinds) and not self._tasks:
                    return True
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.25):  # runs can also end without a word to us
                        await self._news.wait()
        return False

    async def end_of(self, run_id: str) -> dict[str, Any]:
        """`data` of a run's `run.ended`. Raises TimeoutError."""
        async with asyncio.timeout(SETTLE_S):
            while run_id not in self.ended:
                self._news.clear()
                await self._news.wait()
        return self.ended[run_id]

    async def call(self, method: str, params: dict[str, object]) -> dict[str, Any]:
        return await self._client.call(method, params)

    async def _follow(self) -> None:
        async for frame in self._client.events():
            self._take(frame)
            self._news.set()

    def _take(self, frame: EventFrame) -> None:
        payload: Any = frame.payload
        match frame.event:
            case "client.state":
                if payload["state"] == "disconnected":
                    self.lost.set()
            case "exec.approval.requested":
                self._asked(payload)
            case "trace":
                self._watch("event")
                if payload["kind"] == "run.ended":
                    self.ended[payload["runId"]] = payload["data"]
                    self._truth.told_end[payload["runId"]] = payload["data"]["status"]
                    self._watch("ended")

    def _asked(self, record: dict[str, Any]) -> None:
        if record["id"] in self._decided:
            return
        self._decided.add(record["id"])
        self._truth.note_asked(record["id"], record["request"]["command"])
        self._watch("asked")
        task = asyncio.create_task(self._decide(record["id"]))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._news.set()

    async def _decide(self, approval_id: str) -> None:
        allow = self._rng.random() >= self._deny
        if allow:
            self._truth.allowed.add(self._truth.asked.get(approval_id, ""))
        decision = "allow-once" if allow else "deny"
        params = {"id": approval_id, "decision": decision}
        try:
            await self._client.call("exec.approval.resolve", params)
        except ConnectionLost:
            return
        except (ClientError, ClawError) as error:
            self.refused.append(str(error))
            if "already" not in str(error):  # else it has ended without us
                self.undecided.append(approval_id)
            return
        self._watch("decided")


def _list(payload: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = payload[key]
    assert isinstance(found, list)
    return found
