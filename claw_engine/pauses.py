"""The pause switch: holds the lanes at once, and remembers it across a restart.

The lanes stop before the file is written: a slow or full disk must not delay a stop.
"""

from __future__ import annotations

import json

from claw_engine.lanes import Lanes
from claw_engine.paths import StateDir
from claw_engine.storage.errors import disk_error
from claw_engine.world import World


class Pauses:
    """Use: `await restore()` at start, then `pause` and `resume`."""

    def __init__(self, world: World, state: StateDir, lanes: Lanes) -> None:
        self._disk = world.disk
        self._path = state.lanes_json
        self._lanes = lanes

    async def restore(self) -> None:
        """Pause again if the last engine was paused when it ended."""
        if await self._disk.run(self._was_paused):
            self._lanes.pause()

    async def pause(self) -> None:
        """Start nothing new. Raises StateDiskError: paused, but a restart would forget it."""
        self._lanes.pause()
        await self._keep(paused=True)

    async def resume(self) -> None:
        """Go on. Raises StateDiskError: running again, but a restart would pause."""
        self._lanes.resume()
        await self._keep(paused=False)

    async def _keep(self, *, paused: bool) -> None:
        data = json.dumps({"version": 1, "paused": paused}).encode() + b"\n"
        try:
            await self._disk.run(self._disk.replace, self._path, data)
        except OSError as error:
            raise disk_error(error, self._path) from error

    def _was_paused(self) -> bool:
        try:
            value = json.loads(self._disk.read_bytes(self._path))
        except (OSError, ValueError):
            return False
        return isinstance(value, dict) and value.get("paused") is True
