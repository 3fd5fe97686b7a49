"""Many turns: turns a second over many sessions, memory over thousands, one huge transcript.

    python -m bench.throughput             sessions × turns, both durabilities
    python -m bench.throughput memory      resident growth over 10,000 turns
    python -m bench.throughput huge        a turn in a 50 MB transcript against one in an empty one

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


async def memory() -> tuple[float, float]:
    """Resident MB after the first 1,000 turns and after all; each session has ten turns."""
    first = 0.0
    with tempfile.TemporaryDirectory() as state:
        async with Engine(Path(state), env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            for number in range(MANY):
                await turn(client, f"s{number // 10}", f"t{number}")
                if number == 999:
                    gc.collect()
                    first = resident_mb(os.getpid())
            gc.collect()
            last = resident_mb(os.getpid())
            await client.close()
    return first, last


async def huge() -> tuple[float, float]:
    """CPU ms of the second turn in an empty and in a huge session (the first one opens it)."""
    with tempfile.TemporaryDirectory() as state:
        root = Path(state)
        async with Engine(root, env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            await turn(client, "huge", "seed")
            await client.close()
        folder = root / "agents" / "main" / "sessions"
        index = json.loads((folder / "sessions.json").read_text())
        path = folder / f"{index['agent:main:huge']['sessionId']}.jsonl"
        grow(path, HUGE_MB * 1_000_000)
        found = []
        async with Engine(root, env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            for session in ("empty", "huge"):
                values = []
                for count in range(6):
                    before = time.process_time()
                    await turn(client, session, f"{session}-{count}")
                    values.append((time.process_time() - before) * 1000)
                found.append(median(values[1:]))
            await client.close()
    return found[0], found[1]


def grow(path: Path, size: int) -> None:
    """Append a compaction behind old messages, so that the file is huge and the context small."""
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
        summary = {
            "type": "compaction", "id": "ffffffff", "parentId": parent, "timestamp": stamp,
            "summary": "Old words were said.", "firstKeptEntryId": parent, "tokensBefore": 1,
        }  # fmt: skip
        file.write(json.dumps(summary) + "\n")


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "rate"
    if what == "rate":
        for durability in ("process", "power"):
            print(f"{asyncio.run(rate(durability)):7.1f} turns/s, {durability}  [{load()}]")
    elif what == "memory":
        first, last = asyncio.run(memory())
        print(f"{first:.1f} MB after 1,000 turns, {last:.1f} MB after {MANY:,}  [{load()}]")
    else:
        small, large = asyncio.run(huge())
        print(f"{small:.2f} ms CPU in an empty session, {large:.2f} ms in {HUGE_MB} MB  [{load()}]")


if __name__ == "__main__":
    main()
