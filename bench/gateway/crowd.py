"""Clients in a process of their own, told over its input what to do.

    python -m bench.gateway.crowd PORT

One JSON object a line in, `{"do": …}` with the parameters of the function of that name; one a line
out, its result. Everything the clients cost is this process's, not the engine's.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from bench.gateway.client import Client


class Crowd:
    """The functions that `do` may name."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._clients: list[Client] = []
        self._lazy: list[Client] = []

    async def open(
        self, count: int, *, session: str = "", caps: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Connect; with `session` subscribed to its messages."""
        for _ in range(count):
            client = await Client.open(self._port, caps=tuple(caps))
            if session:
                await client.call("sessions.messages.subscribe", {"key": session})
            self._clients.append(client)
        return {"opened": count}

    async def lazy(self, receive_buffer: int) -> dict[str, Any]:
        """One more that reads nothing from now on."""
        client = await Client.open(self._port, receive_buffer=receive_buffer)
        client.transport.pause_reading()
        self._lazy.append(client)
        return {}

    async def turns(self, each: int, say: str) -> dict[str, Any]:
        """Every client talks in a session of its own, one turn after the other."""
        spent = time.process_time()
        took: list[float] = []

        async def talk(number: int, client: Client) -> None:
            for turn in range(each):
                began = time.perf_counter()
                await client.turn(f"t{number}", say.format(turn=turn))
                took.append((time.perf_counter() - began) * 1000)

        began = time.perf_counter()
        await asyncio.gather(*(talk(n, client) for n, client in enumerate(self._clients)))
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "turn_ms": took, "cpu": time.process_time() - spent}

    async def one(self, session: str, say: str) -> dict[str, Any]:
        """One turn of the first client."""
        began = time.perf_counter()
        await self._clients[0].turn(session, say)
        return {"seconds": time.perf_counter() - began}

    async def told(self) -> dict[str, Any]:
        """What came in so far."""
        return {
            "gaps": sum(c.gaps for c in self._clients),
            "events": [c.events for c in self._clients],
            "bytes": [c.bytes for c in self._clients],
            "closed": [c.close_code for c in self._clients if c.gone.is_set()],
            "cpu": time.process_time(),
        }

    async def close(self) -> dict[str, Any]:
        await asyncio.gather(*(client.close() for client in self._clients))
        self._clients.clear()
        return {}


async def main(port: int) -> None:
    crowd = Crowd(port)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        order = json.loads(line)
        work: Callable[..., Awaitable[dict[str, Any]]] = getattr(crowd, order.pop("do"))
        print(json.dumps(await work(**order)), flush=True)


class Remote:
    """A crowd elsewhere: `await crowd.do("open", count=20)`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def do(self, what: str, **params: object) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **params}).encode() + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the crowd died at {what}")
        result: dict[str, Any] = json.loads(line)
        return result


@asynccontextmanager
async def crowd(port: int) -> AsyncIterator[Remote]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.gateway.crowd", str(port),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24,
    )  # fmt: skip
    try:
        yield Remote(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
