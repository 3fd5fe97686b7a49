"""The port under clients that are slow, many or rude (GW-01, GW-03, PF-01)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from websockets.asyncio.client import connect

from claw_engine.config.sections.gateway import GatewayAuth, GatewaySettings, Tls
from claw_engine.events import Notice
from claw_engine.gateway.web.certificate import fingerprint
from tests.gateway.replay import TOKEN, Player, player
from tests.gateway.rig import Rig, approval
from tests.gateway.web.conftest import Join
from tests.support.fakes import FakeClock


def numbers(client: Player) -> list[int]:
    return [f["seq"] for f in client.got if "seq" in f]


def notice(number: int, size: int) -> Notice:
    return Notice(f"n{number}", "info", "x" * size, ts=number)


async def test_gw_01_a_client_that_stops_reading_is_dropped_and_others_see_no_gap(
    rig: Rig, join: Join
) -> None:
    good, slow = await join(), await join()
    for client in (good, slow):
        assert (await client.hello(3))["ok"]
    slow.ws.transport.pause_reading()
    for number in range(200):
        rig.bus.publish(notice(number, 100_000))
        wanted = f"n{number}"
        await good.until(lambda w=wanted: any(
            f.get("event") == "notice" and f["payload"]["code"] == w for f in good.got[-3:]
        ))  # fmt: skip
        if len(rig.gateway.broadcaster.peers) == 1:
            break
    assert len(rig.gateway.broadcaster.peers) == 1
    seen = numbers(good)
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    slow.ws.transport.resume_reading()
    await slow.until(lambda: slow.close)
    assert rig.gateway.port.sessions == 1


async def test_a_client_that_takes_nothing_is_let_go_however_little_waits(
    rig: Rig, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = rig.gateway.port._site  # its time is no setting
    assert site is not None
    monkeypatch.setattr(site, "_shop", structs.replace(site._shop, stalled_s=0.05))
    good, hung = await join(), await join()
    for client in (good, hung):
        assert (await client.hello(3))["ok"]
    hung.ws.transport.pause_reading()
    peer = rig.gateway.broadcaster.peers[1]
    number = 0
    while not peer.outbox.cost:  # until the system takes no more
        number += 1
        rig.bus.publish(notice(number, 100_000))
        wanted = f"n{number}"
        await good.until(lambda w=wanted: any(
            f.get("event") == "notice" and f["payload"]["code"] == w for f in good.got[-3:]
        ))  # fmt: skip
    assert peer.outbox.cost < peer.outbox.hard_limit
    async with asyncio.timeout(20):
        while not peer.outbox.closed:
            good.got.clear()
            rig.bus.publish(notice(0, 10))
            await good.until(lambda: good.got)
    assert len(rig.gateway.broadcaster.peers) == 1
    assert rig.gateway.broadcaster.peers[0].conn_id != peer.conn_id


async def test_gw_03_a_frame_that_cannot_be_sent_ends_that_connection(
    rig: Rig, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = await join(), await join()
    for client in (good, bad):
        await client.hello(3)
    victim = rig.gateway.broadcaster.peers[1]

    def broken(event: object) -> None:
        raise RuntimeError("cannot")

    monkeypatch.setattr(victim.outbox, "put", broken)
    rig.bus.publish(notice(1, 10))
    await bad.until(lambda: bad.close)
    await good.until(lambda: any(f.get("event") == "notice" for f in good.got))
    assert bad.close is not None and bad.close[0] == 1008


async def test_pf_01_hundreds_of_connections_leave_nothing_behind(rig: Rig) -> None:
    count = int(os.environ.get("CLAW_SOAK_CONNECTIONS", "60"))
    assert rig.gateway.port.number is not None

    async def one(number: int) -> None:
        client = await player(rig.gateway.port.number or 0)
        assert (await client.hello(3 + number % 2))["ok"]
        if number % 2:
            client.ws.transport.abort()
        await client.end()

    await one(0)
    await _empty(rig)
    tasks, files = len(asyncio.all_tasks()), _open_files()
    for start in range(0, count, 20):
        await asyncio.gather(*(one(start + n) for n in range(20)))
    await _empty(rig)
    assert len(asyncio.all_tasks()) <= tasks + 2
    assert _open_files() <= files + 2
    assert rig.gateway.broadcaster.peers == []
    assert len(rig.gateway.presence.rows()) == 1


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count


async def _empty(rig: Rig) -> None:
    """Until every session is over: a closing client has a real second for its last words."""
    async with asyncio.timeout(20):
        while rig.gateway.port.sessions:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


async def test_the_handshake_has_its_time(rig: Rig, join: Join) -> None:
    client = await join()
    await client.challenge()
    assert isinstance(rig.world.clock, FakeClock)
    await rig.world.clock.advance(10)
    await client.until(lambda: client.close)
    assert client.close == (1000, "")


async def test_nobody_unknown_makes_us_read_more_than_64_kib(rig: Rig, join: Join) -> None:
    client = await join()
    await client.challenge()
    await client.send({"raw": "x" * 70_000})
    await client.until(lambda: client.close)
    assert client.close == (1009, "")


async def test_stopping_says_goodbye(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.open()
    client = await player(await rig.serve())
    await client.hello(3)
    await rig.close()
    await client.until(lambda: client.close)
    assert client.close == (1012, "service restart")
    assert any(f.get("event") == "shutdown" for f in client.got)
    await client.end()


async def test_approvals_reach_who_shows_them(rig: Rig, join: Join) -> None:
    """Protocol 3 by scope, protocol 4 by capability too."""
    three, four, blind, small = [await join() for _ in range(4)]
    await three.hello(3, caps=[])
    await four.hello(4, caps=["exec-approvals"])
    await blind.hello(4, caps=[])
    await small.hello(3, scopes=["operator.write"])
    rig.gateway.broadcaster.send(_requested())
    rig.bus.publish(notice(1, 1))
    for client in (three, four, blind, small):
        await client.until(lambda c=client: any(f.get("event") == "notice" for f in c.got))
    told = [[f for f in c.got if f.get("event") == "exec.approval.requested"]
            for c in (three, four, blind, small)]  # fmt: skip
    assert [len(frames) for frames in told] == [1, 1, 0, 0]
    assert "systemRunBindingV1" in told[0][0]["payload"]["request"]
    assert "systemRunBinding" in told[1][0]["payload"]["request"]
    assert told[1][0]["payload"]["request"]["allowedDecisions"]


def _requested() -> Any:
    from claw_engine.gateway.broadcast import approval_event

    return approval_event(approval())


async def test_tls_with_a_certificate_made_here(tmp_path: Path) -> None:
    settings = GatewaySettings(auth=GatewayAuth(token=TOKEN), tls=Tls(enabled=True))
    rig = Rig(tmp_path, settings=settings)
    await rig.open()
    number = await rig.serve()
    folder = tmp_path / "gateway" / "tls"
    try:
        assert (folder / "key.pem").stat().st_mode & 0o777 == 0o600
        context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
        async with connect(f"wss://localhost:{number}", ssl=context, proxy=None) as ws:
            assert "connect.challenge" in str(await ws.recv())
            shown = ws.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert hashlib.sha256(shown).hexdigest() == fingerprint(folder / "cert.pem")
        with contextlib.suppress(Exception):
            async with connect(f"ws://localhost:{number}", proxy=None, open_timeout=2):
                pytest.fail("spoke in the clear")
    finally:
        await rig.close()
