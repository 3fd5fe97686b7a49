from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

import pytest_asyncio

from claw_engine.config.settings import Settings
from claw_engine.models.base import Model, ModelError
from claw_engine.tools.base import Tool
from claw_engine.world import RealDisk
from tests.agent.bench import Bench

MakeBench = Callable[..., Awaitable[Bench]]


@pytest_asyncio.fixture
async def bench(tmp_path: Path) -> AsyncIterator[MakeBench]:
    """Makes started benches and stops them."""
    made: list[Bench] = []

    async def make(
        model: Model | ModelError,
        tools: Iterable[Tool] = (),
        *,
        settings: Settings | None = None,
        disk: RealDisk | None = None,
    ) -> Bench:
        new = Bench(tmp_path / "state", model, tools, settings=settings, disk=disk)
        made.append(new)
        await new.start()
        return new

    yield make
    for one in made:
        await one.stop()
