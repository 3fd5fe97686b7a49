"""`lanes.*`, `runs.*`, `sessions.reset` over the door, their file, and `claw lanes`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from claw_engine.cli.__main__ import main
from claw_engine.errors import ClawError
from tests.support.engines import Operator, engine_on


async def width(operator: Operator, lane: str) -> int:
    lanes = (await operator.client.call("lanes.status"))["lanes"]
    return next(row["width"] for row in lanes if row["lane"] == lane)


async def test_widths_and_pauses_survive_a_restart(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.client.call("lanes.configure", {"lane": "main", "width": 2})
        await operator.client.call("lanes.pause")
        with pytest.raises(ClawError, match="no lane"):
            await operator.client.call("lanes.configure", {"lane": "none", "width": 2})
    assert json.loads((tmp_path / "lanes.json").read_text())["widths"] == {"main": 2}
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        assert engine.lanes.paused
        assert await width(operator, "main") == 2
        engine.apply(engine.settings())  # a reload does not undo the operator's width
        assert await width(operator, "main") == 2
        answer = await operator.client.call("lanes.configure", {"lane": "main", "width": None})
        assert answer["width"] == 4
    assert json.loads((tmp_path / "lanes.json").read_text())["widths"] == {}


async def test_what_waits_is_seen_moved_and_dropped(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        running = await operator.say("run: uname")
        record = await operator.request(running)
        out, last, first = [await operator.say(f"think: {n}") for n in range(3)]
        status = await operator.client.call("lanes.status")
        rows = {row["runId"]: row for row in status["runs"]}
        assert rows[first]["waitingBehind"] == [running, out, last]
        assert next(r["queued"] for r in status["lanes"] if r["lane"] == "main") == 3
        await operator.client.call("lanes.drop", {"runId": out})
        assert (await operator.ended(out))["stopReason"] == "dropped"
        await operator.client.call("lanes.move", {"runId": first, "position": 0})
        with pytest.raises(ClawError, match="going on"):
            await operator.client.call("lanes.drop", {"runId": running})
        waited = asyncio.create_task(
            operator.client.call("agent.wait", {"runId": last, "timeoutMs": 20_000})
        )
        await operator.decide(record, "deny")
        started = await operator.trace(first, "run.started")
        assert started["messages"] == [first, last]
        assert (await waited)["status"] == "ok"
        assert (await operator.ended(last))["answeredBy"] == first


async def test_reset_stops_and_begins_anew(tmp_path: Path) -> None:
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.ended(await operator.say("think: remember"))
        run = await operator.say("run: uname")
        await operator.request(run)
        answer = await operator.client.call("sessions.reset", {"key": "main", "reason": "new"})
        assert answer["ok"] is True
        assert (await operator.ended(run))["stopReason"] == "reset"
        assert await operator.history() == []
        patched = await operator.client.call(
            "sessions.patch", {"key": "main", "thinkingLevel": "low"}
        )
        assert patched["entry"]["thinkingLevel"] == "low"
        assert (await operator.client.call("runs.interrupted"))["runs"] == []
        with pytest.raises(ClawError, match="No interrupted run"):
            await operator.client.call("runs.resume", {"runId": run, "action": "resume"})


async def test_claw_lanes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def claw(*argv: str) -> tuple[int, str]:
        code = await asyncio.to_thread(main, ["lanes", *argv, "--state-dir", str(tmp_path)])
        return code, capsys.readouterr().out

    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        assert await claw("pause") == (0, "Paused: nothing new starts until claw lanes resume.\n")
        first, second = await operator.say("think: a"), await operator.say("think: b")
        code, out = await claw()
        assert code == 0
        assert "PAUSED" in out
        assert f"{second}, behind {first}" in out
        assert await claw("width", "main", "3") == (0, "Lane main is 3 wide.\n")
        assert (await claw("move", second, "0"))[0] == 0
        assert await claw("drop", second) == (0, f"Dropped {second}; its sender was told.\n")
        assert (await claw("drop", second))[0] == 1
        assert await claw("width", "main", "default") == (0, "Lane main is 4 wide.\n")
        code, out = await claw("status", "--json")
        assert json.loads(out)["paused"] is True
        assert await claw("resume") == (0, "Running again.\n")
        assert (await operator.ended(first))["status"] == "done"
