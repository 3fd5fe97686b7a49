"""The configuration's file without an engine: looked at, and changed by the same rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from claw_engine.config.load import ConfigStore
from claw_engine.config.problems import ConfigError
from claw_engine.config.redact import Redactor
from claw_engine.config_desk import ConfigDesk, issue
from claw_engine.errors import InvalidRequest
from claw_engine.paths import StateDir
from claw_engine.world import real_world

Json = Mapping[str, object]


def look(where: Path, env: Mapping[str, str]) -> Json:
    """As `config.get` answers; of a file that cannot be used only what is wrong."""
    world = real_world()
    store = ConfigStore(world, StateDir(where), env)

    async def ask() -> Json:
        reading = await store.look()
        if reading.settings is None:
            redactor = Redactor()
            fatal = [issue(p, redactor) for p in reading.problems if p.fatal]
            rest = [issue(p, redactor) for p in reading.problems if not p.fatal]
            return {"path": str(store.path), "exists": reading.present, "valid": False,
                    "config": {}, "issues": fatal, "warnings": rest}  # fmt: skip
        return await ConfigDesk(store).snapshot()

    return asyncio.run(ask())


def write(where: Path, env: Mapping[str, str], change: Callable[[Json], str]) -> Json:
    """Change the file. Raises InvalidRequest, ConfigError."""
    world = real_world()
    state = StateDir(where)
    state.ensure()
    store = ConfigStore(world, state, env)

    async def do() -> Json:
        desk = ConfigDesk(store)
        try:
            store.load()
        except ConfigError as error:
            raise InvalidRequest(error.title, hint=error.hint) from error
        found = await desk.snapshot()
        base = found["hash"] if found["exists"] else None
        await desk.replace(change(found), str(base) if base else None, restarts=False)
        return found

    return asyncio.run(do())
