"""Who comes in by the port and with what: over real WebSockets (SE-01, SE-03, GW handshake)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from claw_engine.config.sections.gateway import (
    ControlUi,
    GatewayAuth,
    GatewaySettings,
    RateLimit,
    TrustedProxyAuth,
)
from claw_engine.events import Notice
from tests.gateway.replay import ALL_SCOPES, TOKEN, Device
from tests.gateway.rig import Rig
from tests.gateway.web.conftest import Join

READ_ONLY = {"scopes": ["operator.read"]}


def code(answer: dict[str, Any]) -> str:
    found: str = answer["error"]["details"]["code"]
    return found


@pytest.mark.parametrize("protocol", [3, 4])
async def test_se_03_scopes_do_not_rise_by_reconnecting(
    rig: Rig, join: Join, protocol: int
) -> None:
    device = Device()
    notices: list[Notice] = []
    subscription = rig.bus.subscribe("notice")
    first = await join(device)
    assert (await first.hello(protocol, **READ_ONLY))["payload"]["auth"]["scopes"] == [
        "operator.read"
    ]
    again = await join(device)
    hello = await again.hello(protocol)
    assert hello["payload"]["auth"]["scopes"] == ["operator.read"]
    assert (await again.call("health"))["ok"]
    assert (await again.call("sessions.list"))["ok"]
    for method in ("config.set", "config.patch", "cron.add", "exec.approval.resolve", "chat.send",
                   "device.pair.approve", "engine.stop", "permission.set"):  # fmt: skip
        refused = (await again.call(method))["error"]
        assert refused["message"].startswith(("missing scope: ", "unknown method: ")), method
    assert (await again.call("chat.send"))["error"]["code"] == (
        "FORBIDDEN" if protocol == 4 else "INVALID_REQUEST"
    )
    (row,) = rig.gateway.devices.pending()
    assert row["scopes"] == ALL_SCOPES[1:]
    while (event := subscription.get_nowait()) is not None:
        assert isinstance(event, Notice)
        notices.append(event)
    assert any("asks for more rights" in notice.title for notice in notices)
    operator = await join()
    await operator.hello(protocol)
    approved = await operator.call("device.pair.approve", {"requestId": row["requestId"]})
    assert approved["ok"]
    third = await join(device)
    assert set((await third.hello(protocol))["payload"]["auth"]["scopes"]) == set(ALL_SCOPES)


async def test_a_device_that_may_nothing_of_it_is_told_to_pair(rig: Rig, join: Join) -> None:
    device = Device()
    await (await join(device)).hello(3, **READ_ONLY)
    client = await join(device)
    answer = await client.hello(3, scopes=["operator.approvals"])
    assert (answer["error"]["code"], code(answer)) == ("NOT_PAIRED", "PAIRING_REQUIRED")
    await client.until(lambda: client.close)
    assert client.close == (1008, "pairing required")


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"},
        {"X-Real-IP": "203.0.113.9"}, {"X-Forwarded-For": "127.0.0.1"},
        {"Host": "claw.example.org"}, {"Via": "1.1 caddy"},
    ],
)  # fmt: skip
async def test_se_01_behind_a_proxy_nobody_is_paired_silently(
    rig: Rig, join: Join, headers: dict[str, str]
) -> None:
    subscription = rig.bus.subscribe("notice")
    answer = await (await join(additional_headers=headers)).hello(3)
    assert code(answer) == "PAIRING_REQUIRED"
    assert rig.gateway.devices.paired() == []
    event = subscription.get_nowait()
    assert isinstance(event, Notice)
    if "Host" not in headers:
        assert "gateway.trustedProxies" in event.hint
    without = await (await join(additional_headers=headers)).hello(3, auth={})
    assert code(without) == "AUTH_TOKEN_MISSING"


async def test_se_01_a_trusted_proxy_tells_the_address(rig: Rig, join: Join) -> None:
    rig.settings = GatewaySettings(auth=GatewayAuth(token=TOKEN), trusted_proxies=("127.0.0.1",))
    far = await (await join(additional_headers={"X-Forwarded-For": "203.0.113.9"})).hello(3)
    assert code(far) == "PAIRING_REQUIRED"
    assert rig.gateway.devices.pending()[0]["remoteIp"] == "203.0.113.9"
    near = await (await join(additional_headers={"X-Forwarded-For": "127.0.0.1"})).hello(3)
    assert near["ok"]


async def test_the_device_token_replaces_the_secret_until_it_is_rotated_or_revoked(
    rig: Rig, join: Join
) -> None:
    device = Device()
    token = (await (await join(device)).hello(3))["payload"]["auth"]["deviceToken"]
    for auth in ({"token": token}, {"deviceToken": token}, {"token": "old", "deviceToken": token}):
        assert (await (await join(device)).hello(3, auth=auth))["ok"], auth
    assert code(await (await join()).hello(3, auth={"deviceToken": token})) == (
        "AUTH_DEVICE_TOKEN_MISMATCH"
    )
    operator = await join()
    await operator.hello(3)
    rotated = await operator.call(
        "device.token.rotate", {"deviceId": device.id, "role": "operator"}
    )
    assert code(await (await join(device)).hello(4, auth={"deviceToken": token})) == (
        "AUTH_DEVICE_TOKEN_MISMATCH"
    )
    new = await join(device)
    assert (await new.hello(3, auth={"deviceToken": rotated["payload"]["token"]}))["ok"]
    done = await operator.call("device.token.revoke", {"deviceId": device.id, "role": "operator"})
    assert done["ok"]
    await new.until(lambda: new.close)
    assert new.close == (1008, "device access revoked")


async def test_a_token_is_not_made_for_somebody_who_may_less(rig: Rig, join: Join) -> None:
    admin = Device()
    await (await join(admin)).hello(3)
    small = await join()
    await small.hello(3, scopes=["operator.pairing"])
    params = {"deviceId": admin.id, "role": "operator"}
    refused = await small.call("device.token.rotate", params)
    assert refused["error"]["message"].startswith("missing scope: ")


@pytest.mark.parametrize("kind", ["token", "device-token", "proof"])
async def test_wrong_credentials_of_any_kind_lock_out_also_loopback(
    rig: Rig, join: Join, kind: str
) -> None:
    limits = RateLimit(max_attempts=3)
    rig.settings = GatewaySettings(auth=GatewayAuth(token=TOKEN, rate_limit=limits))
    device = Device()
    own = (await (await join(device)).hello(3))["payload"]["auth"]["deviceToken"]
    wrong: dict[str, Any] = {"auth": {"token": "x"}}
    if kind == "device-token":
        wrong = {"auth": {"deviceToken": "x"}}
    for _ in range(3):
        client = await join(device)
        if kind == "proof":
            device.id, right = "0" * 64, device.id
            assert "identity mismatch" in (await client.hello(3))["error"]["message"]
            device.id = right
        else:
            assert not (await client.hello(3, **wrong))["ok"]
    right_auth = {"deviceToken": own} if kind == "device-token" else {"token": TOKEN}
    refused = await (await join(device)).hello(3, auth=right_auth)
    assert code(refused) == "AUTH_RATE_LIMITED"
    assert refused["error"]["retryAfterMs"] > 0


async def test_pairing_requests_are_counted_too(rig: Rig, join: Join) -> None:
    limits = RateLimit(max_attempts=2)
    rig.settings = GatewaySettings(auth=GatewayAuth(token=TOKEN, rate_limit=limits))
    far = {"additional_headers": {"Host": "claw.example.org"}}
    codes = [code(await (await join(**far)).hello(3)) for _ in range(3)]
    assert codes == ["PAIRING_REQUIRED", "PAIRING_REQUIRED", "AUTH_RATE_LIMITED"]


@pytest.mark.parametrize("mode", ["token", "none"])
async def test_a_strange_web_page_is_refused_in_every_mode(rig: Rig, join: Join, mode: Any) -> None:
    rig.settings = GatewaySettings(auth=GatewayAuth(mode=mode, token=TOKEN))
    for origin, host in (("https://evil.org", "127.0.0.1"), ("http://evil.org", "evil.org")):
        client = await join(origin=origin, additional_headers={"Host": host})
        assert (await client.hello(4))["error"]["details"][
            "code"
        ] == "CONTROL_UI_ORIGIN_NOT_ALLOWED"
        await client.until(lambda c=client: c.close)
        assert client.close is not None and client.close[0] == 1008


async def test_a_configured_web_page_comes_in(rig: Rig, join: Join) -> None:
    ui = ControlUi(allowed_origins=("https://claw.example.org",))
    rig.settings = GatewaySettings(auth=GatewayAuth(token=TOKEN), control_ui=ui)
    client = await join(origin="https://claw.example.org")
    page = {"id": "openclaw-control-ui", "version": "1", "platform": "web", "mode": "webchat"}
    assert (await client.hello(4, client=page))["ok"]


async def test_without_authentication_nobody_comes_in_from_afar(rig: Rig, join: Join) -> None:
    rig.settings = GatewaySettings(auth=GatewayAuth(mode="none"))
    assert (await (await join()).hello(3, auth={}, device=None))["ok"]
    far = {"X-Forwarded-For": "127.0.0.1"}
    refused = await (await join(additional_headers=far)).hello(3, auth={}, device=None)
    assert "only programs of this host" in refused["error"]["message"]


async def test_a_trusted_proxys_user_comes_in(rig: Rig, join: Join) -> None:
    wanted = TrustedProxyAuth(user_header="X-User", allow_users=("ann",))
    auth = GatewayAuth(mode="trusted-proxy", trusted_proxy=wanted)
    rig.settings = GatewaySettings(auth=auth, trusted_proxies=("127.0.0.1",))
    proxy = {"X-Forwarded-For": "203.0.113.9"}
    good = await join(additional_headers={**proxy, "X-User": "ann"})
    assert (await good.hello(3, auth={}, device=None))["ok"]
    for headers in ({**proxy, "X-User": "bob"}, proxy):
        bad = await (await join(additional_headers=headers)).hello(3, auth={}, device=None)
        assert not bad["ok"]
    rig.settings = GatewaySettings(auth=auth)  # nobody vouches for that address
    forged = await join(additional_headers={**proxy, "X-User": "ann"})
    assert not (await forged.hello(3, auth={}, device=None))["ok"]


@pytest.mark.parametrize(
    ("client", "protocol", "scopes"),
    [
        (("cli", "cli"), 3, 5), (("cli", "cli"), 4, 5),
        (("gateway-client", "backend"), 4, 5), (("gateway-client", "ui"), 3, 5),
        (("gateway-client", "ui"), 4, 0), (("openclaw-probe", "probe"), 4, 0),
    ],
)  # fmt: skip
async def test_scopes_without_a_device_as_measured_on_real_gateways(
    rig: Rig, join: Join, client: tuple[str, str], protocol: int, scopes: int
) -> None:
    one = await join()
    who = {"id": client[0], "mode": client[1], "version": "1", "platform": "linux"}
    hello = await one.hello(protocol, client=who, device=None)
    assert hello["ok"]
    if protocol == 4:
        assert len(hello["payload"]["auth"]["scopes"]) == scopes
    assert (await one.call("sessions.list"))["ok"] is (scopes > 0)
    assert (await one.call("health"))["ok"]


_CHILD = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[2])
from tests.gateway.replay import player
async def main():
    one = await player(int(sys.argv[1]))
    hello = await one.hello(3, device=None)
    out = [hello["ok"], (await one.call("health"))["ok"], (await one.call("status"))["ok"]]
    await one.end()
    print(json.dumps(out))
asyncio.run(main())
"""


@pytest.mark.parametrize(("mark", "may"), [({"CLAW_RUN_ID": "r1"}, False), ({}, True)])
async def test_a_child_of_a_run_may_ask_for_health_only(
    rig: Rig, mark: dict[str, str], may: bool
) -> None:
    root = str(Path(__file__).parents[3])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CHILD, str(rig.gateway.port.number), root,
        env={"PATH": os.environ["PATH"], **mark}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert json.loads(out) == [True, True, may]
