"""The parent's side of bench.soak.child: engines in other processes, one at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.crash_disk import KillPlan

ROOT = Path(__file__).parents[2]
START_S = 60.0


class Broken(Exception):
    """The engine did something no engine may do: it did not start, or did not end."""


@dataclass(eq=False, slots=True)
class Life:
    """One engine process. `ready` is False when it died before it was up."""

    nursery: Nursery
    pid: int
    ready: bool
    code: int | None = None

    def kill(self) -> None:
        """SIGKILL, now."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def end(self) -> int:
        """The return code, negative for a signal. Raises Broken when it does not end."""
        if self.code is None:
            self.code = await self.nursery.exit_code()
        return self.code


class Nursery:
    """One child at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def start(self, state: Path, plan: KillPlan | None) -> Life:
        """Start an engine and wait until it is up or dead."""
        assert self._process.stdin is not None
        order = None
        if plan is not None:
            order = {"pattern": plan.pattern, "nth": plan.nth, "cut": plan.cut}
        line = json.dumps({"state": str(state), "plan": order}) + "\n"
        self._process.stdin.write(line.encode())
        pid = (await self._read())["pid"]
        news = await self._read()
        if "ready" in news:
            return Life(self, pid, True)
        return Life(self, pid, False, news["exit"])

    async def exit_code(self) -> int:
        return (await self._read())["exit"]

    async def _read(self) -> dict[str, int]:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(START_S):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise Broken(f"the engine did not start or end within {START_S:g} s") from None
        if not line:
            raise Broken("the nursery is gone")
        found = json.loads(line)
        assert isinstance(found, dict)
        return found


@contextlib.asynccontextmanager
async def nursery(errors: Path) -> AsyncIterator[Nursery]:
    """A nursery; what its engines write to stderr goes to the file `errors`."""
    with errors.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.soak.child",
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )  # fmt: skip
    try:
        yield Nursery(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(5):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
