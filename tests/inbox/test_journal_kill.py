"""kill -9 in the middle of work: whatever was acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from claw_engine.inbox.journal import Journal
from claw_engine.inbox.model import InboundMessage
from claw_engine.messages import AssistantMessage, TextBlock, UserMessage, text_of
from claw_engine.paths import StateDir
from claw_engine.sessions.store import Sessions
from claw_engine.world import real_world

ROOT = Path(__file__).parents[2]


def inbound(name: str, key: str) -> InboundMessage:
    return InboundMessage(name, f"agent:main:{key}", "main", name, "console", 1)


async def work(root: Path) -> None:
    """What an engine does with three busy sessions, for ever; says each step once it is safe."""
    world, state = real_world(), StateDir(root)
    sessions = Sessions(world, state, lambda event: None)
    await sessions.open()
    journal = Journal(world, state.inbox_dir)
    await journal.open()

    async def turns(key: str) -> None:
        number = 0
        while True:
            name = f"{os.getpid()}-{key}-{number}"
            await journal.accept(inbound(name, key))
            print("accepted", key, name, flush=True)
            await journal.mark(name, "started")
            talk = await sessions.transcript(key)
            answer = AssistantMessage((TextBlock(f"re {name}"),))
            await talk.append(UserMessage((TextBlock(name),)), answer)
            print("said", key, name, flush=True)
            await journal.mark(name, "done")
            print("done", key, name, flush=True)
            number += 1

    await asyncio.gather(*(turns(f"s{n}") for n in range(3)))


def kill_after(steps: int, root: Path) -> list[list[str]]:
    """Let an engine say that many steps, kill it, and give back all it said."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.inbox.test_journal_kill", str(root)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(steps)]
        child.kill()
        return [line.split() for line in (*lines, *child.stdout) if line.endswith("\n")]


@pytest.mark.parametrize("steps", [1, 7, 60])
async def test_nothing_acknowledged_is_lost_to_kill_9(tmp_path: Path, steps: int) -> None:
    # The second engine starts on what the first one left.
    told = [step for _ in range(2) for step in kill_after(steps, tmp_path)]
    world, state = real_world(), StateDir(tmp_path)
    sessions = Sessions(world, state, lambda event: None)
    await sessions.open()
    journal = Journal(world, state.inbox_dir)
    recovered = await journal.open()
    left = {a.id for a in (*recovered.not_started, *recovered.interrupted)}
    assert len(sessions.index.list()) <= 3
    for step, key, name in told:
        if step == "accepted":
            assert (await journal.accept(inbound(name, key))).repeat
        elif step == "said":
            texts = {text_of(m.message) for m in await sessions.history(key, 10_000)}
            assert {name, f"re {name}"} <= texts
        else:
            assert name not in left
    assert told
    await sessions.close()
    await journal.close()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1])))
