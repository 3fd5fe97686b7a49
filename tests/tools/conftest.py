from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from claw_engine.world import RealClock, RealDisk, RealIds, RealSpawn, World
from tests.tools.desk import Desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    disk = RealDisk()
    made = Desk(tmp_path, World(RealClock(), RealIds(), disk, RealSpawn()))
    await made.broker.start()
    await made.rules.load()
    yield made
    await made.table.close()
    await made.broker.close()
    disk.close()
