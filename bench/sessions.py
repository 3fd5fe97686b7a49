"""Figures of the session store: load and update with 10,000 sessions, turns in a huge transcript.

    python -m bench.sessions

CPU time of this process; a turn of the loop is what its thread computed between two tasks. The
store looks as OpenClaw leaves it, prompt reports included.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from bench.figures import Figure
from bench.processes import load, resident_mb
from claw_engine.events import Event
from claw_engine.messages import AssistantMessage, TextBlock, UserMessage
from claw_engine.paths import StateDir
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.index import SessionIndex
from claw_engine.sessions.store import Sessions
from claw_engine.world import RealDisk, World, real_world

SESSIONS = 10_000
RUNS = 5
TURNS = 40
CAPTURED = Path(__file__).parents[1] / "tests/golden/state-full/sessions.json"


def nobody(event: Event) -> None:
    """Nobody follows."""


def fill(state: StateDir, count: int = SESSIONS) -> float:
    """A store of `count` sessions like a captured one; its size in MB."""
    entry = json.loads(CAPTURED.read_bytes())["agent:main:main"]
    store = {
        f"agent:main:telegram:direct:{n}": {**entry, "sessionId": f"id-{n}", "updatedAt": n + 1}
        for n in range(count)
    }
    path = state.sessions_json("main")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(store, indent=2))
    return path.stat().st_size / 1e6


async def cpu_and_slices(work: Callable[[], Awaitable[object]]) -> tuple[float, list[float]]:
    """CPU ms of `work`, and how long (ms) each turn of the loop took meanwhile."""
    gaps: list[float] = []
    done = asyncio.Event()

    async def watch() -> None:
        last = time.thread_time()
        while not done.is_set():
            await asyncio.sleep(0)
            now = time.thread_time()
            gaps.append((now - last) * 1000)
            last = now

    # The watcher itself burns CPU: it runs in a round of its own, the CPU is measured without it.
    before = time.process_time()
    await work()
    cpu = (time.process_time() - before) * 1000
    watching = asyncio.create_task(watch())
    await work()
    done.set()
    await watching
    return cpu, sorted(gaps)


async def store_figures(root: Path, world: World) -> list[Figure]:
    state = StateDir(root)
    size = fill(state)

    async def read() -> SessionIndex:
        index = SessionIndex(world, state, nobody)
        await index.load("main")
        return index

    loads, p999, worst = [], [], []
    for _ in range(RUNS):
        cpu, gaps = await cpu_and_slices(read)
        loads.append(cpu)
        p999.append(gaps[int(len(gaps) * 0.999)])
        worst.append(gaps[-1])
    index = await read()
    before = time.process_time()
    index.list()
    listing = (time.process_time() - before) * 1000
    updates, durable = [], []
    for n in range(200):
        key = f"agent:main:telegram:direct:{n * 37 % SESSIONS}"
        before = time.process_time()
        await index.update(key, partial(SessionEntry.replace, totalTokens=n))
        updates.append((time.process_time() - before) * 1000)
    for n in range(20):
        key = f"agent:main:telegram:direct:{n}"
        await index.update(key, partial(SessionEntry.replace, outputTokens=n))
        before = time.perf_counter()
        await index.commit("main")
        durable.append((time.perf_counter() - before) * 1000)
    begun = time.process_time()
    await index.flush()
    rewrite = (time.process_time() - begun) * 1000
    await index.close()
    return [
        Figure(f"load of {SESSIONS} sessions ({size:.0f} MB), CPU", "ms", loads, 300),
        Figure("  longest turn of the loop meanwhile", "ms", worst, 5),
        Figure("  99.9 % of the turns are shorter than", "ms", p999, 5),
        Figure("newest first of all, CPU", "ms", [listing]),
        Figure("one update, CPU", "ms", updates, 2),
        Figure("one update until it is durable, wall", "ms", durable),
        Figure("rewrite of the whole file, CPU", "ms", [rewrite]),
    ]


def message_line(number: int, text: str) -> str:
    who = "user" if number % 2 else "assistant"
    content = [{"type": "text", "text": text}]
    return json.dumps(
        {
            "type": "message",
            "id": f"{number:08x}",
            "parentId": f"{number - 1:08x}" if number else None,
            "timestamp": "2026-11-30T08:40:00.000Z",
            "message": {"role": who, "content": content, "timestamp": number},
        }
    )


def talk(path: Path, size: int) -> None:
    """A transcript of `size` bytes whose end was compacted (0: only the compacted end)."""
    head = {"type": "session", "version": 3, "id": path.stem, "timestamp": "", "cwd": "/"}
    rows = [json.dumps(head)]
    number = 0
    filler = "word " * 400
    for number in range(max(4, size // 2200)):
        rows.append(message_line(number, filler))
    summary = {
        "type": "compaction", "id": "ffffffff", "parentId": f"{number:08x}",
        "timestamp": "2026-11-30T08:40:00.000Z", "summary": filler,
        "firstKeptEntryId": f"{number - 2:08x}", "tokensBefore": 1,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*rows, json.dumps(summary)]) + "\n")


async def transcript_figures(root: Path, world: World) -> list[Figure]:
    """Opening and a turn (one exchange appended), in a transcript of 50 MB and a small one."""
    state = StateDir(root)
    folder = state.sessions_dir("main")
    folder.mkdir(parents=True)
    state.sessions_json("main").write_text("{}")
    figures = []
    for name, size in (("small", 0), ("50 MB", 50_000_000)):
        session = f"s{size}"
        talk(folder / f"{session}.jsonl", size)
        opens, turns = [], []
        for run in range(RUNS * 2):
            sessions = Sessions(world, state, nobody, durability="process")
            await sessions.open()
            await sessions.update(
                session, partial(SessionEntry.replace, sessionId=session, sessionFile=None)
            )
            before = time.process_time()
            found = await sessions.transcript(session)
            if run:
                opens.append((time.process_time() - before) * 1000)
            for number in range(TURNS):
                before = time.process_time()
                found.messages()
                await found.append(
                    UserMessage((TextBlock("hello"),), number),
                    AssistantMessage((TextBlock("hi"),), "a", "p", "m", timestamp=number),
                )
                if run:
                    turns.append((time.process_time() - before) * 1000)
            await sessions.close()
        figures.append(Figure(f"opening a transcript, {name}, CPU", "ms", opens))
        figures.append(Figure(f"one exchange in it, {name}, CPU", "ms", turns))
    return figures


async def memory_figures(root: Path, world: World) -> list[Figure]:
    """2,000 sessions of 3 turns (case PF-01, session half): growth of the second thousand."""
    sessions = Sessions(world, StateDir(root), nobody, durability="process")
    await sessions.open()
    seen = []
    for number in range(2000):
        found = await sessions.transcript(f"s{number}")
        for turn in range(3):
            await found.append(
                UserMessage((TextBlock("hello"),), turn),
                AssistantMessage((TextBlock("hi " * 100),), "a", "p", "m", timestamp=turn),
            )
        if number % 1000 == 999:
            seen.append(resident_mb(os.getpid()))
    tasks = len(asyncio.all_tasks())
    await sessions.close()
    return [
        Figure("resident after 1,000 sessions", "MB", seen[:1]),
        Figure("resident after 2,000 sessions", "MB", seen[1:], seen[0] * 1.2),
        Figure("asyncio tasks left", "", [float(tasks)], 1),
    ]


async def run() -> None:
    world = real_world()
    for measure in (memory_figures, transcript_figures, store_figures):
        with tempfile.TemporaryDirectory() as root:
            for figure in await measure(Path(root), world):
                print(figure.line(), f" [{load()}]", flush=True)
    assert isinstance(world.disk, RealDisk)
    world.disk.close()


if __name__ == "__main__":
    asyncio.run(run())
