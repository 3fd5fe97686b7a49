"""The permission mode in force: chosen by configuration, switched by the operator.

A switch survives a restart, except to `full`: that one ends by itself after an hour at most and
never outlives the engine. Knows the word and the time; what a mode allows is the policy's.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from claw_engine.approvals.policy import PermissionMode
from claw_engine.errors import InvalidRequest
from claw_engine.events import Event, Notice
from claw_engine.storage.errors import disk_error
from claw_engine.world import Timer, World

log = logging.getLogger("claw.approvals")

FULL_MS = 60 * 60_000
"""Longest time without any question (design: one hour)."""

_CODE = "permission-mode"
_MEANING = {
    PermissionMode.LOOK: "No commands, no writes.",
    PermissionMode.GUARDED: "Commands that no rule covers ask, so do files outside the workspace.",
    PermissionMode.WORKSPACE: "Commands run unasked where they can be confined to the workspace.",
    PermissionMode.FULL: "Nothing asks.",
}


_STRICTEST_FIRST = tuple(PermissionMode)
_SESSION_WORDS = {"read-only": PermissionMode.LOOK}


def at_most(mode: PermissionMode, word: object) -> PermissionMode:
    """The engine's mode, or the stricter one that a session asks for (`permissionMode`)."""
    if not isinstance(word, str) or not word:
        return mode
    try:
        wanted = _SESSION_WORDS.get(word) or PermissionMode(word)
    except ValueError:
        return mode
    return min(mode, wanted, key=_STRICTEST_FIRST.index)


class ModeSwitch:
    """Loop thread only. Use: `await load(configured)`, `mode`, `switch`, at the end `close`."""

    def __init__(self, world: World, publish: Callable[[Event], None], path: Path) -> None:
        self._world = world
        self._publish = publish
        self._path = path
        self._configured = PermissionMode.GUARDED
        self._chosen: PermissionMode | None = None
        self._full_until_ms: int | None = None
        self._timer: Timer | None = None

    def mode(self) -> PermissionMode:
        """The mode at this moment."""
        until = self._full_until_ms
        if until is not None and self._world.clock.now_ms() < until:
            return PermissionMode.FULL
        return self._lasting

    @property
    def full_until_ms(self) -> int | None:
        """When `full` ends (wall time), None in any other mode."""
        return self._full_until_ms if self.mode() is PermissionMode.FULL else None

    @property
    def _lasting(self) -> PermissionMode:
        return self._chosen or self._configured

    async def load(self, configured: str) -> None:
        """The mode of the configuration, or the one switched to before the last end."""
        self._configured = _lasting_one(configured)
        try:
            data = await self._world.disk.run(self._world.disk.read_bytes, self._path)
            chosen = PermissionMode(json.loads(data)["mode"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        self._chosen = _lasting_one(chosen)

    def configure(self, configured: str) -> None:
        """The configuration names another mode: it counts, also over an earlier switch."""
        wanted = _lasting_one(configured)
        if wanted is not self._configured:
            self._configured, self._chosen = wanted, None
            self._tell(f"The configuration chose permission mode {wanted.value}.")

    async def switch(self, mode: PermissionMode, ttl_ms: int | None = None) -> None:
        """Change the mode now. `ttl_ms` belongs to `full` and is an hour at most.

        What allows more is on the disk before it holds; what allows less holds at once. Raises
        InvalidRequest for a time with another mode, StateDiskError when it cannot be kept: then a
        wider mode does not hold, and a stricter one holds until the engine ends.
        """
        if ttl_ms is not None and mode is not PermissionMode.FULL:
            raise InvalidRequest("ttlMs belongs to the mode full")
        wider = _STRICTEST_FIRST.index(mode) > _STRICTEST_FIRST.index(self.mode())
        if wider and mode is not PermissionMode.FULL:
            await self._keep_on_disk(mode)
        self._stop_timer()
        self._full_until_ms = None
        if mode is PermissionMode.FULL:
            ttl = min(ttl_ms or FULL_MS, FULL_MS)
            self._full_until_ms = self._world.clock.now_ms() + ttl
            self._timer = self._world.clock.call_later(ttl / 1000, self._expired)
        else:
            self._chosen = mode
        log.info("permission mode: %s", mode.value)
        self._tell(f"Permission mode {mode.value}.")
        if not wider and mode is not PermissionMode.FULL:
            await self._keep_on_disk(mode)

    def close(self) -> None:
        self._stop_timer()

    async def _keep_on_disk(self, mode: PermissionMode) -> None:
        try:
            await self._world.disk.run(self._keep, mode)
        except OSError as error:
            raise disk_error(error, self._path) from error

    def _keep(self, mode: PermissionMode) -> None:
        self._world.disk.mkdir(self._path.parent)
        self._world.disk.replace(self._path, json.dumps({"mode": mode.value}).encode())

    def _expired(self) -> None:
        self._full_until_ms = None
        log.info("permission mode: full is over, %s again", self._lasting.value)
        self._tell(f"Permission mode full is over: {self._lasting.value} again.")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self, title: str) -> None:
        mode, until = self.mode(), self.full_until_ms
        text = _MEANING[mode]
        if until is not None:
            at = datetime.fromtimestamp(until / 1000).astimezone()
            text = f"Nothing asks until {at:%H:%M}."
        now = self._world.clock.now_ms()
        full = mode is PermissionMode.FULL
        if not full:
            self._publish(Notice(_CODE, "clear", "", ts=now))
        level = "warn" if full else "info"
        self._publish(Notice(_CODE, level, title, "claw mode switches it.", text, full, now))


def _lasting_one(mode: str) -> PermissionMode:
    """`full` cannot be a lasting choice: guarded instead."""
    wanted = PermissionMode(mode)
    return PermissionMode.GUARDED if wanted is PermissionMode.FULL else wanted
