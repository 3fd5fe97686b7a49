"""The pairing store (SE-03): OpenClaw's files, and that nothing grows by itself."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.auth.device_rows import Claim, beyond
from claw_engine.gateway.auth.devices import MAX_PENDING, Devices, DeviceStoreDamaged
from claw_engine.storage.errors import StateDiskError
from tests.support.fakes import FakeClock, fake_world

READ, WRITE, ADMIN = "operator.read", "operator.write", "operator.admin"


class Bench:
    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.folder = folder
        self.told: list[tuple[str, Any]] = []
        self.devices = Devices(fake_world(self.clock), folder, lambda *a: self.told.append(a))

    def file(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}.json"
        assert path.stat().st_mode & 0o777 == 0o600
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path / "devices")
    await made.devices.load()
    return made


def claim(device: str = "d1", *scopes: str) -> Claim:
    return Claim(device, "key", scopes or (READ,), "cli", "cli", platform="linux")


async def test_a_paired_device_has_the_recorded_shape(bench: Bench) -> None:
    await bench.devices.pair(claim())
    token, made = await bench.devices.token("d1", (READ,))
    row = bench.file("paired")["d1"]
    assert set(row) == {
        "deviceId", "publicKey", "platform", "clientId", "clientMode", "role", "roles", "scopes",
        "approvedScopes", "tokens", "createdAtMs", "approvedAtMs",
    }  # fmt: skip
    assert row["tokens"]["operator"] == {
        "token": token, "role": "operator", "scopes": [READ], "createdAtMs": made
    }  # fmt: skip
    assert (await bench.devices.token("d1", (READ,)))[0] == token
    assert "token" not in str(bench.devices.paired()[0]["tokens"])
    assert bench.devices.token_scopes("d1", token) == (READ,)
    assert bench.devices.token_scopes("d1", "x") is None
    assert bench.devices.token_scopes("other", token) is None


async def test_unknown_fields_of_a_foreign_file_stay(tmp_path: Path) -> None:
    folder = tmp_path / "devices"
    folder.mkdir()
    (folder / "paired.json").write_text(json.dumps({"d1": {
        "deviceId": "d1", "publicKey": "key", "scopes": [READ], "approvedScopes": [READ],
        "theirs": {"a": 1}, "tokens": {"node": {"token": "n"}},
    }}))  # fmt: skip
    bench = Bench(folder)
    await bench.devices.load()
    await bench.devices.token("d1", (READ,))
    row = bench.file("paired")["d1"]
    assert row["theirs"] == {"a": 1}
    assert row["tokens"]["node"] == {"token": "n"}


async def test_a_request_waits_five_minutes_and_is_one_for_a_device(bench: Bench) -> None:
    first = await bench.devices.ask(claim("d1", READ), "not-paired")
    again = await bench.devices.ask(claim("d1", WRITE), "not-paired")
    assert first == again
    (row,) = bench.devices.pending()
    assert row["scopes"] == [READ, WRITE]
    assert [event for event, _ in bench.told] == ["device.pair.requested"] * 2
    await bench.clock.advance(301)
    assert bench.devices.pending() == []
    with pytest.raises(InvalidRequest):
        await bench.devices.approve(first)


async def test_approval_grants_what_was_asked_and_no_more_than_the_approver_may(
    bench: Bench,
) -> None:
    request = await bench.devices.ask(claim("d1", READ, ADMIN), "not-paired")
    with pytest.raises(InvalidRequest, match="missing scope"):
        await bench.devices.approve(request, may=lambda scope: scope == READ)
    device = await bench.devices.approve(request)
    assert device["approvedScopes"] == [READ, ADMIN]
    assert bench.file("pending") == {}
    assert bench.told[-1][1]["decision"] == "approved"


async def test_rejecting_and_removing(bench: Bench) -> None:
    request = await bench.devices.ask(claim(), "not-paired")
    assert await bench.devices.reject(request) == "d1"
    assert not bench.devices.knows("d1")
    await bench.devices.pair(claim())
    await bench.devices.remove("d1")
    assert bench.file("paired") == {}
    with pytest.raises(InvalidRequest):
        await bench.devices.remove("d1")


async def test_strangers_cannot_fill_the_list(bench: Bench) -> None:
    for number in range(MAX_PENDING):
        await bench.devices.ask(claim(f"d{number}"), "not-paired")
    with pytest.raises(InvalidRequest):
        await bench.devices.ask(claim("one more"), "not-paired")
    await bench.devices.ask(claim("d1", WRITE), "not-paired")


async def test_rotation_kills_the_old_token_and_never_adds(bench: Bench) -> None:
    await bench.devices.pair(claim("d1", READ))
    old, _ = await bench.devices.token("d1", (READ,))
    with pytest.raises(InvalidRequest):
        await bench.devices.rotate("d1", "operator", [ADMIN])
    with pytest.raises(InvalidRequest):
        await bench.devices.rotate("d1", "node", None)
    made = await bench.devices.rotate("d1", "operator", None)
    assert set(made) == {"deviceId", "role", "token", "scopes", "rotatedAtMs"}
    assert bench.devices.token_scopes("d1", old) is None
    assert bench.devices.token_scopes("d1", str(made["token"])) == (READ,)


async def test_a_revoked_token_is_dead(bench: Bench) -> None:
    await bench.devices.pair(claim("d1", READ))
    token, _ = await bench.devices.token("d1", (READ,))
    assert set(await bench.devices.revoke("d1", "operator")) == {"deviceId", "role", "revokedAtMs"}
    assert bench.devices.token_scopes("d1", token) is None
    assert bench.devices.revoked("d1")


async def test_a_damaged_file_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "devices"
    folder.mkdir()
    (folder / "paired.json").write_text("{")
    with pytest.raises(DeviceStoreDamaged):
        await Bench(folder).devices.load()
    assert (folder / "paired.json").read_text() == "{"


@pytest.mark.parametrize(
    ("asked", "granted", "lacking"),
    [
        ([READ], [READ], []), ([READ], [WRITE], []), ([WRITE], [READ], [WRITE]),
        ([READ, WRITE, "operator.pairing", ADMIN], [ADMIN], []), ([ADMIN], [WRITE], [ADMIN]),
        (["operator.secret"], [WRITE], ["operator.secret"]), (["x"], ["x"], []),
    ],
)  # fmt: skip
def test_what_scopes_include(asked: list[str], granted: list[str], lacking: list[str]) -> None:
    assert beyond(asked, granted) == lacking


async def test_new_devices_that_come_at_once_share_a_write_and_none_is_lost_when_it_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[set[str]] = []
    write = bench.devices._write_files

    def noted(paired: dict[str, Any], pending: None) -> None:
        written.append(set(paired))
        if len(written) == 2:
            raise StateDiskError("full")
        write(paired, None)

    monkeypatch.setattr(bench.devices, "_write_files", noted)
    pairing = [bench.devices.pair(claim(f"d{n}")) for n in range(20)]
    done = await asyncio.gather(*pairing, return_exceptions=True)
    # The first alone, the second fails with all the others, which the third takes along.
    assert [isinstance(one, Exception) for one in done] == [False, True, *[False] * 18]
    assert [len(ids) for ids in written] == [1, 20, 19]
    assert set(bench.file("paired")) == {f"d{n}" for n in range(20)} - {"d1"}
    assert (await bench.devices.token("d7", (READ,)))[0]
    assert len(written) == 3
