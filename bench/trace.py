"""What the trace costs: a turn, a store, opening and comparing a request of 200,000 tokens.

    python -m bench.trace            all
    python -m bench.trace growth     those whose name contains the word

CPU time where the promise is about work, wall time only for how long the loop was held.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.figures import Figure, env
from bench.processes import load

TURNS = 1_000
LARGE_TOKENS = 200_000
ROUNDS = 9


def turn() -> list[Figure]:
    """Time on the loop's thread for taking down one turn, and on the writer's for storing it."""
    from claw_engine.trace.recorder import Recorder
    from claw_engine.trace.writer import Writer

    spent: dict[str, list[float]] = {"loop": [], "writer": []}

    def measured(kind: type, name: str, where: str) -> Callable[[], None]:
        plain = getattr(kind, name)

        def timed(*args: object) -> object:
            began = time.thread_time_ns()
            try:
                return plain(*args)
            finally:
                spent[where].append((time.thread_time_ns() - began) / 1e6)

        setattr(kind, name, timed)
        return lambda: setattr(kind, name, plain)

    undo = [measured(Recorder, name, "loop") for name in ("note", "begin_call", "end_call")]
    undo.append(measured(Writer, "write", "writer"))
    turns = 200
    asyncio.run(_turns(turns, "long: 50 100000"))
    for back in undo:
        back()
    return [
        Figure("tracing a turn, on the loop", "ms", [sum(spent["loop"]) / turns], 0.5),
        Figure("tracing a turn, writer thread", "ms", [sum(spent["writer"]) / turns], 2),
    ]


def growth() -> list[Figure]:
    """The store after 1,000 turns of one session: half of them with a tool."""
    size, sent = asyncio.run(_turns(TURNS, "long: 200 100000", every="read: AGENTS.md"))
    return [
        Figure("store after 1,000 turns of a session", "MB", [size / 1e6], 25),
        Figure("bodies sent in them", "MB", [sent / 1e6]),
    ]


async def _turns(many: int, text: str, every: str = "") -> tuple[int, int]:
    """Bytes of the store, and of all bodies."""
    from claw_engine.engine import Engine

    with tempfile.TemporaryDirectory() as state:
        async with Engine(Path(state), env=env()) as engine:
            client = engine.local_client()
            await client.connect()
            await asyncio.sleep(1)
            for number in range(many):
                run_id = f"turn-{number}"
                said = every if every and number % 2 else text
                await client.call(
                    "chat.send", {"sessionKey": "main", "message": said, "idempotencyKey": run_id}
                )
                await client.call("agent.wait", {"runId": run_id, "timeoutMs": 60_000})
            sent, before = 0, None
            while True:
                where: dict[str, object] = {"before": before} if before else {}
                page = await client.call("trace.list", {"limit": 500, **where})
                runs = page["runs"]
                assert isinstance(runs, list)
                sent += sum(run["bodyBytes"] for run in runs)
                before = page["next"]
                if before is None:
                    break
            await client.close()
        folder = Path(state) / "trace"
        return sum(file.stat().st_size for file in folder.iterdir()), sent


def large() -> list[Figure]:
    """Open, compare and search requests of 200,000 tokens, and how long the loop stood still."""
    return asyncio.run(_large())


async def _large() -> list[Figure]:
    from claw_engine.config.redact import Redactor
    from claw_engine.config.sections.approvals import TraceSettings
    from claw_engine.trace.desk import TraceDesk
    from claw_engine.trace.recorder import Recorder
    from claw_engine.worker import Worker
    from claw_engine.world import real_world

    world = real_world()
    with tempfile.TemporaryDirectory() as folder:
        told: list[object] = []
        recorder = Recorder(
            world,
            Path(folder) / "trace" / "trace.db",
            lambda *a, **k: told.append(a),
            TraceSettings(),
        )
        for number in (1, 2):
            _record(recorder, number)
        await recorder.flush()
        worker = Worker(world)
        redactor = Redactor()
        desk = TraceDesk(recorder, worker, lambda: redactor)
        first = await desk.call("r1/call-1", None)
        tokens = first["call"]["estimatedTokens"]  # type: ignore[index]  # a JSON object
        assert tokens >= LARGE_TOKENS, tokens
        await desk.compare("r1/call-1", "r2/call-1", 2000)  # starts the worker process
        opened: list[float] = []
        compared: list[float] = []
        searched: list[float] = []
        stalls: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for name, ask, into in (
                ("open", desk.call("r2/call-1", None), opened),
                ("compare", desk.compare("r1/call-1", "r2/call-1", 2000), compared),
                ("search", desk.search("r2/call-1", "needle", 200), searched),
            ):
                worst, cpu, wall = await _watched(ask)
                into.append(cpu if into is opened else wall)
                stalls.setdefault(name, []).append(worst)
        await worker.close()
        await recorder.close()
        assert not told, told
    return [
        Figure(f"open a request of {tokens} tokens, CPU", "ms", opened, 150),
        Figure("compare two of them, outside the loop", "ms", compared, 300),
        Figure("search one of them, wall", "ms", searched),
        *(
            Figure(f"most CPU of the loop in one go, {name}", "ms", gaps, 20)
            for name, gaps in stalls.items()
        ),
    ]


def _record(recorder: object, number: int) -> None:
    from claw_engine.agent.prompt.report import SizeBook
    from claw_engine.models.base import ModelRef, Request, Turn
    from claw_engine.models.codecs import openai_chat
    from claw_engine.models.rules import WireRules
    from claw_engine.parts import Part, PartKind
    from claw_engine.protocol.trace import CallCause
    from claw_engine.trace.ports import Call
    from claw_engine.trace.recorder import Recorder

    assert isinstance(recorder, Recorder)
    rng = random.Random(1)
    words = ("file", "look", "return", "needle", "value", "today", "config", "line", "path", "if")

    def text(chars: int) -> str:
        return " ".join(rng.choices(words, k=chars // 6))

    ref = ModelRef("fake", "one", "openai-completions", "http://localhost:1/v1")
    files = ["\n".join(text(80) for _ in range(220)) for _ in range(8)]
    system = tuple(
        Part(f"f{n}", PartKind.FILE, f"/w/F{n}.md", said, f"F{n}") for n, said in enumerate(files)
    )
    if number == 2:  # one file changed here and there, and the talk went on
        lines = system[3].text.splitlines()
        lines[10::20] = [f"changed {n}" for n in range(len(lines[10::20]))]
        part = Part("f3", PartKind.FILE, "/w/F3.md", "\n".join(lines), "F3")
        system = (*system[:3], part, *system[4:])
    turns = []
    for n in range(680 + 20 * number):
        kind = PartKind.USER if n % 2 == 0 else PartKind.ASSISTANT
        role = "user" if n % 2 == 0 else "assistant"
        turns.append(Turn(role, (Part(f"m{n}", kind, f"entry-{n}", text(1_600), role),)))  # type: ignore[arg-type]  # one of two roles
    request = Request(ref, system, (), tuple(turns))
    encoded = openai_chat.encode(request, WireRules(), {})
    book = SizeBook()
    tokens = sum(book.tokens(part) for piece in encoded.pieces for part in piece.parts)
    call = Call(
        f"r{number}", "agent:main:main", "main", "call-1", CallCause.TURN, None, 1, ref.name,
        ref.provider, ref.api, 1_000 * number, tokens,
    )  # fmt: skip
    recorder.begin_call(
        call, encoded.body, encoded.pieces,
        lambda piece: {part.id: book.tokens(part) for part in piece.parts},
    )  # fmt: skip


async def _watched(work: object) -> tuple[float, float, float]:
    """The most CPU that the loop's thread spent between two looks of a task that looks all the
    time, CPU of this process, wall; all ms. CPU: on a busy machine the wall tells of others."""
    worst, last, done = 0.0, time.thread_time(), False

    async def look() -> None:
        nonlocal worst, last
        while not done:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            worst = max(worst, (now - last) * 1000)
            last = now

    looking = asyncio.create_task(look())
    await asyncio.sleep(0.005)
    worst, last = 0.0, time.thread_time()
    began, cpu = time.perf_counter(), time.process_time()
    await work  # type: ignore[misc]  # a coroutine
    wall, spent = time.perf_counter() - began, time.process_time() - cpu
    done = True
    await looking
    return worst, spent * 1000, wall * 1000


FIGURES = {"turn": turn, "growth": growth, "large": large}


def main(words: list[str]) -> int:
    for name, measure in FIGURES.items():
        if not words or any(word in name for word in words):
            for figure in measure():
                print(f"{figure.line()}  [{load()}]", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
