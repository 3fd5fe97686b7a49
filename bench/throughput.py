"""Many turns: turns a second over many sessions, memory over thousands, one huge transcript.

    python -m bench.throughput             sessions × turns, both durabilities
    python -m bench.throughput memory      resident growth over 10,000 turns, in 100 sessions and in
                                           1,000: the list of sessions stays in memory
    python -m bench.throughput huge        a turn in a 50 MB transcript against one in an empty one,
                                           and without a summary against a talk of one window

The model is the rehearsal, which answers at once, so every millisecond is ours.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import env
from bench.processes import load, median, resident_mb
from claw_engine.client.local import LocalClient
from claw_engine.engine import Engine

SESSIONS, TURNS = 20, 5
MANY = 10_000
SAY = "long: 1 1000000"
"""One token at once: an instant model."""
HUGE_MB = 50
WINDOW_MB = 1.5
"""A talk that fills the window of 200,000 tokens, and no more."""


async def turn(client: LocalClient, session: str, run_id: str) -> None:
    """One message and its answer."""
    await client.call(
        "chat.send", {"sessionKey": session, "message": SAY, "idempotencyKey": run_id}
    )
    await client.call("agent.wait", {"runId": run_id, "timeoutMs": 60000})


async def rate(durability: str) -> float:
    """Turns a second: all sessions at once, each one turn after the other."""
    with tempfile.TemporaryDirectory() as state:
        config = {"claw": {"durability": durability}}
        (Path(state) / "openclaw.json").write_text(json.dumps(config))
        async with Engine(Path(state), env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            await turn(client, "warm", "warm")

            async def session(number: int) -> None:
                for count in range(TURNS):
                    await turn(client, f"s{number}", f"{number}-{count}")

            start = time.perf_counter()
            await asyncio.gather(*(session(number) for number in range(SESSIONS)))
            elapsed = time.perf_counter() - start
            await client.close()
    return SESSIONS * TURNS / elapsed


async def memory(sessions: int) -> list[float]:
    """Resident MB after each 1,000 turns, the sessions in turn. The client reads what it is
    told, as every client does: what it leaves unread waits for it, up to 8 MB."""
    series: list[float] = []
    with tempfile.TemporaryDirectory() as state:
        async with Engine(Path(state), env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            reader = asyncio.create_task(_read(client))
            for number in range(1, MANY + 1):
                await turn(client, f"s{number % sessions}", f"t{number}")
                if number % 1000 == 0:
                    gc.collect()
                    series.append(resident_mb(os.getpid()))
            reader.cancel()
            await client.close()
    return series


async def _read(client: LocalClient) -> None:
    async for _ in client.events():
        pass


async def huge(names: tuple[str, str], sizes: tuple[float, float], *, summary: bool) -> list[float]:
    """Median CPU ms of a turn in two sessions of these sizes in MB, turns taken in pairs; the
    first pair, which opens the transcripts, does not count."""
    with tempfile.TemporaryDirectory() as state:
        root = Path(state)
        async with Engine(root, env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            for name in names:
                await turn(client, name, f"seed-{name}")
            await client.close()
        folder = root / "agents" / "main" / "sessions"
        index = json.loads((folder / "sessions.json").read_text())
        for name, size in zip(names, sizes, strict=True):
            if size:
                path = folder / f"{index[f'agent:main:{name}']['sessionId']}.jsonl"
                grow(path, int(size * 1_000_000), summary=summary)
        values: dict[str, list[float]] = {name: [] for name in names}
        async with Engine(root, env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            for count in range(12):
                for name in names:
                    before = time.process_time()
                    await turn(client, name, f"{name}-{count}")
                    values[name].append((time.process_time() - before) * 1000)
            await client.close()
    return [median(values[name][1:]) for name in names]


def grow(path: Path, size: int, *, summary: bool) -> None:
    """Append old messages, and behind them a compaction if the context is to be small."""
    lines = path.read_text().splitlines()
    parent = json.loads(lines[-1])["id"]
    stamp = json.loads(lines[-1])["timestamp"]
    with path.open("a") as file:
        written, number = path.stat().st_size, 0
        while written < size:
            number += 1
            entry = {
                "type": "message", "id": f"{number:08x}", "parentId": parent, "timestamp": stamp,
                "message": {
                    "role": "user", "timestamp": 1,
                    "content": [{"type": "text", "text": "old words " * 100}],
                },
            }  # fmt: skip
            parent = entry["id"]
            written += file.write(json.dumps(entry) + "\n")
        if summary:
            last = {
                "type": "compaction", "id": "ffffffff", "parentId": parent, "timestamp": stamp,
                "summary": "Old words were said.", "firstKeptEntryId": parent, "tokensBefore": 1,
            }  # fmt: skip
            file.write(json.dumps(last) + "\n")


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "rate"
    if what == "rate":
        for durability in ("process", "power"):
            print(f"{asyncio.run(rate(durability)):7.1f} turns/s, {durability}  [{load()}]")
    elif what == "memory":
        for sessions in (int(n) for n in sys.argv[2:] or ("100", "1000")):
            series = asyncio.run(memory(sessions))
            each = " ".join(f"{mb:.1f}" for mb in series)
            print(
                f"{sessions} sessions: {series[0]:.1f} MB after 1,000 turns, {series[-1]:.1f} MB "
                f"after {MANY:,}; after each 1,000: {each}  [{load()}]",
                flush=True,
            )
    else:
        small, large = asyncio.run(huge(("empty", "huge"), (0, HUGE_MB), summary=True))
        print(f"{small:.2f} ms CPU in an empty session, {large:.2f} ms in {HUGE_MB} MB  [{load()}]")
        sizes = (WINDOW_MB, HUGE_MB)
        small, large = asyncio.run(huge(("window", "huge"), sizes, summary=False))
        print(
            f"without a summary: {small:.2f} ms CPU in {WINDOW_MB} MB, {large:.2f} ms in "
            f"{HUGE_MB} MB  [{load()}]"
        )


if __name__ == "__main__":
    main()
