"""SE-09: where the port listens, and what is said when it cannot."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from claw_engine.config.sections.gateway import GatewayAuth, GatewaySettings
from claw_engine.gateway.auth.secrets import Secrets, resolve
from claw_engine.gateway.web.bind import (
    PortError,
    PortTaken,
    addresses,
    holder,
    listen,
    wanted_port,
)
from claw_engine.gateway.web.proc_net import tcp_rows
from tests.gateway.rig import Rig

TOKEN = Secrets("token", "t")


def test_only_loopback_by_default() -> None:
    assert addresses(GatewaySettings(), Secrets("token")) == ("127.0.0.1", "::1")


async def test_every_listener_of_a_gateway_is_on_loopback(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    before = {(row.inode) for row in tcp_rows() if row.state == "0A"}
    await rig.open()
    number = await rig.serve()
    try:
        rows = [r for r in tcp_rows() if r.state == "0A" and r.inode not in before]
        ours = [r for r in rows if r.port == number]
        assert 1 <= len(ours) <= 2
        with socket.socket() as probe:
            assert probe.connect_ex((_own_address(), number)) != 0
    finally:
        await rig.close()


def _own_address() -> str:
    """An address of this host that is not loopback, if it has one; else one that is nobody's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "192.0.2.1"


@pytest.mark.parametrize(
    "settings",
    [
        GatewaySettings(bind="lan"), GatewaySettings(bind="custom", custom_bind_host="0.0.0.0"),
        GatewaySettings(bind="custom", custom_bind_host="::"),
        GatewaySettings(bind="custom", custom_bind_host="192.0.2.7"),
        GatewaySettings(bind="lan", auth=GatewayAuth(mode="none", token="t")),
        GatewaySettings(bind="lan", auth=GatewayAuth(mode="password", token="t")),
    ],
)  # fmt: skip
def test_nothing_wider_without_a_secret(settings: GatewaySettings) -> None:
    with pytest.raises(PortError, match="no secret protects it"):
        addresses(settings, resolve(settings.auth, {}))


@pytest.mark.parametrize(
    ("settings", "hosts"),
    [
        (GatewaySettings(bind="lan"), ("0.0.0.0", "::")),
        (GatewaySettings(bind="custom", custom_bind_host="127.0.0.2"), ("127.0.0.2",)),
        (GatewaySettings(bind="auto"), ("127.0.0.1", "::1")),
    ],
)
def test_wider_with_one(settings: GatewaySettings, hosts: tuple[str, ...]) -> None:
    assert addresses(settings, TOKEN) == hosts


@pytest.mark.parametrize(
    "settings",
    [GatewaySettings(bind="custom"), GatewaySettings(bind="tailnet"),
     GatewaySettings(bind="custom", custom_bind_host="nas.local")],
)  # fmt: skip
def test_what_cannot_be_is_said(settings: GatewaySettings) -> None:
    with pytest.raises(PortError) as caught:
        addresses(settings, TOKEN)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("env", "named", "port"),
    [({}, None, 18789), ({"OPENCLAW_GATEWAY_PORT": "7"}, None, 7),
     ({"OPENCLAW_GATEWAY_PORT": "7"}, 8, 8), ({"OPENCLAW_GATEWAY_PORT": " "}, None, 18789)],
)  # fmt: skip
def test_which_port(env: dict[str, str], named: int | None, port: int) -> None:
    assert wanted_port(GatewaySettings(), env, named) == port


@pytest.mark.parametrize("text", ["x", "-1", "65536", "1.5"])
def test_a_variable_that_is_no_port(text: str) -> None:
    with pytest.raises(PortError):
        wanted_port(GatewaySettings(), {"OPENCLAW_GATEWAY_PORT": text}, None)


def test_a_taken_port_names_its_holder() -> None:
    (sock,) = listen(("127.0.0.1",), 0)
    with sock:
        port = sock.getsockname()[1]
        with pytest.raises(PortTaken) as caught:
            listen(("127.0.0.1", "::1"), port)
        assert f"Port {port} on 127.0.0.1 is taken by" in caught.value.title
        assert f"(pid {os.getpid()})" in caught.value.title
        assert caught.value.details["pid"] == os.getpid()
        assert "gateway.port" in caught.value.hint  # the console has no --port
        assert "--port of `claw gateway run`" in caught.value.hint
        found = holder(port)
        assert found is not None
        assert found[0] == os.getpid()
    assert holder(port) is None


def test_both_families_share_one_number() -> None:
    sockets = listen(("127.0.0.1", "::1"), 0)
    try:
        assert len({sock.getsockname()[1] for sock in sockets}) == 1
    finally:
        for sock in sockets:
            sock.close()
