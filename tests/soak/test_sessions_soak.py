"""PF-01, the half of sessions and local connections: what has ended leaves nothing behind.

A short slice in the suite; `CLAW_SOAK_SESSIONS=2000` runs the case at its size.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import time
from pathlib import Path

import pytest

from bench.processes import resident_mb
from claw_engine.client.base import Client
from claw_engine.client.remote import RemoteClient
from claw_engine.paths import StateDir
from tests.support.engines import engine_on

SESSIONS = int(os.environ.get("CLAW_SOAK_SESSIONS", "200"))
TURNS = 3
CONNECTIONS = SESSIONS // 4
SAY = "long: 1 1000000"
"""One token at once: a provider that costs nothing."""

pytestmark = [pytest.mark.xdist_group("soak"), pytest.mark.timeout(120 + SESSIONS)]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def back_to(base: int) -> int:
    """Tasks of this loop once they are down to `base`; gives up after some thousand turns."""
    for _ in range(5000):
        if (now := len(asyncio.all_tasks())) <= base:
            return now
        await asyncio.sleep(0)
    return now


async def talk(client: Client, session: str) -> None:
    for number in range(TURNS):
        run = f"{session}-{number}"
        await client.call(
            "chat.send", {"sessionKey": session, "message": SAY, "idempotencyKey": run}
        )
        ended = await client.call("agent.wait", {"runId": run, "timeoutMs": 60000})
        assert ended["status"] == "ok"


async def connect_and_go(state: Path, abruptly: bool) -> None:
    if abruptly:
        _, writer = await asyncio.open_unix_connection(str(StateDir(state).door_sock))
        writer.write(b'{"type":"req","id":"1","meth')
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        return
    client = RemoteClient(state)
    await client.connect()
    await client.close()


async def test_ended_sessions_and_gone_clients_leave_no_tasks_files_or_memory(
    tmp_path: Path,
) -> None:
    """PF-01: sessions × 3 turns, connections half of which break off, health all the while."""
    state = tmp_path / "s"
    # Quiet, because the test runner keeps every record that is logged.
    async with engine_on(state, config={"logging": {"level": "error"}}) as engine:
        client = engine.local_client()
        await client.connect()
        for number in range(SESSIONS // 10):
            await talk(client, f"warm{number}")
        await connect_and_go(state, abruptly=False)
        tasks, files = len(asyncio.all_tasks()), open_files()
        resident: list[float] = []
        slowest = 0.0
        for number in range(SESSIONS):
            await talk(client, f"s{number}")
            if number % 4 == 0:
                await connect_and_go(state, abruptly=number % 8 == 0)
            began = time.process_time()  # ours alone: the machine may be busy with others
            assert (await client.call("health"))["ok"] is True
            slowest = max(slowest, time.process_time() - began)
            if (number + 1) % (SESSIONS // 10) == 0:
                gc.collect()
                resident.append(resident_mb(os.getpid()))
        await client.close()
        print(f"resident MB {resident}, slowest health {slowest * 1000:.0f} ms CPU")
        assert slowest < 1.0
        assert resident[-1] < 1.2 * resident[4]
        assert await back_to(tasks) <= tasks
        assert open_files() <= files
