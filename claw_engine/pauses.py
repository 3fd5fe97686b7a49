"""The pause switch and the operator's own lane widths, remembered across a restart (lanes.json).

The lanes change before the file is written: a slow or full disk must not delay a stop.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from claw_engine.config.settings import Settings
from claw_engine.errors import InvalidRequest
from claw_engine.lanes import DEFAULT_WIDTHS, Lanes
from claw_engine.paths import StateDir
from claw_engine.storage.errors import disk_error
from claw_engine.world import World

MAX_WIDTH = 1000


class Pauses:
    """Use: `await restore()` at start, then `pause`, `resume` and `configure`."""

    def __init__(self, world: World, state: StateDir, lanes: Lanes) -> None:
        self._disk = world.disk
        self._path = state.lanes_json
        self._lanes = lanes
        self._widths: dict[str, int] = {}
        self._base: dict[str, int] = {s.lane: s.width for s in lanes.status()}

    async def restore(self) -> None:
        """Pause again if the last engine was paused when it ended, with the widths it had."""
        paused, self._widths = await self._disk.run(self._read)
        for lane, width in self._widths.items():
            self._lanes.configure(lane, width)
        if paused:
            self._lanes.pause()

    async def pause(self) -> None:
        """Start nothing new. Raises StateDiskError: paused, but a restart would forget it."""
        self._lanes.pause()
        await self._keep()

    async def resume(self) -> None:
        """Go on. Raises StateDiskError: running again, but a restart would pause."""
        self._lanes.resume()
        await self._keep()

    async def configure(self, lane: str, width: int | None) -> int:
        """Set a lane's width over the configuration's; None goes back to it. The width in force.

        Raises InvalidRequest, StateDiskError.
        """
        if lane not in self._lanes.names():
            known = ", ".join(self._lanes.names())
            raise InvalidRequest(f"There is no lane {lane!r}.", hint=f"Lanes: {known}.")
        if width is None:
            self._widths.pop(lane, None)
            width = self._base.get(lane, 1)
        elif 1 <= width <= MAX_WIDTH:
            self._widths[lane] = width
        else:
            raise InvalidRequest(f"A lane's width is 1 to {MAX_WIDTH}, not {width}.")
        self._lanes.configure(lane, width)
        await self._keep()
        return width

    def apply(self, widths: Mapping[str, int]) -> None:
        """Widths of a new configuration; the operator's own stay."""
        self._base.update(widths)
        for lane, width in {**widths, **self._widths}.items():
            self._lanes.configure(lane, width)

    async def _keep(self) -> None:
        value = {"version": 1, "paused": self._lanes.paused, "widths": self._widths}
        data = json.dumps(value).encode() + b"\n"
        try:
            await self._disk.run(self._disk.replace, self._path, data)
        except OSError as error:
            raise disk_error(error, self._path) from error

    def _read(self) -> tuple[bool, dict[str, int]]:
        try:
            value = json.loads(self._disk.read_bytes(self._path))
        except (OSError, ValueError):
            return False, {}
        if not isinstance(value, dict):
            return False, {}
        raw = value.get("widths")
        widths = {
            str(lane): width
            for lane, width in (raw.items() if isinstance(raw, dict) else ())
            if type(width) is int and 1 <= width <= MAX_WIDTH
        }
        return value.get("paused") is True, widths


def lane_widths(settings: Settings) -> Mapping[str, int]:
    """Widths of the global lanes by configuration (gateway digest §4.1)."""
    defaults = settings.agents.defaults
    return {
        **DEFAULT_WIDTHS,
        "main": defaults.max_concurrent,
        "cron": settings.cron.max_concurrent_runs,
        "subagent": defaults.subagents.max_concurrent,
    }
