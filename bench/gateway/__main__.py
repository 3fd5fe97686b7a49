"""What a client of the network port waits for: handshake, calls, turns, and many clients at once.

    python -m bench.gateway            # handshake, calls, turns
    python -m bench.gateway clients    # 200 clients, 50 of them on one streaming session

Prints medians in ms. The engine runs in a process of its own, as `claw gateway run`, and so do the
clients (crowd.py).
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

from bench.figures import env
from bench.gateway.client import TOKEN, Client
from bench.gateway.crowd import Remote, crowd
from bench.processes import cpu_seconds, load, resident_mb

CALLS = 200
HANDSHAKES = 100
SESSIONS = 1000
TALKERS, TURNS, ROUNDS = 20, 5, 4
PLAIN, FOLLOWERS = 150, 50
TOKENS, RATE = 10_000, 1000
STALL_MS = 50.0


class Engine:
    """A running gateway."""

    def __init__(self, port: int, pid: int, logs: Path) -> None:
        self.port = port
        self.pid = pid
        self._logs = logs
        self.turns: list[tuple[float, float, float]] = []
        """What engine.py noted; there when the process has ended."""

    async def logged(self, words: str, within: float) -> bool:
        """Whether a line with these words is in the log, or comes within some seconds."""
        for _ in range(int(within)):
            if any(words in path.read_text() for path in self._logs.iterdir() if path.is_file()):
                return True
            await asyncio.sleep(1)
        return False

    def stalls(self, began: float, ended: float) -> list[tuple[float, float]]:
        """Wall and CPU ms of the loop's turns of 10 ms and more in that time, longest first."""
        found = [(wall, cpu) for at, wall, cpu in self.turns if began <= at <= ended]
        return sorted(found, reverse=True)


@asynccontextmanager
async def gateway(*, watched: bool) -> AsyncIterator[Engine]:
    """An engine with 1,000 sessions; `watched` by engine.py, which costs some microseconds for
    every turn of its loop."""
    with tempfile.TemporaryDirectory() as folder:
        state, turns = Path(folder) / "s", Path(folder) / "turns.json"
        _many_sessions(state)
        (state / "openclaw.json").write_text(json.dumps({"gateway": {"auth": {"token": TOKEN}}}))
        program = ["bench.gateway.engine", str(turns)] if watched else ["claw_engine.cli"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *program, "gateway", "run", "--json",
            "--port", "0", "--state-dir", str(state),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env=env(),
        )  # fmt: skip
        assert process.stdout is not None
        ready = json.loads(await process.stdout.readline())
        engine = Engine(ready["port"], ready["pid"], state / "logs")
        try:
            yield engine
        finally:
            process.terminate()
            await process.wait()
            if watched:
                engine.turns = json.loads(turns.read_text())


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
    print(
        f"{name:<24} {statistics.median(values):7.2f} ms  min {min(values):6.2f}  "
        f"p95 {worst:7.2f}  goal {goal:g}  [{load()}]"
    )


async def handshakes(engine: Engine) -> None:
    times: list[float] = []
    spent = cpu_seconds(engine.pid)
    for _ in range(HANDSHAKES):
        began = time.perf_counter()
        client = await Client.open(engine.port)
        times.append((time.perf_counter() - began) * 1000)
        await client.close()
    said("handshake", times, 10)
    spent = (cpu_seconds(engine.pid) - spent) * 1000 / HANDSHAKES
    print(f"  of it CPU of the engine, with the goodbye: {spent:.1f} ms")


async def calls(engine: Engine) -> None:
    client = await Client.open(engine.port)
    for n in range(20):
        await client.turn("main", f"hello {n}")
    for method, params, goal in (
        ("health", {}, 3), ("sessions.list", {}, 8), ("chat.history", {"sessionKey": "main"}, 8),
    ):  # fmt: skip
        times: list[float] = []
        for _ in range(CALLS):
            began = time.perf_counter()
            await client.call(method, params)
            times.append((time.perf_counter() - began) * 1000)
        said(method, times, goal)
    await client.close()


async def turns(engine: Engine, say: str) -> None:
    """All clients are told of everybody's turns, as a client of protocol 4 is that does not ask
    for less."""
    async with crowd(engine.port) as talkers:
        await talkers.do("open", count=TALKERS)
        await talkers.do("turns", each=1, say=say)
        rates = []
        for _ in range(ROUNDS):
            spent = cpu_seconds(engine.pid)
            done = await talkers.do("turns", each=TURNS, say=say)
            count = TALKERS * TURNS
            spent = (cpu_seconds(engine.pid) - spent) * 1000 / count
            rates.append(count / done["seconds"])
            print(
                f"{TALKERS} x {TURNS} turns ({say}): {rates[-1]:6.1f} turns/s; a turn "
                f"{statistics.median(done['turn_ms']):.0f} ms; CPU a turn: engine {spent:.1f} ms, "
                f"clients {done['cpu'] * 1000 / count:.1f} ms"
            )
        print(f"  median {statistics.median(rates):.1f} turns/s  goal 80  [{load()}]")
        await talkers.do("close")


async def one_by_one() -> None:
    async with gateway(watched=False) as engine:
        warm = await Client.open(engine.port)
        await warm.turn("main", "hello")
        await handshakes(engine)
        await calls(engine)
        for say in ("turn {turn}", "long: 1 1000000"):
            await turns(engine, say)
        await warm.close()


async def many() -> None:
    """One client that does not read among 200 that do, while one session streams."""
    async with gateway(watched=True) as engine:
        async with crowd(engine.port) as plain, crowd(engine.port) as followers:
            await _settled(engine)
            before = resident_mb(engine.pid)
            await plain.do("open", count=PLAIN)
            await followers.do("open", count=FOLLOWERS, session="main")
            await plain.do("lazy", receive_buffer=4096)
            with_all = resident_mb(engine.pid)
            spent = cpu_seconds(engine.pid)
            began = time.monotonic()
            done = await _stream(followers)
            ended = time.monotonic()
            spent = cpu_seconds(engine.pid) - spent
            for name, told in (("plain", await plain.do("told")),
                               ("following", await followers.do("told"))):  # fmt: skip
                kib = statistics.median(told["bytes"]) / 1024
                events = statistics.median(told["events"])
                print(
                    f"{len(told['events'])} {name}: {events:.0f} events, "
                    f"{kib:.0f} KiB each; gaps {told['gaps']}; dropped {len(told['closed'])}; "
                    f"CPU of their process {told['cpu']:.1f} s"
                )
            print(f"{TOKENS:,} tokens in {done['seconds']:.1f} s; CPU of the engine {spent:.1f} s")
            dropped = await engine.logged("code=1008 reason=slow consumer", within=60)
            took = time.monotonic() - ended
            end = f"dropped within {took:.0f} s" if dropped else "kept"
            print(f"the one that does not read: {end}")
            await plain.do("close")
            await followers.do("close")
        await _settled(engine)
        after = resident_mb(engine.pid)
        async with crowd(engine.port) as others:  # what stays is paid once
            await others.do("open", count=PLAIN + FOLLOWERS)
            await others.do("one", session="main", say=f"long: 2000 {RATE}")
            await others.do("close")
        await _settled(engine)
        again = resident_mb(engine.pid)
        print(
            f"resident {before:.0f} MB, {with_all:.0f} with 200 clients, {after:.0f} without, "
            f"{again:.0f} after 200 others"
        )
    stalls = engine.stalls(began, ended)
    walls = [wall for wall, _ in stalls]
    print(
        f"turns of the loop: {sum(wall > STALL_MS for wall in walls)} over {STALL_MS:g} ms, "
        f"{len(walls)} over 10 ms, longest (wall, its CPU) "
        f"{[(round(wall), round(cpu)) for wall, cpu in stalls[:5]]} ms  [{load()}]"
    )


async def _stream(followers: Remote) -> dict[str, Any]:
    return await followers.do("one", session="main", say=f"long: {TOKENS} {RATE}")


async def _settled(engine: Engine) -> None:
    """A turn's worth of memory is there, and what was freed is given back."""
    client = await Client.open(engine.port)
    for _ in range(3):
        await client.turn("main", "hello")
    await client.close()
    await asyncio.sleep(2)


if __name__ == "__main__":
    asyncio.run(many() if sys.argv[1:] == ["clients"] else one_by_one())
