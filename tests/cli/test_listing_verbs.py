"""`claw sessions`, `devices`, `config` and `logs` with a real engine in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from claw_engine.cli.__main__ import main
from claw_engine.engine import Engine
from tests.support.engines import Operator, engine_on

Claw = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with engine_on(tmp_path) as made:
        yield made


@pytest.fixture
def claw(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Claw:
    async def run(*argv: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, [*argv, "--state-dir", str(tmp_path)])
        return code, *capsys.readouterr()

    return run


async def test_sessions(engine: Engine, claw: Claw) -> None:
    assert (await claw("sessions"))[1] == "There are no sessions.\n"
    async with Operator(engine.local_client(strict=True)) as operator:
        await operator.ended(await operator.say("hello there", "work"))
    _, out, _ = await claw("sessions", "list")
    assert out.startswith("agent:main:work ")
    _, out, _ = await claw("sessions", "show", "work", "--limit", "5")
    assert "user: " in out and "hello there" in out and "assistant: " in out
    _, out, _ = await claw("sessions", "reset", "work")
    assert out.startswith("agent:main:work begins anew")
    assert (await claw("sessions", "show", "work"))[1] == "Nothing was said.\n"
    _, out, _ = await claw("sessions", "delete", "work")
    assert out.startswith("agent:main:work is deleted")
    code, out, _ = await claw("sessions", "delete", "work", "--json")
    assert (code, json.loads(out)["deleted"]) == (0, False)


async def test_devices(engine: Engine, claw: Claw) -> None:
    assert (await claw("devices", "list"))[1] == "No device is paired, none asks.\n"
    code, _, err = await claw("devices", "approve", "nobody")
    assert code == 2 and "no one request 'nobody'" in err
    code, _, err = await claw("devices", "revoke", "abc", "--json")
    assert code == 2


async def test_config_and_restart_of_a_consoles_engine(claw: Claw, tmp_path: Path) -> None:
    code, out, _ = await claw("config", "set", "cron.maxConcurrentRuns", "3")
    assert (code, out) == (0, f"cron.maxConcurrentRuns is set in {tmp_path / 'openclaw.json'}.\n")
    assert (await claw("config", "get", "cron"))[1] == '{\n  "maxConcurrentRuns": 3\n}\n'
    code, _, err = await claw("config", "set", "cron.maxConcurrentRuns", "many")
    assert code == 1 and "invalid config" in err and "cron.maxConcurrentRuns" in err
    code, out, _ = await claw("config", "set", "gateway.port", "1")
    assert code == 0 and "Not in force yet: gateway.port" in out
    code, _, err = await claw("gateway", "restart")
    assert code == 1 and "belongs to a console" in err
    code, out, _ = await claw("logs", "--limit", "5", "--json")
    assert code == 0 and all(json.loads(line)["msg"] for line in out.splitlines())
