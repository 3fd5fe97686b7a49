"""Commands in the background across the whole engine: stop all, stop, crash and restart."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from claw_engine.tools.exec.processes import alive, look
from tests.support.engines import Operator, engine_on

SOON: dict[str, object] = {"tools": {"exec": {"backgroundMs": 10}}}
BARE: dict[str, object] = {"tools": {"exec": {"confine": "none"}}}
"""bubblewrap ends a command together with the engine: there would be nothing left to find."""
BARE_SOON: dict[str, object] = {"tools": {"exec": {"backgroundMs": 10, "confine": "none"}}}


async def leave_sleeping(operator: Operator) -> int:
    """Have a run leave a command in the background; the command's pid."""
    run = await operator.say("run: exec sleep 600")
    await operator.decide(await operator.request(run), "allow-once")
    ended = await operator.trace(run, "tool.ended")
    assert "Command still running (session " in ended["text"]
    assert (await operator.ended(run))["status"] == "done"
    return int(ended["text"].partition("pid ")[2].partition(")")[0])


async def test_stopping_everything_stops_the_background_too(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path / "state", config=SOON) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        pid = await leave_sleeping(operator)
        assert engine.busy
        for stop in ("/stop", "stop"):
            await operator.client.call(
                "chat.send", {"sessionKey": "main", "message": stop, "idempotencyKey": stop}
            )
        await operator.client.call("chat.abort", {"sessionKey": "main"})
        assert look(pid) is not None
        answer = await operator.client.call("runs.stopAll")
        assert answer["runIds"] == []
        assert isinstance(answer["processes"], list) and len(answer["processes"]) == 1
        assert look(pid) is None


async def test_no_command_outlives_an_engine_that_stops(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with (
        engine_on(state, config=SOON) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        pid = await leave_sleeping(operator)
    assert look(pid) is None
    assert json.loads((state / "processes.json").read_text())["processes"] == []


async def die_with_a_command(state: Path, *, background: bool) -> None:
    """Print the pid of a command that runs, then die as by kill -9."""
    async with (
        engine_on(state, config=BARE_SOON if background else BARE) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        if background:
            print(await leave_sleeping(operator), flush=True)
        else:
            run = await operator.say("run: echo $$; exec sleep 600")
            await operator.decide(await operator.request(run), "allow-once")
            print((await operator.trace(run, "tool.output"))["delta"], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


_DIE = """
import asyncio, sys
from pathlib import Path
from tests.tools.test_background_in_engine import die_with_a_command

asyncio.run(die_with_a_command(Path(sys.argv[1]), background=sys.argv[2] == "True"))
"""


@pytest.mark.parametrize("background", [True, False])
async def test_after_kill_9_what_was_left_running_is_stopped_and_told(
    tmp_path: Path, background: bool
) -> None:
    """A command in the background of a run that was done, or one of a run that was cut off."""
    state = tmp_path / "state"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _DIE, str(state), str(background), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    # The command of a cut-off run may hold the pipe for as long as it lives: read one line.
    left = look(int(await process.stdout.readline()))
    assert await process.wait() == -9
    assert left is not None and alive(left.id), "the engine died, its command did not"
    async with engine_on(state):
        assert alive(left.id) is None
    told = [line for line in engine_log(state) if "orphans stopped" in line]
    assert len(told) == 1
    assert f"{left.id.pid} (sleep)" in told[0]


def engine_log(state: Path) -> list[str]:
    lines = []
    for file in sorted((state / "logs").iterdir()):
        lines += file.read_text().splitlines()
    return lines
