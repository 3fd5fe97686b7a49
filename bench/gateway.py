"""What a client of the network port waits for: handshake, calls, turns, and many clients at once.

    python -m bench.gateway            # calls, handshake, turns
    python -m bench.gateway clients    # 200 clients, 50 of them on one streaming session

Prints medians in ms. The engine runs in a process of its own, as `claw gateway run`.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from bench.figures import env

TOKEN = "bench-token"
CALLS = 200
SESSIONS = 1000


class Client:
    def __init__(self, ws: ClientConnection) -> None:
        self.ws = ws
        self.events: list[dict[str, Any]] = []
        self.waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.finals: dict[str, asyncio.Event] = {}
        self.last_seq = 0
        self.gaps = 0
        self.bytes = 0
        self.task = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, port: int, *, caps: tuple[str, ...] = ()) -> Client:
        ws = await connect(f"ws://127.0.0.1:{port}", max_size=None, compression=None, proxy=None)
        await ws.recv()
        client = {"id": "cli", "version": "1", "platform": "linux", "mode": "cli"}
        await ws.send(json.dumps({"type": "req", "id": "c", "method": "connect", "params": {
            "minProtocol": 4, "maxProtocol": 4, "client": client, "caps": list(caps),
            "scopes": ["operator.admin"], "auth": {"token": TOKEN},
        }}))  # fmt: skip
        assert json.loads(await ws.recv())["ok"]
        return cls(ws)

    async def _read(self) -> None:
        async for text in self.ws:
            self.bytes += len(text)
            frame = json.loads(text)
            if frame["type"] == "res":
                self.waiting.pop(frame["id"]).set_result(frame)
                continue
            if "seq" in frame:
                self.gaps += self.last_seq not in (0, frame["seq"] - 1)
                self.last_seq = frame["seq"]
            payload = frame["payload"]
            if frame["event"] == "chat" and payload["state"] in ("final", "error", "aborted"):
                self.finals.setdefault(payload["runId"], asyncio.Event()).set()

    async def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        id_ = uuid.uuid4().hex
        future = self.waiting[id_] = asyncio.get_running_loop().create_future()
        await self.ws.send(json.dumps({"type": "req", "id": id_, "method": method,
                                       "params": params or {}}))  # fmt: skip
        answer = await future
        assert answer["ok"], answer
        return answer

    async def turn(self, session: str, message: str) -> None:
        run = uuid.uuid4().hex
        done = self.finals.setdefault(run, asyncio.Event())
        await self.call("chat.send", {"sessionKey": session, "message": message,
                                      "idempotencyKey": run})  # fmt: skip
        await done.wait()
        del self.finals[run]

    async def close(self) -> None:
        self.task.cancel()
        await self.ws.close()


@asynccontextmanager
async def gateway(config: dict[str, Any]) -> AsyncIterator[tuple[int, int, Path]]:
    """Port, pid and state directory of a running gateway."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "s"
        _many_sessions(state)
        auth = {"auth": {"token": TOKEN}}
        (state / "openclaw.json").write_text(json.dumps({"gateway": auth, **config}))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "claw_engine.cli", "gateway", "run", "--json", "--port", "0",
            "--state-dir", str(state), stdout=asyncio.subprocess.PIPE, env=env(),
        )  # fmt: skip
        assert process.stdout is not None
        ready = json.loads(await process.stdout.readline())
        try:
            yield ready["port"], ready["pid"], state
        finally:
            process.terminate()
            await process.wait()


def _many_sessions(state: Path) -> None:
    folder = state / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    now = int(time.time() * 1000)
    index = {
        f"agent:main:s{n}": {"sessionId": str(uuid.uuid4()), "updatedAt": now - n * 1000}
        for n in range(SESSIONS)
    }
    (folder / "sessions.json").write_text(json.dumps(index))


def said(name: str, values: list[float], goal: float) -> None:
    worst = sorted(values)[int(len(values) * 0.95)]
    print(f"{name:<28} {statistics.median(values):7.2f} ms  p95 {worst:7.2f}  goal {goal:g}")


async def calls() -> None:
    async with gateway({}) as (port, _, _):
        first = await Client.open(port)
        for n in range(20):
            await first.turn("main", f"hello {n}")
        times: list[float] = []
        for _ in range(50):
            began = time.perf_counter()
            client = await Client.open(port)
            times.append((time.perf_counter() - began) * 1000)
            await client.close()
        said("handshake", times, 10)
        for method, params, goal in (
            ("health", {}, 3), ("sessions.list", {}, 8),
            ("chat.history", {"sessionKey": "main"}, 8),
        ):  # fmt: skip
            times = []
            for _ in range(CALLS):
                began = time.perf_counter()
                await first.call(method, params)
                times.append((time.perf_counter() - began) * 1000)
            said(method, times, goal)
        clients = [await Client.open(port) for _ in range(20)]

        async def five(number: int) -> None:
            for turn in range(5):
                await clients[number].turn(f"t{number}", f"turn {turn}")

        began = time.perf_counter()
        await asyncio.gather(*map(five, range(20)))
        rate = 100 / (time.perf_counter() - began)
        print(f"20 x 5 turns                 {rate:7.1f} turns/s  goal 80")
        for client in [*clients, first]:
            await client.close()


async def many() -> None:
    async with gateway({}) as (port, pid, state):
        clients = [await Client.open(port) for _ in range(200)]
        before = _rss(pid)
        lazy = clients[0]
        lazy.task.cancel()
        lazy.ws.transport.pause_reading()
        began = time.perf_counter()
        await clients[1].turn("main", "long: 10000 1000")
        took = time.perf_counter() - began
        print(
            f"10,000 tokens to 200 clients in {took:.1f} s; gaps {sum(c.gaps for c in clients[1:])}"
        )
        print(
            f"sent to one client {clients[2].bytes >> 10} KiB; cpu of the engine {_cpu(pid):.1f} s"
        )
        for client in clients:
            await client.close()
        await asyncio.sleep(3)
        print(f"resident {before} MB with 200 clients, {_rss(pid)} MB after")
        log = "".join(p.read_text() for p in (state / "logs").iterdir() if p.is_file())
        stalls = [line for line in log.splitlines() if "stall" in line.lower()]
        print(f"stalls told by the watchdog: {len(stalls)}")
        for line in stalls[:5]:
            print("  ", line[:300])


def _rss(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 >> 20


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


if __name__ == "__main__":
    asyncio.run(many() if sys.argv[1:] == ["clients"] else calls())
