"""A gateway with its port open, and players that hang up when their test ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.replay import Device, Player, player
from tests.gateway.rig import Rig

Join = Callable[..., Awaitable[Player]]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path, soft_limit=200_000, port_hard_limit=400_000)
    await made.open()
    await made.serve()
    yield made
    await made.close()


@pytest.fixture
async def join(rig: Rig) -> AsyncIterator[Join]:
    """`await join(device=…, headers={…})`: a connected player, not yet introduced."""
    players: list[Player] = []

    async def make(device: Device | None = None, **kwargs: Any) -> Player:
        assert rig.gateway.port.number is not None
        headers = kwargs.get("additional_headers", {})
        if "Host" in headers:
            kwargs["name"] = headers["Host"]
            kwargs["additional_headers"] = {k: v for k, v in headers.items() if k != "Host"}
        players.append(await player(rig.gateway.port.number, device, **kwargs))
        return players[-1]

    yield make
    for one in players:
        await one.end()
