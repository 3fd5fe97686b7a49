"""`kill -9` of the real gateway under consoles that chat: all come back by themselves, and nothing
is missing of what was acknowledged.

CLAW_TEST_KILLS (2) and CLAW_TEST_KILL_CLIENTS (5) size it; the suite runs a slice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import uuid
from pathlib import Path

import pytest

from claw_engine.client.device import load_device
from claw_engine.client.foreign import ForeignClient
from claw_engine.client.gateways import Gateways, parse_address
from claw_engine.client.websocket import Secret, WebSocketClient
from claw_engine.errors import ClawError
from claw_tui.link import LinkTask
from claw_tui.store.store import Link, Store
from tests.support.engines import PLAIN_ENV

KILLS = int(os.environ.get("CLAW_TEST_KILLS", "2"))
CLIENTS = int(os.environ.get("CLAW_TEST_KILL_CLIENTS", "5"))
BEFORE_KILL = 4
"""Messages that each client has had acknowledged since the last kill before the next one."""
TOKEN = "a-token-of-the-test-0123456789"
LIMIT_S = 60.0


class GatewayProcess:
    """`claw gateway run` on one state directory and one port, again and again."""

    def __init__(self, root: Path) -> None:
        self.state = root / "state"
        self.state.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        config = {"gateway": {"port": self.port, "auth": {"token": TOKEN}}}
        (self.state / "openclaw.json").write_text(json.dumps(config))
        self._env = {**PLAIN_ENV, "HOME": str(root), "PATH": os.environ["PATH"]}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Up, and its port open."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "claw_engine.cli", "gateway", "run",
            "--state-dir", str(self.state),
            env=self._env, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            assert b"ready" in await self._process.stdout.readline()

    async def kill(self) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class Console:
    """A console without a screen, and a person who does not stop writing."""

    def __init__(self, number: int, gateway: GatewayProcess, root: Path) -> None:
        self.key = f"agent:main:talk{number}"
        kept = root / f"laptop{number}"
        where = parse_address(f"ws://127.0.0.1:{gateway.port}")
        client = WebSocketClient(
            where, load_device(kept / "device.json"), Gateways(kept / "gateways.json"),
            Secret(TOKEN),
        )  # fmt: skip
        self.store = Store(selected=self.key)
        self.changed = asyncio.Event()
        self.store.wake = self.changed.set
        self.link = LinkTask(ForeignClient(client), self.store, on_reset=lambda: None)
        self.acknowledged: list[str] = []
        self._tasks = [asyncio.create_task(self.link.run()), asyncio.create_task(self._write())]

    async def until(self, link: Link) -> None:
        async with asyncio.timeout(LIMIT_S):
            while self.store.link is not link:
                self.changed.clear()
                await self.changed.wait()

    async def _write(self) -> None:
        while True:
            await self.until(Link.CONNECTED)
            words = f"long: 20 400 {uuid.uuid4()}"
            params = {"sessionKey": self.key, "message": words, "idempotencyKey": words[-36:]}
            try:
                answer = await self.link.client.call("chat.send", params)
            except ClawError:
                await asyncio.sleep(0)  # not acknowledged: nobody promised anything
                continue
            assert answer["status"] in ("started", "queued")
            self.acknowledged.append(words)
            self.changed.set()
            if len(self.acknowledged) % BEFORE_KILL == 0:
                await self._idle()

    async def _idle(self) -> None:
        """Wait until this session has nothing to do, so that queues stay short."""
        talk = self.store.conversation(self.key)
        while self.store.link is Link.CONNECTED and (talk.active_run() or talk.queued):
            self.changed.clear()
            await self.changed.wait()

    async def wrote(self, more: int) -> None:
        wanted = len(self.acknowledged) + more
        async with asyncio.timeout(LIMIT_S):
            while len(self.acknowledged) < wanted:
                self.changed.clear()
                await self.changed.wait()

    async def lost(self) -> list[str]:
        """Acknowledged messages that are in no transcript, in no queue, and wait for nobody."""
        await self.stop_writing()
        call, idle = self.link.client.call, 0
        async with asyncio.timeout(LIMIT_S):
            while True:
                await self._idle()
                self.changed.clear()
                rows = (await call("sessions.list", {}))["sessions"]
                assert isinstance(rows, list)
                state = next(r for r in rows if r["key"] == self.key)["state"]
                idle += state == "idle"
                history = await call("chat.history", {"sessionKey": self.key, "limit": 1000})
                known = json.dumps([history, await call("runs.interrupted", {})])
                missing = [words for words in self.acknowledged if words not in known]
                if not missing or idle > 2:
                    return missing
                if state != "idle":  # a queued one is on its way
                    await self.changed.wait()

    async def stop_writing(self) -> None:
        self._tasks[1].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._tasks[1]

    async def close(self) -> None:
        await self.stop_writing()
        await self.link.close()
        await self._tasks[0]


@pytest.mark.timeout(600)
async def test_consoles_outlive_killed_gateways(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path)
    await gateway.start()
    consoles = [Console(number, gateway, tmp_path) for number in range(CLIENTS)]
    try:
        for _ in range(KILLS):
            await asyncio.gather(*(console.wrote(BEFORE_KILL) for console in consoles))
            await gateway.kill()
            await asyncio.gather(*(console.until(Link.LOST) for console in consoles))
            await gateway.start()
            await asyncio.gather(*(console.until(Link.CONNECTED) for console in consoles))
        await asyncio.gather(*(console.wrote(1) for console in consoles))
        lost = [await console.lost() for console in consoles]
        assert lost == [[]] * CLIENTS
        assert all(len(c.acknowledged) > KILLS * BEFORE_KILL for c in consoles)
    finally:
        for console in consoles:
            await console.close()
        await gateway.kill()
