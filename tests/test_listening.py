"""The engine's port: the token of the first start, and what happens when the port is taken."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from pathlib import Path

import pytest

from claw_engine.engine import Engine
from claw_engine.gateway.web.bind import PortTaken
from claw_engine.world import RealDisk, World, real_world
from tests.support.engines import PLAIN_ENV

CONFIG = """{
  // mine
  agents: { defaults: { workspace: "./w" }, }, /* end */
}
"""


def engine(state: Path, **kwargs: object) -> Engine:
    env = {**PLAIN_ENV, "HOME": str(state)}
    kwargs = {"mode": "headless", "port": 0, "env": env, **kwargs}
    return Engine(state, listen=True, drain_s=0.1, **kwargs)  # type: ignore[arg-type]  # a table


async def test_the_first_start_makes_a_token_and_keeps_comments(tmp_path: Path) -> None:
    config = tmp_path / "openclaw.json"
    config.write_text(CONFIG)
    config.chmod(0o644)
    async with engine(tmp_path) as first:
        await first.listening.served()
        token = first.settings().gateway.auth.token
        assert token is not None and len(token) >= 43
    text = config.read_text()
    assert "// mine" in text and "/* end */" in text and token in text
    assert config.stat().st_mode & 0o777 == 0o600
    async with engine(tmp_path) as second:
        await second.listening.served()
        assert second.settings().gateway.auth.token == token
    assert config.read_text() == text


@pytest.mark.parametrize(
    ("config", "env"),
    [
        ({"gateway": {"auth": {"password": "p"}}}, {}),
        ({"gateway": {"auth": {"mode": "none"}}}, {}),
        ({}, {"OPENCLAW_GATEWAY_TOKEN": "from-outside"}),
    ],
)
async def test_no_token_is_made_where_another_way_is_chosen(
    tmp_path: Path, config: dict[str, object], env: dict[str, str]
) -> None:
    path = tmp_path / "openclaw.json"
    path.write_text(json.dumps(config))
    async with engine(tmp_path, env={**PLAIN_ENV, "HOME": str(tmp_path), **env}) as running:
        await running.listening.served()
        assert running.port
    assert json.loads(path.read_text()) == config


async def test_a_taken_port_ends_a_headless_start_and_not_a_consoles(tmp_path: Path) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"Port {port} on 127\.0\.0\.1 is taken by .+ \(pid "):
            async with engine(tmp_path, port=port):
                pytest.fail("started")
        async with engine(tmp_path, port=port, mode="embedded") as console:
            assert console.port is None
            (notice,) = [n for n in console.notices() if n["code"] == "port"]
            assert str(port) in str(notice["title"])
            assert "local door" in str(notice["hint"])
            client = console.local_client(strict=True)
            await client.connect()
            assert (await client.call("health"))["ok"]
            await client.close()


class _NoConfig(RealDisk):
    """Cannot write the configuration."""

    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        if path.name == "openclaw.json":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        super().replace(path, data, mode=mode)


async def test_a_token_that_cannot_be_stored_is_said_and_nobody_comes_in(tmp_path: Path) -> None:
    real = real_world()
    world = World(real.clock, real.ids, _NoConfig(), real.spawn)
    async with engine(tmp_path, world=world) as running:
        await running.listening.served()
        (notice,) = [n for n in running.notices() if n["code"] == "port"]
        assert "gateway.auth.token cannot be stored" in str(notice["title"])
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", running.port or 0)) != 0


async def test_the_lock_names_the_port(tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        assert json.loads((tmp_path / "gateway.lock").read_text())["port"] == running.port


async def test_what_is_done_ahead_waits_for_the_first_frame(tmp_path: Path) -> None:
    begin = asyncio.Event()
    async with engine(tmp_path, mode="embedded", begin=begin) as running:
        client = running.local_client(strict=True)
        await client.connect()
        assert (await client.call("health"))["ok"]
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        await writer.drain()
        assert running.settings().gateway.auth.token is None
        assert not (tmp_path / "workspace").exists()
        begin.set()
        assert (await reader.read()).startswith(b"HTTP/1.1 200")  # it waited in the backlog
        assert running.settings().gateway.auth.token
        writer.close()
        await client.close()
