"""A restart inside the process: what runs ends, what waits is kept, the port is the same."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from claw_engine.client.device import load_device
from claw_engine.client.gateways import Gateways, parse_address
from claw_engine.client.websocket import NoGateway, Secret, WebSocketClient

TOKEN = "a-token-of-the-test-0123456789"
GATEWAY: dict[str, Any] = {"auth": {"token": TOKEN}}


class Gateway:
    """`claw gateway run` in a process of its own."""

    def __init__(self, root: Path, process: asyncio.subprocess.Process) -> None:
        self.root = root
        self.process = process
        self.ready: list[dict[str, Any]] = []

    async def next_ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            found = json.loads(await self.process.stdout.readline())
        self.ready.append(found)
        assert isinstance(found, dict)
        return found

    async def client(self) -> WebSocketClient:
        """Connected; while the port is being opened it tries again."""
        where = parse_address(f"ws://127.0.0.1:{self.ready[-1]['port']}")
        device = load_device(self.root / "client" / "device.json")
        kept = Gateways(self.root / "client" / "gateways.json")
        async with asyncio.timeout(60):
            while True:
                client = WebSocketClient(where, device, kept, Secret(TOKEN))
                try:
                    await client.connect()
                except NoGateway:
                    await client.close()
                    continue
                return client


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with running(tmp_path, "--port", "0") as made:
        yield made


@contextlib.asynccontextmanager
async def running(
    tmp_path: Path, *argv: str, port: int | None = None, signals: bool = True
) -> AsyncIterator[Gateway]:
    state = tmp_path / "s"
    state.mkdir(mode=0o700)
    section = {**GATEWAY, **({"port": port} if port else {})}
    (state / "openclaw.json").write_text(
        json.dumps({"gateway": section, "commands": {"restart": signals}})
    )
    keep = ("PATH", "LANG", "VIRTUAL_ENV", "PYTHONPATH")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "claw_engine.cli", "gateway", "run", "--json",
        "--state-dir", str(state), *argv, env={**env, "HOME": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    made = Gateway(tmp_path, process)
    await made.next_ready()
    yield made
    if process.returncode is None:
        process.terminate()
    await process.wait()


async def send(client: WebSocketClient, session: str, text: str) -> None:
    sent = {"sessionKey": session, "message": text, "idempotencyKey": f"run-{session}"}
    assert (await client.call("chat.send", sent))["status"] == "started"


async def last_words(client: WebSocketClient) -> Any:
    """The payload of `shutdown`; then the connection is gone."""
    async with asyncio.timeout(60):
        async for frame in client.events():
            if frame.event == "shutdown":
                return frame.payload
    raise AssertionError("no shutdown event")


async def test_a_restart_keeps_what_waits_and_the_port(gateway: Gateway) -> None:
    client = await gateway.client()
    await send(client, "a", "long: 30 20")
    await client.call("lanes.pause")
    await send(client, "b", "hello")
    gateway.process.send_signal(signal.SIGUSR1)
    assert await last_words(client) == {"reason": "gateway restarting", "restartExpectedMs": 1500}
    await client.close()
    again = await gateway.next_ready()
    assert (again["pid"], again["port"]) == (gateway.process.pid, gateway.ready[0]["port"])
    client = await gateway.client()
    said: Any = (await client.call("chat.history", {"sessionKey": "a"}))["messages"]
    assert said[-1]["stopReason"] == "stop"  # it had its time
    await client.call("lanes.resume")
    waiting = {"runId": "run-b", "timeoutMs": 30_000}
    assert (await client.call("agent.wait", waiting))["status"] == "ok"
    await client.close()
    # A second one so soon waits for its turn, and a stop does not.
    client = await gateway.client()
    asked = await client.call("gateway.restart.request", {"reason": "again"})
    assert asked["ok"] is True and 0 < int(str(asked["cooldownMsApplied"])) <= 30_000
    gateway.process.terminate()
    assert (await last_words(client))["reason"] == "gateway stopping"
    await client.close()
    assert await gateway.process.wait() == 128 + signal.SIGTERM


async def test_config_apply_restarts_and_the_next_engine_says_why(gateway: Gateway) -> None:
    client = await gateway.client()
    found = await client.call("config.get", {})
    assert TOKEN not in json.dumps(found)
    new = json.loads(str(found["raw"])) | {"cron": {"maxConcurrentRuns": 3}}
    params = {"raw": json.dumps(new), "note": "wider", "restartDelayMs": 0}
    answer: Any = await client.call("config.apply", {**params, "baseHash": found["hash"]})
    assert answer["restart"]["ok"] is True and TOKEN not in json.dumps(answer)
    note = json.loads(Path(answer["sentinel"]["path"]).read_text())
    assert note["payload"]["message"] == "wider"
    await last_words(client)
    await client.close()
    await gateway.next_ready()
    client = await gateway.client()  # the token came back from behind its marker
    lanes: Any = (await client.call("status", {}))["lanes"]
    assert {lane["lane"]: lane["width"] for lane in lanes}["cron"] == 3
    assert not Path(answer["sentinel"]["path"]).exists()
    await client.close()


async def test_a_new_port_that_is_taken_leaves_the_old_one_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        async with running(tmp_path, port=free_port()) as gateway:
            first = gateway.ready[0]["port"]
            client = await gateway.client()
            found = await client.call("config.get", {})
            params = {
                "raw": json.dumps({"gateway": {"port": taken.getsockname()[1]}}),
                "baseHash": found["hash"], "restartDelayMs": 0,
            }  # fmt: skip
            await client.call("config.patch", params)
            await last_words(client)
            await client.close()
            assert (await gateway.next_ready())["port"] == first
            client = await gateway.client()
            notices: Any = (await client.call("status", {}))["notices"]
            assert any(f"it is still {first}" in notice["title"] for notice in notices)
            await client.close()


async def test_a_signal_is_refused_where_the_configuration_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, "--port", "0", signals=False) as gateway:
        client = await gateway.client()
        gateway.process.send_signal(signal.SIGUSR1)
        async with asyncio.timeout(20):
            async for frame in client.events():
                payload: Any = frame.payload
                if frame.event == "notice" and payload["code"] == "restart-refused":
                    break
        assert (await client.call("health", {}))["ok"] is True
        await client.close()
