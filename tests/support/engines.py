"""A running engine for tests, and the little questions tests ask it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from claw_engine.client.base import Client
from claw_engine.engine import Engine
from claw_engine.protocol.frames import EventFrame
from claw_engine.world import RealDisk, World

PLAIN_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
"""Nothing in here names a model: the rehearsal model answers."""


@contextlib.asynccontextmanager
async def engine_on(
    state: Path, *, world: World | None = None, config: dict[str, object] | None = None
) -> AsyncIterator[Engine]:
    """An engine on `state`, with `config` written first."""
    if config is not None:
        state.mkdir(parents=True, exist_ok=True)
        (state / "openclaw.json").write_text(json.dumps(config))
    async with Engine(state, env={**PLAIN_ENV, "HOME": str(state)}, world=world) as engine:
        yield engine


class Operator:
    """A person at a strict local client: says things, waits for what is told."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.seen: list[EventFrame] = []
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Operator:
        await self.client.connect()
        await self.client.call("trace.subscribe", {})
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        assert self._task is not None
        await self._task

    async def _follow(self) -> None:
        async for frame in self.client.events():
            self.seen.append(frame)
            self._news.set()

    async def say(self, text: str, session: str = "main") -> str:
        """Send a message; returns its run id once it is acknowledged."""
        run_id = str(uuid.uuid4())
        await self.client.call(
            "chat.send", {"sessionKey": session, "message": text, "idempotencyKey": run_id}
        )
        return run_id

    async def event(
        self, name: str, test: Callable[[Any], bool] = lambda _: True, seconds: float = 20
    ) -> Any:
        """The payload of the first event called `name` that passes; waits for it."""
        looked = 0
        async with asyncio.timeout(seconds):
            while True:
                for frame in self.seen[looked:]:
                    if frame.event == name and test(frame.payload):
                        return frame.payload
                looked = len(self.seen)
                self._news.clear()
                await self._news.wait()

    async def trace(self, run_id: str, kind: str) -> Any:
        """`data` of a run's first trace event of that kind."""
        event = await self.event("trace", lambda p: p["runId"] == run_id and p["kind"] == kind)
        return event["data"]

    async def request(self, run_id: str) -> Any:
        """The approval record a run asked for."""
        return await self.event(
            "exec.approval.requested", lambda p: p["request"]["runId"] == run_id
        )

    async def decide(self, record: Any, decision: str, reason: str = "") -> Any:
        params = {"id": record["id"], "decision": decision, "reason": reason}
        return await self.client.call("exec.approval.resolve", params)

    async def ended(self, run_id: str) -> Any:
        """`data` of `run.ended`."""
        return await self.trace(run_id, "run.ended")

    async def history(self, session: str = "main") -> list[Any]:
        answer = await self.client.call("chat.history", {"sessionKey": session})
        messages = answer["messages"]
        assert isinstance(messages, list)
        return messages


def transcript_of(state: Path, session: str = "agent:main:main") -> list[dict[str, Any]]:
    """The lines of a session's transcript file."""
    folder = state / "agents" / "main" / "sessions"
    read = RealDisk().read_bytes  # not read_text: see there why one read is not enough
    entry = json.loads(read(folder / "sessions.json"))[session]
    file = folder / f"{entry['sessionId']}.jsonl"
    return [json.loads(line) for line in read(file).decode().splitlines()]
