"""What a turn and a recovery leave in a session's index entry for OpenClaw to read."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from claw_engine.messages import Usage
from claw_engine.protocol.trace import TraceKind
from tests.agent.bench import MAIN, Bench, ScriptedModel, says

END = TraceKind.RUN_ENDED


async def test_a_turn_after_an_interrupted_run_is_not_called_aborted_at_the_next_start(
    tmp_path: Path,
) -> None:
    dead = Bench(tmp_path / "state", ScriptedModel([[asyncio.Event()]]))
    await dead.start()
    await dead.until(TraceKind.CALL_STARTED, await dead.send("hangs", id_="cut"))
    await dead.sessions.close()
    await dead.journal.close()  # it "died"; the run stays open until somebody decides
    root = tmp_path / "copy"
    shutil.copytree(dead.state.root, root)
    await dead.stop()

    b = Bench(root, ScriptedModel([says("Better.")]))
    await b.dispatcher.recover(await b.start())
    assert _aborted(b)
    await b.until(END, await b.send("again"))
    await b.stop()

    for _ in range(2):
        b = Bench(root, ScriptedModel([]))
        await b.dispatcher.recover(await b.start())
        assert [row["runId"] for row in b.dispatcher.resumes.rows()] == ["cut"]
        assert not _aborted(b)
        await b.stop()


async def test_counters_of_a_turn_are_fresh(tmp_path: Path) -> None:
    usage = Usage(input=800, output=4, cache_read=100, cache_write=7, total=911)
    b = Bench(tmp_path, ScriptedModel([says("Yes.", usage=usage)]))
    await b.start()
    await b.sessions.update(MAIN, lambda e: e.replace(totalTokensFresh=False, cacheRead=5))
    run_id = await b.send("hello")
    await b.until(END, run_id)
    await b.dispatcher.wait(run_id)
    entry = b.sessions.get(MAIN)
    assert entry is not None
    names = ("totalTokens", "totalTokensFresh", "cacheRead", "cacheWrite")
    assert [entry.raw[name] for name in names] == [911, True, 100, 7]
    await b.stop()


def _aborted(b: Bench) -> bool:
    entry = b.sessions.get(MAIN)
    assert entry is not None
    return entry.aborted_last_run
