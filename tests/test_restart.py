"""The whole chain across a kill -9: what was sent twice is done once."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from claw_tui.store.blocks import ToolStatus
from claw_tui.store.history import blocks_from_history
from tests.support.engines import Operator, engine_on, transcript_of

_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.support.engines import Operator, engine_on

async def main():
    state, proof = Path(sys.argv[1]), sys.argv[2]
    async with engine_on(state) as engine:
        async with Operator(engine.local_client(strict=True)) as operator:
            send = lambda key, text: operator.client.call(
                "chat.send", {"sessionKey": "main", "message": text, "idempotencyKey": key})
            await send("ended", "think: first")
            await operator.ended("ended")
            await send("cut", f"run: sh -c 'echo once >> {proof}; sleep 60'")
            await operator.decide(await operator.request("cut"), "allow-once")
            await operator.event("trace", lambda p: p["kind"] == "tool.started")
            while not Path(proof).exists():
                await asyncio.sleep(0.01)
            await send("queued", "think: third")
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
KEYS = {"ended": "think: first", "cut": "run: sh -c", "queued": "think: third"}


async def send(operator: Operator, key: str, text: str) -> Any:
    return await operator.client.call(
        "chat.send", {"sessionKey": "main", "message": text, "idempotencyKey": key}
    )


@pytest.mark.parametrize("resume", ["never", "ask", "auto"])
async def test_the_same_key_across_kill_9_is_one_run(tmp_path: Path, resume: str) -> None:
    """Ended, cut off in a command, and still queued: each is sent again, twice, with its key."""
    state, proof = tmp_path / "state", tmp_path / "proof"
    state.mkdir()
    config = {"claw": {"resume": resume}, "messages": {"queue": {"mode": "followup"}}}
    (state / "openclaw.json").write_text(json.dumps(config))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _KILLED, str(state), str(proof)
    )
    assert await process.wait() == -9
    for _ in range(2):  # the second engine knows it from its compacted journal
        async with (
            engine_on(state) as engine,
            Operator(engine.local_client(strict=True)) as operator,
        ):
            for key, text in KEYS.items():
                again = await send(operator, key, text)
                assert again["status"] != "started", (key, again)
                assert again["runId"] == key
            if resume == "ask":
                waiting = (await operator.client.call("runs.interrupted"))["runs"]
                assert [run["runId"] for run in waiting] in ([], ["cut"])
                for run in waiting:
                    answer = {"runId": run["runId"], "action": "discard"}
                    await operator.client.call("runs.resume", answer)
            await operator.client.call("agent.wait", {"runId": "queued", "timeoutMs": 20_000})
            await operator.client.call("agent.wait", {"runId": "cut", "timeoutMs": 20_000})
    assert proof.read_text() == "once\n"
    users = [
        line["message"]["content"][0]["text"]
        for line in transcript_of(state)
        if line["type"] == "message" and line["message"]["role"] == "user"
        if not line["message"].get("resumed")  # `auto` puts the question again, marked
    ]
    for text in KEYS.values():
        assert sum(text in said for said in users) == 1, (text, users)


_KILLED_ASKING = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.support.engines import Operator, engine_on

async def main():
    async with engine_on(Path(sys.argv[1])) as engine:
        async with Operator(engine.local_client(strict=True)) as operator:
            run = await operator.say(f"tools: touch {sys.argv[2]}; sleep 60 || touch never")
            ours = lambda p: p["request"]["runId"] == run
            first, second = [await operator.event(
                "exec.approval.requested", lambda p: ours(p) and word in p["request"]["command"])
                for word in ("sleep", "never")]
            await operator.decide(first, "allow-once")
            while not Path(sys.argv[2]).exists():
                await asyncio.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_call_that_still_waited_is_told_from_one_that_had_begun(tmp_path: Path) -> None:
    state, proof = tmp_path / "state", tmp_path / "proof"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _KILLED_ASKING, str(state), str(proof)
    )
    assert await process.wait() == -9
    for _ in range(2):  # what was told is not told anew
        async with (
            engine_on(state) as engine,
            Operator(engine.local_client(strict=True)) as operator,
        ):
            history = await operator.history()
            results = [m["content"][0]["text"] for m in history if m["role"] == "toolResult"]
            assert [text.split(":")[0].split(".")[0] for text in results] == [
                "The engine stopped while this call was going on", "Not run",
            ]  # fmt: skip
            tools = [b.tool for b in blocks_from_history(history) if b.tool is not None]
            assert [(tool.status, tool.duration_ms) for tool in tools] == [
                (ToolStatus.ABORTED, None), (ToolStatus.SKIPPED, tools[1].duration_ms),
            ]  # fmt: skip
