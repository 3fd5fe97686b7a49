"""What only one of the two clients has to cope with."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from claw_engine.client.base import RESYNC, ClientError, ConnectionLost
from claw_engine.client.door import DoorRefused, NoEngine, door_path
from claw_engine.client.inflow import Inflow
from claw_engine.client.local import LocalClient
from claw_engine.client.remote import RemoteClient
from claw_engine.client.sync import SyncClient
from claw_engine.events import Notice
from claw_engine.gateway.outbox import HARD_LIMIT
from claw_engine.protocol.frames import MAX_PAYLOAD, EventFrame
from tests.gateway.rig import Rig
from tests.support.fakes import settle


async def take(events: AsyncIterator[EventFrame], name: str) -> EventFrame:
    async with asyncio.timeout(5):
        async for event in events:
            if event.event == name:
                return event
    raise AssertionError(f"no {name}")


# ── in process ──────────────────────────────────────────────────────────────────────────────


async def test_strict_refuses_what_no_wire_could_carry(rig: Rig) -> None:
    client = LocalClient(rig.gateway, strict=True)
    await client.connect()
    with pytest.raises(TypeError):
        await client.call("chat.history", {"sessionKey": object()})
    with pytest.raises(ValueError, match="Out of range"):
        await client.call("chat.history", {"sessionKey": float("nan")})
    await client.close()


async def test_nobody_reads_for_long_then_resync_and_on(rig: Rig) -> None:
    client = LocalClient(rig.gateway)
    await client.connect()
    await client.call("trace.subscribe")
    for n in range(HARD_LIMIT // 1_000_000 + 2):
        rig.bus.publish(Notice(f"n{n}", "info", "x" * 1_000_000))
        await settle(3)
    events = client.events()
    first = await take(events, "client.state")
    assert first.payload == {"state": "connected", "reason": RESYNC}
    rig.bus.publish(Notice("after", "info", "A"))
    while (await take(events, "notice")).payload["code"] != "after":  # type: ignore[index]  # JSON
        pass
    assert client.connected
    await client.close()


# ── through the door ────────────────────────────────────────────────────────────────────────


async def test_a_restart_of_the_engine_is_survived(tmp_path: Path) -> None:
    first = Rig(tmp_path)
    await first.open()
    client = RemoteClient(tmp_path)
    await client.connect()
    events = client.events()
    await first.close()
    assert (await take(events, "client.state")).payload == {"state": "connected", "reason": ""}
    lost = (await take(events, "client.state")).payload
    assert lost == {"state": "disconnected", "reason": "service restart"}
    with pytest.raises(NoEngine):
        await client.connect()
    second = Rig(tmp_path)
    await second.open()
    await client.connect()
    assert (await client.call("health"))["ok"] is True
    second.bus.publish(Notice("a", "info", "A"))
    assert (await take(events, "notice")).seq == 1
    await client.close()
    await second.close()


async def test_calls_in_flight_fail_when_the_engine_dies(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.open()
    client = RemoteClient(tmp_path)
    await client.connect()
    turn = asyncio.create_task(
        client.call("agent", {"message": "x", "idempotencyKey": "k"}, timeout=None)
    )
    await client.call("health")
    await rig.close()
    with pytest.raises((ConnectionLost, ClientError)):
        await turn
    await client.close()


async def test_the_door_is_where_the_lock_says(tmp_path: Path) -> None:
    long = tmp_path / ("d" * 110)
    long.mkdir()
    rig = Rig(long, env={"XDG_RUNTIME_DIR": str(tmp_path)})
    path = await rig.open()
    assert path.parent == tmp_path
    (long / "gateway.lock").write_text(json.dumps({"pid": 1, "door": str(path)}))
    assert door_path(long) == str(path)
    client = RemoteClient(long)
    await client.connect()
    assert await asyncio.to_thread(ask_health, long)
    await client.close()
    await rig.close()


def ask_health(state_dir: Path) -> bool:
    with SyncClient(state_dir) as client:
        return client.call("health")["ok"] is True


@pytest.mark.parametrize("lock", [b"", b"null", b"[]", b'{"door": 5}', b"{", b"\xff"])
def test_a_damaged_lock_means_the_usual_place(tmp_path: Path, lock: bytes) -> None:
    (tmp_path / "gateway.lock").write_bytes(lock)
    assert door_path(tmp_path) == str(tmp_path / "claw.sock")


@pytest.mark.parametrize(
    "says", [b"", b"SSH-2.0-x\r\n", b'{"type":"event","event":"hi"}\n', b"[]\n", b"\n" * 9]
)
async def test_a_squatter_learns_no_key(tmp_path: Path, says: bytes) -> None:
    key = b"s" * 32
    (tmp_path / "door.key").write_bytes(key)
    heard: list[bytes] = []
    over = asyncio.Semaphore(0)

    async def squat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(says)
            writer.write_eof()
            heard.append(await reader.read())
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        over.release()

    server = await asyncio.start_unix_server(squat, str(tmp_path / "claw.sock"))
    client = RemoteClient(tmp_path)
    with pytest.raises((ConnectionLost, DoorRefused)):
        await client.connect()
    with pytest.raises((NoEngine, DoorRefused)):
        await asyncio.to_thread(ask_health, tmp_path)
    await client.close()
    for _ in range(2):
        await over.acquire()
    server.close()
    await server.wait_closed()
    assert all(key not in line and key.hex().encode() not in line for line in heard)


async def test_without_the_key_the_door_stays_shut(rig: Rig) -> None:
    rig.state_dir.door_key.unlink()
    with pytest.raises(DoorRefused, match="Cannot read the door key"):
        await RemoteClient(rig.state_dir.root).connect()


# ── events on the client's side ─────────────────────────────────────────────────────────────


async def test_an_inflow_nobody_reads_is_bounded_and_says_so() -> None:
    inflow = Inflow(capacity=10)
    for n in range(1, 26):
        inflow.put(EventFrame("notice", {"n": n}, n))
    inflow.close()
    seen = [event async for event in inflow.events()]
    assert len(seen) <= 11
    assert seen[0].payload == {"state": "connected", "reason": RESYNC}
    assert seen[-1].payload == {"n": 25}


async def test_a_gap_is_told_once() -> None:
    inflow = Inflow()
    for seq in (5, 6, 8, None, 9):
        inflow.put(EventFrame("notice", {}, seq))
    inflow.close()
    names = [event.event async for event in inflow.events()]
    assert names == ["notice", "notice", "client.state", "notice", "notice", "notice"]


@pytest.mark.parametrize("local", [True, False])
async def test_a_message_larger_than_a_frame_is_refused_in_words(rig: Rig, local: bool) -> None:
    client = LocalClient(rig.gateway) if local else RemoteClient(rig.state_dir.root)
    await client.connect()
    said = {"sessionKey": "main", "idempotencyKey": "k", "message": "x" * (MAX_PAYLOAD + 1)}
    for name in ("chat.send", "agent"):
        with pytest.raises(ClientError, match="larger than 25 MB") as caught:
            await client.call(name, said)
        assert caught.value.shape.code == "INVALID_REQUEST"
    assert client.connected
    assert rig.intake.submitted == []
    await client.close()
