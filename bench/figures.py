"""The first figures of the README: start, latency, CPU a turn, memory.

    python -m bench.figures            all
    python -m bench.figures status     those whose name contains the word

Each figure is the median of several runs, with minimum and maximum, in CPU time where wall time
is noise, and states the load of the machine while it ran.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.processes import cpu_seconds, load, median, resident_mb

RUNS = 5
TURNS = 60
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity; `goal` is what the project promises, in the same unit."""

    name: str
    unit: str
    values: list[float]
    goal: float | None = None

    def line(self) -> str:
        goal = f"  goal {self.goal:g}" if self.goal is not None else ""
        return (
            f"{self.name:48} {median(self.values):8.2f} {self.unit:5} "
            f"(min {min(self.values):.2f}, max {max(self.values):.2f}, n={len(self.values)}){goal}"
        )


def env() -> dict[str, str]:
    """An environment in which nothing names a model: the rehearsal model answers."""
    keep = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")
    return {name: os.environ[name] for name in keep if name in os.environ} | {
        "LANG": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor",
        "OPENCLAW_GATEWAY_PORT": "0",
    }  # fmt: skip


def headless_start() -> list[Figure]:
    """`claw gateway run` from exec to its ready line."""
    cpu, memory = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as state:
            argv = [str(BIN / "claw"), "gateway", "run", "--state-dir", state, "--json"]
            process = subprocess.Popen(argv, stdout=subprocess.PIPE, env=env())
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            assert ready, "no ready line"
            cpu.append(cpu_seconds(process.pid))
            memory.append(resident_mb(process.pid))
            process.terminate()
            process.wait()
    return [
        Figure("headless start to ready, CPU", "s", cpu, 0.6),
        Figure("headless resident when ready", "MB", memory, 60),
    ]


def console_start() -> list[Figure]:
    """`claw-tui` with its engine from exec to the first full screen, in a real pty."""
    from tests.support.pty_driver import Terminal

    cpu, memory = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as state:
            argv = [str(BIN / "claw-tui"), "--state-dir", state]
            with Terminal(argv, env=env()) as terminal:
                terminal.wait_for("TYPE")
                cpu.append(cpu_seconds(terminal.process.pid))
                memory.append(resident_mb(terminal.process.pid))
    return [
        Figure("console first paint with engine, CPU", "s", cpu, 0.9),
        Figure("console resident at first paint", "MB", memory, 95),
    ]


def status_verb() -> list[Figure]:
    """`claw status` against a running engine, whole process."""
    values = []
    with tempfile.TemporaryDirectory() as state:
        argv = [str(BIN / "claw"), "gateway", "run", "--state-dir", state, "--json"]
        engine = subprocess.Popen(argv, stdout=subprocess.PIPE, env=env())
        assert engine.stdout is not None
        engine.stdout.readline()
        for _ in range(RUNS * 3):
            done = subprocess.Popen(
                [str(BIN / "claw"), "status", "--state-dir", state],
                stdout=subprocess.DEVNULL, env=env(),
            )  # fmt: skip
            _, code, usage = os.wait4(done.pid, 0)
            assert code == 0, "claw status failed"
            values.append(usage.ru_utime + usage.ru_stime)
        engine.terminate()
        engine.wait()
    return [Figure("claw status, CPU", "s", values, 0.12)]


def turns() -> list[Figure]:
    """Latency from acknowledged to model request, and CPU of a plain turn of 50 tokens."""
    return asyncio.run(_turns())


async def _turns() -> list[Figure]:
    from bench.model_server import server_process
    from claw_engine.engine import Engine

    waits: list[float] = []
    with tempfile.TemporaryDirectory() as state, server_process(tokens=50) as server:
        config = Path(state) / "openclaw.json"
        config.write_text(json.dumps(server.config()))
        async with Engine(Path(state), env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            for number in range(TURNS + 1):
                run_id = f"bench-{number}"
                await client.call(
                    "chat.send",
                    {"sessionKey": "main", "message": "hello", "idempotencyKey": run_id},
                )
                acknowledged = time.monotonic_ns()
                await client.call("agent.wait", {"runId": run_id, "timeoutMs": 30000})
                waits.append((server.received()[-1] - acknowledged) / 1e6)
            await client.close()
    cpu = await _rehearsal_turns()
    return [
        Figure("acknowledged to model request, first turn", "ms", await _first_turns(0)),
        Figure("the same, a second after the start", "ms", await _first_turns(1)),
        Figure("acknowledged to model request", "ms", waits[1:], 8),
        Figure("one turn of 50 tokens without tools, CPU", "ms", cpu, 7),
    ]


async def _first_turns(after_s: float) -> list[float]:
    """The first turn of fresh engines, sent `after_s` seconds after they were ready."""
    from bench.model_server import server_process

    waits = []
    with server_process(tokens=50) as server:
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as state:
                (Path(state) / "openclaw.json").write_text(json.dumps(server.config()))
                # Each in a process of its own: what one has imported the next would find.
                done = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", _FIRST_TURN, state, str(after_s),
                    stdout=subprocess.PIPE, env=env(),
                )  # fmt: skip
                out, _ = await done.communicate()
                waits.append((server.received()[-1] - int(out)) / 1e6)
    return waits


_FIRST_TURN = """
import asyncio, os, sys, time
from pathlib import Path
from claw_engine.engine import Engine

async def main():
    async with Engine(Path(sys.argv[1]), env=dict(os.environ)) as engine:
        client = engine.local_client()
        await client.connect()
        await asyncio.sleep(float(sys.argv[2]))
        message = {"sessionKey": "main", "message": "hello", "idempotencyKey": "first"}
        await client.call("chat.send", message)
        acknowledged = time.monotonic_ns()
        await client.call("agent.wait", {"runId": "first", "timeoutMs": 30000})
        await client.close()
        print(acknowledged)

asyncio.run(main())
"""


async def _rehearsal_turns() -> list[float]:
    from claw_engine.engine import Engine

    cpu: list[float] = []
    with tempfile.TemporaryDirectory() as state:
        async with Engine(Path(state), env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            for number in range(TURNS):
                before = time.process_time()
                await client.call(
                    "chat.send",
                    {
                        "sessionKey": "main",
                        "message": "long: 50 100000",
                        "idempotencyKey": f"turn-{number}",
                    },
                )
                await client.call("agent.wait", {"runId": f"turn-{number}", "timeoutMs": 30000})
                cpu.append((time.process_time() - before) * 1000)
            await client.close()
    return cpu[5:]


def stall() -> list[Figure]:
    """Engine loop lag while the console's terminal is not read for 10 s and a run streams."""
    from tests.support.pty_driver import Terminal

    lags = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as state:
            argv = [str(BIN / "claw-tui"), "--state-dir", state]
            with Terminal(argv, env=env(), size=(120, 40)) as terminal:
                terminal.wait_for("TYPE")
                terminal.send("long: 3000 150\r")
                terminal.wait_for("streaming")
                terminal.stall()
                began = time.time()
                time.sleep(10)
                ended = time.time()
                terminal.unstall()
                terminal.wait_for("●")
            # The watchdog logs only what was above its threshold of 150 ms.
            worst = 0.0
            for path in (Path(state) / "logs").glob("*.log"):
                for line in path.read_text().splitlines():
                    entry = json.loads(line)
                    at = datetime.fromisoformat(entry["ts"]).timestamp()
                    found = re.search(r"lagMs=(\d+)", entry["msg"])
                    if found and began <= at <= ended:
                        worst = max(worst, float(found.group(1)))
            lags.append(worst)
    return [Figure("loop lag over 150 ms in a 10 s stall (0 = none)", "ms", lags, 0)]


def show(found: Iterable[Figure]) -> int:
    """Print the load and one line a figure; 0, as the exit code of a program."""
    print(load())
    for figure in found:
        print(figure.line())
    return 0


ALL: dict[str, Callable[[], list[Figure]]] = {
    "headless": headless_start,
    "console": console_start,
    "status": status_verb,
    "turns": turns,
    "stall": stall,
}


def main() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, measure in ALL.items():
        if word in name:
            for figure in measure():
                print(figure.line(), f" [{load()}]", flush=True)


if __name__ == "__main__":
    main()
