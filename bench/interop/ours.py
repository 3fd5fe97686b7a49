"""Our engine in a process of its own, driven over its local door as an operator would."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claw_engine.client.base import ClientError
from claw_engine.client.remote import RemoteClient
from tests.support.engines import Operator

ROOT = Path(__file__).parents[2]
STOP_S = 30.0


class NotStarted(Exception):
    """Our engine did not come up on the directory."""


class Ours:
    """A connected operator and the engine's process."""

    def __init__(self, operator: Operator, process: asyncio.subprocess.Process) -> None:
        self.operator = operator
        self._process = process

    async def call(self, method: str, params: dict[str, object]) -> dict[str, Any]:
        return await self.operator.client.call(method, params)

    async def turn(self, session: str, text: str) -> dict[str, Any]:
        """Send a message, allow what is asked, and wait for the end; `data` of `run.ended`."""
        run_id = await self.operator.say(text, session)
        allowing = asyncio.create_task(self._allow(run_id))
        try:
            ended = await self.operator.ended(run_id)
        finally:
            allowing.cancel()
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                await allowing
        assert isinstance(ended, dict)
        return ended

    async def _allow(self, run_id: str) -> None:
        record = await self.operator.request(run_id)
        await self.operator.decide(record, "allow-once")

    async def aborted(self, session: str, text: str) -> dict[str, Any]:
        """A run that is stopped once it has begun to answer; `data` of its end."""
        run_id = await self.hanging(session, text)
        await self.call("chat.abort", {"sessionKey": session})
        ended = await self.operator.ended(run_id)
        assert isinstance(ended, dict)
        return ended

    async def hanging(self, session: str, text: str) -> str:
        """A run whose model has begun to answer and will not end; its id."""
        run_id = await self.operator.say(text, session)
        await self.operator.trace(run_id, "text")
        return run_id

    async def asking(self, session: str, text: str) -> str:
        """A run that waits for a decision nobody will give; its id."""
        run_id = await self.operator.say(text, session)
        await self.operator.request(run_id)
        return run_id

    async def allowed_for_good(self, session: str, text: str) -> dict[str, Any]:
        """A run whose command is allowed with allow-always; `data` of its end."""
        run_id = await self.operator.say(text, session)
        await self.operator.decide(await self.operator.request(run_id), "allow-always")
        ended = await self.operator.ended(run_id)
        assert isinstance(ended, dict)
        return ended

    def asked(self) -> int:
        """How many commands were asked about on this connection."""
        return sum(frame.event == "exec.approval.requested" for frame in self.operator.seen)

    async def reset(self, session: str) -> str:
        """Begin the session anew by whichever door this engine has; says which. ClientError."""
        try:
            await self.call("sessions.reset", {"key": session})
        except ClientError as error:
            if "unknown method" not in str(error):
                raise
            await self.operator.ended(await self.operator.say("/reset", session))
            return "/reset"
        return "sessions.reset"

    async def history(self, session: str) -> list[dict[str, Any]]:
        answer = await self.call("chat.history", {"sessionKey": session, "limit": 1000})
        return list(answer["messages"])

    async def kill(self) -> None:
        """SIGKILL: what stands on disk is all that is left."""
        os.kill(self._process.pid, signal.SIGKILL)
        await self._process.wait()


@contextlib.asynccontextmanager
async def engine(state: Path, errors: Path) -> AsyncIterator[Ours]:
    """Our engine on `state`, connected; asked to stop at the end unless it was killed."""
    with errors.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.soak.child", str(state),
            cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=log,
        )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(60):
        line = await process.stdout.readline()
    if b"ready" not in line:
        raise NotStarted(f"our engine did not start on {state.name}: see {errors}")
    assert json.loads(line)["ready"] == process.pid
    operator = Operator(RemoteClient(state))
    async with operator:
        ours = Ours(operator, process)
        try:
            yield ours
        finally:
            if process.returncode is None:
                await ours.call("engine.stop", {"when": "now"})
                async with asyncio.timeout(STOP_S):
                    await process.wait()
