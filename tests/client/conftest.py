"""One suite, two clients: in process (strict) and over the door's real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from claw_engine.client.base import Client
from claw_engine.client.local import LocalClient
from claw_engine.client.remote import RemoteClient
from claw_engine.protocol.names import ALL_SCOPES, Scope
from tests.gateway.rig import Rig

MakeClient = Callable[..., Client]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path)
    await made.open()
    yield made
    await made.close()


@pytest.fixture(params=["local", "remote"])
async def make_client(request: pytest.FixtureRequest, rig: Rig) -> AsyncIterator[MakeClient]:
    clients: list[Client] = []

    def make(
        scopes: frozenset[Scope] = ALL_SCOPES, caps: tuple[str, ...] = ("trace", "tool-events")
    ) -> Client:
        client: Client
        if request.param == "local":
            client = LocalClient(rig.gateway, strict=True, scopes=scopes, caps=caps)
        else:
            client = RemoteClient(rig.state_dir.root, scopes=scopes, caps=caps)
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.close()


@pytest.fixture
async def client(make_client: MakeClient) -> Client:
    made = make_client()
    await made.connect()
    return made
