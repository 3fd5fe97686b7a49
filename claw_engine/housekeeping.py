"""Small duties beside the work: hot reload, a closer watch while runs are active, idle exit.

Each is one task over the engine's public face; none is on the way of a message.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from claw_engine.agent.prompt.report import size_changes
from claw_engine.config.load import ConfigStore
from claw_engine.config.reload import (
    ConfigFileChanged,
    FileWatcher,
    WatchReport,
    WorkspaceFilesChanged,
)
from claw_engine.config.snapshot import WatchTargets
from claw_engine.errors import ClawError
from claw_engine.events import EventBus
from claw_engine.lanes import Lanes
from claw_engine.notices import NoticeBoard
from claw_engine.reloading import Reloading
from claw_engine.watchdog import LoopWatchdog
from claw_engine.world import World

log = logging.getLogger("claw.engine")

IDLE_LOOK_S = 1.0
"""Seconds between looks while the engine waits to be idle; only then does it look at all."""


FIRST_UPKEEP_S = 600.0
UPKEEP_S = 24 * 3600.0
"""Seconds between looks at the session folders."""


class Host(Protocol):
    """What housekeeping needs of the engine."""

    board: NoticeBoard
    reloading: Reloading
    begin: asyncio.Event

    @property
    def world(self) -> World: ...
    @property
    def bus(self) -> EventBus: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def config(self) -> ConfigStore: ...
    @property
    def watchdog(self) -> LoopWatchdog: ...
    @property
    def busy(self) -> bool: ...
    def workspaces(self) -> Iterable[Path]: ...
    async def tell_note(self) -> None: ...
    async def warm_up(self) -> None: ...
    async def workspace_texts(self) -> Mapping[str, str]: ...
    async def clean_up(self) -> None: ...
    def stop(self) -> None: ...
    async def idle_wanted(self) -> None: ...


class Housekeeping:
    """Use: `await start()`, …, `await stop()`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._texts: Mapping[str, str] = {}

    def start(self) -> None:
        """Begin the duties."""
        self._host.reloading.begin()
        duties: tuple[tuple[str, Coroutine[None, None, None]], ...] = (
            ("reload", self._reload()),
            ("watchdog", self._watch_closer()),
            ("idle", self._idle()),
            ("upkeep", self._upkeep()),
        )
        self._tasks = [asyncio.create_task(duty, name=name) for name, duty in duties]

    async def stop(self) -> None:
        """End the duties."""
        self._stop.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ── hot reload ──────────────────────────────────────────────────────────────────────────

    async def _reload(self) -> None:
        await self._host.begin.wait()
        # Off the start path, and before the first look: seeding the workspace is no change.
        await self._host.tell_note()
        await self._host.warm_up()
        self._texts = await self._host.workspace_texts()
        debounce = self._host.config.settings.gateway.reload.debounce_ms
        watcher = FileWatcher(self._targets, debounce_ms=debounce)
        first_look = asyncio.create_task(self._missed_nothing(watcher), name="reload first look")
        self._tasks.append(first_look)
        async for change in watcher.changes(self._stop):
            match change:
                case ConfigFileChanged():
                    await self._host.reloading.changed()
                case WorkspaceFilesChanged(paths):
                    await self._workspace_changed(paths)
                case WatchReport(code, _, text):
                    self._host.board.tell(code, "info", text)

    async def _missed_nothing(self, watcher: FileWatcher) -> None:
        """An edit between loading and the watcher's first look counts too."""
        await watcher.ready.wait()
        host = self._host
        before = host.config.current.raw_hash
        if (await host.world.disk.run(self._hash)) != before:
            await self._host.reloading.changed()

    def _hash(self) -> str:
        try:
            data = self._host.world.disk.read_bytes(self._host.config.path)
        except OSError:
            data = b""
        return hashlib.sha256(data).hexdigest()

    def _targets(self) -> WatchTargets:
        host = self._host
        return WatchTargets(host.config.current.files, tuple(host.workspaces()))

    async def _workspace_changed(self, paths: tuple[Path, ...]) -> None:
        before, self._texts = self._texts, await self._host.workspace_texts()
        said = size_changes(before, self._texts)
        if said:
            title = f"Workspace: {', '.join(said[:6])}."
            hint = "It applies to the next run. Token figures are estimated."
        else:
            names = ", ".join(path.name for path in paths[:6])
            title, hint = f"Workspace: {names} changed.", "The prompt does not change by it."
        self._host.board.tell("workspace-changed", "info", title, hint=hint)

    # ── watchdog ────────────────────────────────────────────────────────────────────────────

    async def _watch_closer(self) -> None:
        """Ask the loop more often while runs are active."""
        host, active = self._host, False
        async for _ in host.bus.subscribe("lanes", capacity=4):
            works = any(lane.active for lane in host.lanes.status())
            if works != active:
                active = works
                host.watchdog.set_active(works)

    # ── upkeep ──────────────────────────────────────────────────────────────────────────────

    async def _upkeep(self) -> None:
        """Old sessions and archives go by configuration, some time after start and then daily."""
        wait = FIRST_UPKEEP_S
        while True:
            await self._host.world.clock.sleep(wait)
            wait = UPKEEP_S
            try:
                await self._host.clean_up()
            except ClawError as error:
                log.warning("session upkeep: %s", error.sentence())

    # ── idle exit ───────────────────────────────────────────────────────────────────────────

    async def _idle(self) -> None:
        await self._host.idle_wanted()
        while self._host.busy:
            await self._host.world.clock.sleep(IDLE_LOOK_S)
        self._host.stop()
