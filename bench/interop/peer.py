"""The real OpenClaw: its process, and a small protocol-3 client for its WebSocket.

It runs with a HOME, state directory, port and token of the harness's own, on loopback only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect

TOKEN = "interop-token-of-no-worth"
START_S = 400.0
"""Seconds until the gateway answers: its very first start compiles for minutes."""
TURN_S = 120.0
STOP_S = 60.0
SCOPES = ["operator.read", "operator.write", "operator.admin", "operator.approvals"]


class PeerError(Exception):
    """The real program refused a call, or did not do what its protocol promises."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Installed:
    """An installed `openclaw` package and the node that runs it."""

    def __init__(self, package: Path, node: Path) -> None:
        self.package = package
        self.node = node
        self.version = str(json.loads((package / "package.json").read_text())["version"])

    @contextlib.asynccontextmanager
    async def gateway(self, state: Path, port: int) -> AsyncIterator[RealGateway]:
        """The gateway on `state`, up and connected; its HOME is the folder around it.

        It is stopped by SIGTERM at the end.
        """
        home = state.parent
        tmp = home / "tmp"
        tmp.mkdir(exist_ok=True)
        env = {
            "PATH": f"{self.node.parent}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(home),
            "TMPDIR": str(tmp),
            "OPENCLAW_STATE_DIR": str(state),
            "OPENCLAW_SKIP_CHANNELS": "1",
            "OPENCLAW_SKIP_BROWSER_CONTROL_SERVER": "1",
            "OPENCLAW_DISABLE_BONJOUR": "1",
            "NODE_COMPILE_CACHE": str(home.parent / "compile-cache"),
        }
        with (home / "gateway.out").open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                "nice", "-n", "10", str(self.node), str(self.package / "openclaw.mjs"),
                "gateway", "run", "--port", str(port),
                cwd=home, env=env, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        try:
            async with await _connected(process, port) as gateway:
                yield gateway
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(STOP_S):
                    await process.wait()
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()


async def _connected(process: asyncio.subprocess.Process, port: int) -> RealGateway:
    async with asyncio.timeout(START_S):
        while True:
            if process.returncode is not None:
                raise PeerError(f"the gateway ended with code {process.returncode}")
            try:
                return await RealGateway.open(f"ws://127.0.0.1:{port}")
            except OSError:
                await asyncio.sleep(0.5)


class RealGateway:
    """One operator connection, without a device: a loopback client with the token may do that."""

    def __init__(self, socket: ClientConnection, hello: dict[str, Any]) -> None:
        self._socket = socket
        self.hello = hello
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._events: list[tuple[str, dict[str, Any]]] = []
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, url: str) -> RealGateway:
        """Connect and shake hands. Raises OSError while nobody listens, PeerError."""
        link = await connect(url, max_size=32 << 20, open_timeout=20)
        challenge = json.loads(await link.recv())
        if challenge.get("event") != "connect.challenge":
            raise PeerError(f"not a gateway: {challenge}")
        params = {
            "minProtocol": 3,
            "maxProtocol": 3,
            "client": {"id": "cli", "version": "interop", "platform": "linux", "mode": "cli"},
            "role": "operator",
            "scopes": SCOPES,
            "caps": ["tool-events"],
            "auth": {"token": TOKEN},
        }
        await link.send(_request("hello", "connect", params))
        while True:
            frame = json.loads(await link.recv())
            if frame.get("type") == "res" and frame.get("id") == "hello":
                if not frame["ok"]:
                    raise PeerError(str(frame.get("error")))
                return cls(link, frame["payload"])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._socket.close()
        await self._reading

    async def call(self, method: str, params: dict[str, Any], seconds: float = TURN_S) -> Any:
        """The payload of the answer. Raises PeerError, TimeoutError."""
        call_id = str(uuid.uuid4())
        answer = self._waiting[call_id] = asyncio.get_running_loop().create_future()
        await self._socket.send(_request(call_id, method, params))
        async with asyncio.timeout(seconds):
            frame = await answer
        if not frame["ok"]:
            raise PeerError(f"{method}: {frame.get('error')}")
        return frame.get("payload")

    async def say(self, session: str, text: str) -> str:
        """Send a message; its run id."""
        run_id = str(uuid.uuid4())
        params = {"sessionKey": session, "message": text, "idempotencyKey": run_id}
        await self.call("chat.send", params)
        return run_id

    async def turn(self, session: str, text: str) -> str:
        """Send a message and wait for its answer; the answer's text. Raises PeerError."""
        run_id = await self.say(session, text)
        payload = await self.event(
            "chat", lambda p: p.get("runId") == run_id and p.get("state") != "delta"
        )
        if payload["state"] != "final":
            raise PeerError(f"{text[:40]!r} ended as {payload['state']}: {payload}")
        blocks = payload.get("message", {}).get("content", [])
        return "".join(block.get("text", "") for block in blocks)

    async def event(
        self, name: str, test: Callable[[dict[str, Any]], bool], seconds: float = TURN_S
    ) -> dict[str, Any]:
        """The payload of the first event called `name` that passes, also of those gone by."""
        looked = 0
        async with asyncio.timeout(seconds):
            while True:
                for event, payload in self._events[looked:]:
                    if event == name and test(payload):
                        return payload
                looked = len(self._events)
                self._news.clear()
                await self._news.wait()

    async def history(self, session: str) -> list[dict[str, Any]]:
        answer = await self.call("chat.history", {"sessionKey": session, "limit": 1000})
        return list(answer["messages"])

    async def _read(self) -> None:
        async for data in self._socket:
            frame = json.loads(data)
            if frame.get("type") == "res":
                waiting = self._waiting.pop(frame["id"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(frame)
            elif frame.get("type") == "event":
                self._events.append((frame["event"], frame.get("payload") or {}))
                self._news.set()


def _request(call_id: str, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"type": "req", "id": call_id, "method": method, "params": params})
