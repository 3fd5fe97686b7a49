"""The client of a gateway elsewhere, against our own port and against servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from claw_engine.client.base import CLIENT_STATE_EVENT, ClientError, ConnectionLost
from claw_engine.client.device import DeviceError, load_device
from claw_engine.client.foreign import ForeignClient
from claw_engine.client.gateways import Address, Gateways, parse_address
from claw_engine.client.websocket import (
    AuthNeeded,
    NoGateway,
    NotAGateway,
    Secret,
    WebSocketClient,
)
from claw_engine.engine import Engine
from claw_engine.gateway.auth import proof
from claw_engine.gateway.validate import ConnectParams, check
from claw_engine.protocol.names import Scope
from tests.support.engines import PLAIN_ENV

TOKEN = "a-token-of-the-test-0123456789"


class Place:
    """Where a client keeps its things, and clients that are closed at the end."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.gateways = Gateways(root / "client" / "gateways.json")
        self.made: list[WebSocketClient] = []

    def client(self, where: Address, token: str = "", **more: Any) -> WebSocketClient:
        device = load_device(self.root / "client" / "device.json")
        client = WebSocketClient(where, device, self.gateways, Secret(token), **more)
        self.made.append(client)
        return client


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    yield made
    for client in made.made:
        await client.close()


@contextlib.asynccontextmanager
async def gateway(root: Path, port: int = 0) -> AsyncIterator[tuple[Engine, Address]]:
    """Our engine with its port open."""
    state = root / "state"
    state.mkdir(exist_ok=True)
    (state / "openclaw.json").write_text(json.dumps({"gateway": {"auth": {"token": TOKEN}}}))
    env = {**PLAIN_ENV, "HOME": str(root)}
    async with Engine(state, env=env, mode="headless", listen=True, port=port) as engine:
        await engine.listening.served()
        yield engine, parse_address(f"ws://127.0.0.1:{engine.port}")


async def test_a_token_once_then_the_device(tmp_path: Path, place: Place) -> None:
    async with gateway(tmp_path) as (_, where):
        with pytest.raises(AuthNeeded) as missing:
            await place.client(where).connect()
        assert "--token" in missing.value.hint
        with pytest.raises(AuthNeeded):
            await place.client(where, "wrong").connect()
        first = place.client(where, TOKEN)
        hello = await first.connect()
        assert hello["protocol"] == 4 and first.connected
        assert place.gateways.device_token(where)
        again = place.client(where)
        await again.connect()
        assert (await again.call("health"))["ok"] is True


async def test_a_turn_and_its_trace(tmp_path: Path, place: Place) -> None:
    async with gateway(tmp_path) as (_, where):
        client = ForeignClient(place.client(where, TOKEN))
        await client.connect()
        await client.call("trace.subscribe", {})
        sent = {"sessionKey": "main", "message": "hello", "idempotencyKey": "k1"}
        assert (await client.call("chat.send", sent))["status"] == "started"
        seen = []
        async with asyncio.timeout(20):
            async for frame in client.events():
                payload = frame.payload
                if frame.event == "trace" and isinstance(payload, dict):
                    seen.append(payload["kind"])
                    if payload["kind"] == "run.ended":
                        break
        assert seen[0] == "run.queued" and "text" in seen


async def test_reading_only(tmp_path: Path, place: Place) -> None:
    async with gateway(tmp_path) as (_, where):
        client = place.client(where, TOKEN, scopes=(Scope.READ,))
        await client.connect()
        await client.call("sessions.list", {})
        with pytest.raises(ClientError) as caught:
            sent = {"sessionKey": "main", "message": "hello", "idempotencyKey": "k1"}
            await client.call("chat.send", sent)
        assert caught.value.title.startswith("missing scope")


async def test_a_gateway_that_goes_and_comes_back(tmp_path: Path, place: Place) -> None:
    async with gateway(tmp_path) as (_, where):
        client = place.client(where, TOKEN)
        await client.connect()
        events = client.events()
    states = []
    async with asyncio.timeout(20):
        async for frame in events:
            if frame.event == CLIENT_STATE_EVENT and isinstance(frame.payload, dict):
                states.append(frame.payload["state"])
                if frame.payload["state"] == "disconnected":
                    break
    assert states == ["connected", "disconnected"]
    with pytest.raises(ConnectionLost):
        await client.call("health")
    with pytest.raises(NoGateway) as nobody:
        await client.connect()
    assert "ssh -L" in nobody.value.hint
    async with gateway(tmp_path, where.port):
        await client.connect()
        assert (await client.call("health"))["ok"] is True


def test_the_proof_is_one_our_gateway_takes(tmp_path: Path) -> None:
    device = load_device(tmp_path / "device.json")
    assert load_device(tmp_path / "device.json") == device
    client = {"id": "gateway-client", "mode": "ui", "version": "1", "platform": "linux"}
    shown = device.prove(client, ["operator.read"], "tok", "nonce", 1000)
    raw = {
        "minProtocol": 3, "maxProtocol": 4, "client": client, "role": "operator",
        "scopes": ["operator.read"], "auth": {"token": "tok"}, "device": shown,
    }  # fmt: skip
    params = check("connect", ConnectParams, raw)
    assert params.device is not None
    assert proof.fault(params, params.device, "nonce", 1000) == ""
    assert proof.fault(params, params.device, "other", 1000) == "device-nonce-mismatch"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"privateKeyPem": "x"}', '{"privateKeyPem": 5}'])
def test_a_damaged_key_is_not_replaced_in_silence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "device.json"
    file.write_text(text)
    with pytest.raises(DeviceError) as caught:
        load_device(file)
    assert str(file) in caught.value.title and caught.value.hint
    assert file.read_text() == text


# ── servers that are no gateway, or a bad one ───────────────────────────────────────────────


@contextlib.asynccontextmanager
async def server(
    answer: Callable[[ServerConnection], Awaitable[None]],
) -> AsyncIterator[Address]:
    async with serve(answer, "127.0.0.1", 0, compression=None) as made:
        yield parse_address(f"ws://127.0.0.1:{made.sockets[0].getsockname()[1]}")


CHALLENGE = json.dumps({"type": "event", "event": "connect.challenge",
                        "payload": {"nonce": "n", "ts": 5}})  # fmt: skip


@pytest.mark.parametrize("first", ["", "hello", "{}", '{"type":"event","event":"x"}', "[1]"])
async def test_other_programs_get_no_secret(place: Place, first: str) -> None:
    got: list[object] = []

    async def answer(ws: ServerConnection) -> None:
        await ws.send(first)
        with contextlib.suppress(Exception):
            got.append(await ws.recv())

    async with server(answer) as where:
        with pytest.raises((NotAGateway, ConnectionLost)):
            await place.client(where, "secret").connect()
    assert got == []
    assert not place.gateways.known(where)


async def test_a_redirect_is_not_followed(place: Place) -> None:
    """A token goes to the address it was given for."""
    async with server(lambda ws: ws.wait_closed()) as there:

        async def serve_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {there.url}\r\n\r\n".encode())
            writer.close()

        made = await asyncio.start_server(serve_once, "127.0.0.1", 0)
        async with made:
            port = made.sockets[0].getsockname()[1]
            with pytest.raises(NotAGateway) as caught:
                await place.client(parse_address(f"ws://127.0.0.1:{port}"), "secret").connect()
    assert "302" in caught.value.title


async def test_a_token_that_was_revoked_is_forgotten(place: Place) -> None:
    async def answer(ws: ServerConnection) -> None:
        await ws.send(CHALLENGE)
        frame = json.loads(await ws.recv())
        assert frame["params"]["auth"] == {"token": "old"}
        error = {"code": "INVALID_REQUEST", "message": "unauthorized: device token mismatch",
                 "details": {"code": "AUTH_DEVICE_TOKEN_MISMATCH"}}  # fmt: skip
        await ws.send(json.dumps({"type": "res", "id": "connect", "ok": False, "error": error}))
        await ws.close(1008)

    async with server(answer) as where:
        place.gateways.remember(where, "old")
        with pytest.raises(AuthNeeded):
            await place.client(where).connect()
        assert place.gateways.device_token(where) == ""


async def test_odd_frames_do_not_end_a_connection(place: Place) -> None:
    """Kinds we do not know, broken surrogates and answers nobody asked for are left out."""

    async def answer(ws: ServerConnection) -> None:
        await ws.send(CHALLENGE)
        await ws.recv()
        await ws.send(json.dumps({"type": "res", "id": "connect", "ok": True, "payload": {}}))
        for odd in (
            '{"type":"news"}', '{"type":"res","id":"77","ok":true}', "{}", "[]",
            '{"type":"event","event":"x","payload":{"text":"\\ud800"},"seq":1}',
            '{"type":"event","event":"last","seq":3}',
        ):  # fmt: skip
            await ws.send(odd)
        await ws.wait_closed()

    async with server(answer) as where:
        client = place.client(where, "t")
        await client.connect()
        names, reasons = [], []
        async for frame in client.events():
            names.append(frame.event)
            if isinstance(frame.payload, dict):
                reasons.append(frame.payload.get("reason"))
            if frame.event == "last":
                break
    assert names == [CLIENT_STATE_EVENT, "x", CLIENT_STATE_EVENT, "last"]
    assert reasons[-1] == "resync"  # number 2 never came


async def test_a_port_that_never_speaks(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as quiet:
        where = parse_address(f"ws://127.0.0.1:{quiet.getsockname()[1]}")
        connecting = asyncio.create_task(place.client(where).connect())
        accepted, _ = await asyncio.to_thread(quiet.accept)
        accepted.close()
        with pytest.raises((NotAGateway, NoGateway)):
            await connecting


@pytest.mark.parametrize(
    ("text", "told"), [("\ud800", "not valid Unicode"), ("é" * 7_000_000, "larger than 25 MB")]
)
async def test_text_that_cannot_be_sent_is_refused_and_breaks_nothing(
    tmp_path: Path, place: Place, text: str, told: str
) -> None:
    """Half a surrogate pair is the gateway's to refuse; bytes count, not characters."""
    async with gateway(tmp_path) as (_, where):
        client = place.client(where, TOKEN)
        await client.connect()
        sent = {"sessionKey": "main", "message": text, "idempotencyKey": "k"}
        with pytest.raises(ClientError, match=told):
            await client.call("chat.send", sent)
        assert client.connected


def test_secrets_do_not_print(place: Place) -> None:
    shown = repr(Secret("hush", "hush")) + repr(load_device(place.root / "d.json"))
    assert "hush" not in shown and "PRIVATE" not in shown
