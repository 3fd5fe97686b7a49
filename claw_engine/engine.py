"""The composition root: builds the rooms in order, owns their tasks, stops them in order.

    async with Engine(state_dir) as engine:
        client = engine.local_client()

Starting takes the state directory's lock; two engines never share one directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import socket
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from claw_engine import __version__
from claw_engine.client.local import LocalClient
from claw_engine.config.load import ConfigStore, Reloaded
from claw_engine.config.redact import Redactor
from claw_engine.config.settings import Settings
from claw_engine.errors import ClawError
from claw_engine.events import EventBus
from claw_engine.gateway.gateway import Gateway
from claw_engine.housekeeping import Housekeeping
from claw_engine.lanes import Lanes
from claw_engine.listening import Listening
from claw_engine.logs import Logs, level_number, start_logs
from claw_engine.notices import NoticeBoard, problem_notices
from claw_engine.paths import StateDir
from claw_engine.probes import Found
from claw_engine.protocol.names import ALL_SCOPES, Scope
from claw_engine.reloading import Reloading
from claw_engine.restarts import DRAIN_S as RESTART_DRAIN_S
from claw_engine.restarts import EXPECTED_MS, Restarts, leave_note, quiet, take_note
from claw_engine.rooms import Rooms
from claw_engine.storage.locks import Lock
from claw_engine.tenancy import EngineHeld, ForeignState, move_in
from claw_engine.watchdog import LoopWatchdog
from claw_engine.world import RealDisk, World, real_world

__all__ = ["Engine", "EngineHeld", "ForeignState"]

log = logging.getLogger("claw.engine")

Mode = Literal["embedded", "headless"]

DRAIN_S = 2.0
"""Seconds that runs get to end by themselves when the engine stops."""


class Engine:
    """One engine on one state directory. `env` is the process environment; it is not changed.

    With `listen` it opens the network port: `port`, else as configured. With `restarts` there is
    somebody who starts the next engine when this one ends for a restart (`restarting`).
    What is only done ahead of need (serving the port that was taken, the first call's client,
    the watch on files) waits for `begin`, if there is one: a console paints its first frame first.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        mode: Mode = "embedded",
        env: Mapping[str, str] | None = None,
        world: World | None = None,
        drain_s: float = DRAIN_S,
        listen: bool = False,
        port: int | None = None,
        restarts: Restarts | None = None,
        begin: asyncio.Event | None = None,
    ) -> None:
        self.state = StateDir(state_dir.absolute())
        self.env = dict(os.environ if env is None else env)
        self._world = world or real_world()
        self._own_world = world is None
        self._mode: Mode = mode
        self._drain_s = drain_s
        self._listen = listen
        self._named_port = port
        self._restarts = restarts
        self._hurry = asyncio.Event()
        self.restarting = False
        """Whether it ends, or has ended, so that the next one starts."""
        self._lock: Lock | None = None
        self._logs: Logs | None = None
        self._started_ms = self._world.clock.now_ms()
        self._stopping = asyncio.Event()
        self._idle_wanted = asyncio.Event()
        self.begin = begin or asyncio.Event()
        if begin is None:
            self.begin.set()
        self._watchdog = LoopWatchdog()
        self._close = contextlib.AsyncExitStack()
        self._opening = False
        self.door_path: Path | None = None
        self.port: int | None = None
        """The network port that was taken."""

    # ── life ────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        """Start. Raises EngineHeld, ForeignState, ConfigError, StateDiskError, DoorError."""
        try:
            await self._start()
        except BaseException:
            await asyncio.shield(self._undo())
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        # Whatever cancels us, the writers are flushed and the lock is given back.
        await asyncio.shield(self._stop())

    async def _start(self) -> None:
        world, state = self._world, self.state
        self._lock = move_in(state, world.clock.now_ms(), self._description())
        self._config = ConfigStore(world, state, self.env)
        loaded = self._config.load()
        settings = loaded.settings
        self._logs = start_logs(
            state.logs_dir,
            level=level_number(settings.logging.level, self.env),
            redact=_redactor(settings).text,
            max_file_bytes=settings.logging.max_file_bytes,
        )
        self._bus = EventBus()
        self.board = NoticeBoard(world.clock, self._bus)
        self._rooms = Rooms(world, state, self._config, self._bus, self.board, self.env)
        self.gateway = Gateway(
            world, self._rooms.parts(self, self._settle), state, self.env,
            publish=self.board.publish, settings=lambda: self._config.settings.gateway,
        )  # fmt: skip
        self.listening = Listening(
            world,
            self.gateway.port,
            self._config,
            self.board,
            self.apply,
            needed=self._mode == "headless",
            begin=self.begin,
        )
        self.reloading = Reloading(self)
        self._rooms.probes.add("gateway", self._look_at_gateway)
        self._housekeeping = Housekeeping(self)

        self._close.push_async_callback(self._rooms.close)
        self._close.push_async_callback(self._say_goodbye)
        self.gateway.start()
        for notice in problem_notices(loaded):
            self.board.publish(notice)
        self._opening = True
        if self._listen:
            self.port = self.listening.bind(self._named_port)
        await self._rooms.open()
        self.door_path = await self.gateway.open_door()
        self._lock.describe(self._description())
        self._watchdog.start()
        self._housekeeping.start()
        self._close.push_async_callback(self._housekeeping.stop)
        self._close.push_async_callback(self.listening.stop)
        # What was loaded lives as long as we do; the collector need not look at it again. It is
        # off while a command starts.
        gc.freeze()
        if self._mode == "headless":
            gc.enable()
        log.info(
            "engine ready: pid=%d mode=%s stateDir=%s door=%s port=%s",
            os.getpid(), self._mode, state.root, self.door_path, self.port,
        )  # fmt: skip
        self.listening.start()
        if self._restarts is not None:
            self._close.callback(self._restarts.detach)
            self._restarts.attach(self._rooms.runs, self._bus, self._end_for_restart)

    async def _look_at_gateway(self) -> Sequence[Found]:
        from claw_engine.gateway.probe import look  # only for whoever asks

        return await look(self.gateway, self.settings().gateway, self.reloading.waits)

    async def tell_note(self) -> None:
        """Say why the engine before this one ended, if it left word."""
        note = await self._world.disk.run(take_note, self._world.disk, self.state.restart_note)
        if note is not None:
            said = str(note.get("message") or "")
            self.board.tell("restarted", "info", "The engine has restarted.", text=said)
            log.info("restarted: kind=%s message=%s", note.get("kind"), said)

    async def _say_goodbye(self) -> None:
        if self.restarting:
            await self.gateway.close("gateway restarting", EXPECTED_MS)
        else:
            await self.gateway.close("gateway stopping")

    async def _undo(self) -> None:
        """Close in reverse what a failed start has opened: recovered runs may go on already."""
        try:
            if self._opening:
                await self._rooms.stop(0.0)
            await self._close.aclose()
        except (ClawError, OSError) as error:  # what made the start fail is what is told
            log.warning("after a failed start: %s", error)
        finally:
            self._release()

    async def _stop(self) -> None:
        log.info("engine stop: mode=%s", self._mode)
        try:
            # The order of the house: intake, drain, abort, clients, writers, lock.
            if self.restarting:
                # What has not begun waits for the next engine, in the journal.
                self._rooms.lanes.pause()
                await quiet(
                    self._rooms.runs, self._bus, self._world.clock, RESTART_DRAIN_S, self._hurry
                )
                await self._rooms.stop(0.0)
            else:
                await self._rooms.stop(self._drain_s)
            await self._close.aclose()
        finally:
            self._release()

    def _release(self) -> None:
        gc.unfreeze()  # what was frozen at start may go now
        self._watchdog.close()
        if self._logs is not None:
            self._logs.close()
            self._logs = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._own_world and isinstance(self._world.disk, RealDisk):
            self._world.disk.close()

    def _description(self) -> Mapping[str, object]:
        return {
            "startedAt": self._started_ms,
            "host": socket.gethostname(),
            "mode": self._mode,
            "version": __version__,
            "door": str(self.door_path) if self.door_path else None,
            "port": self.port,
        }

    # ── what others use ─────────────────────────────────────────────────────────────────────

    def settings(self) -> Settings:
        """The newest configuration."""
        return self._config.settings

    def local_client(
        self, *, strict: bool = False, mode: str = "ui", scopes: Iterable[Scope] = ALL_SCOPES
    ) -> LocalClient:
        """A client in this process; `mode` "ui" counts as the console, "cli" as `claw`."""
        return LocalClient(self.gateway, strict=strict, mode=mode, scopes=scopes)

    async def wait_stopped(self) -> None:
        """Wait until somebody asked the engine to stop."""
        await self._stopping.wait()

    async def idle_wanted(self) -> None:
        """Wait until somebody asked the engine to stop once nothing needs it."""
        await self._idle_wanted.wait()

    @property
    def busy(self) -> bool:
        """Whether a run, a client or a command in the background still needs the engine."""
        return self._rooms.busy or bool(self.gateway.broadcaster.peers)

    # ── HostPort: what the gateway says about us ────────────────────────────────────────────

    @property
    def version(self) -> str:
        return __version__

    @property
    def state_dir(self) -> str:
        return str(self.state.root)

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        """An embedded engine whose console has gone is headless."""
        self._mode = mode
        if self._lock is not None:
            self._lock.describe(self._description())

    @property
    def started_ms(self) -> int:
        return self._started_ms

    @property
    def permission_mode(self) -> str:
        return self._rooms.permission.mode().value

    @property
    def bypass_warning(self) -> str | None:
        return self._rooms.keeper.warning

    def notices(self) -> Sequence[Mapping[str, object]]:
        return self.board.current()

    def stop(self, when: Literal["now", "idle"] = "now") -> None:
        """Ask the engine to stop, also one that is about to restart; returns at once."""
        if when == "now":
            self.restarting = False
            self._hurry.set()
        (self._stopping if when == "now" else self._idle_wanted).set()

    @property
    def restartable(self) -> bool:
        """Whether somebody starts the next engine in this process."""
        return self._restarts is not None

    def restart(self, reason: str, delay_ms: int = 0) -> Mapping[str, object]:
        """Restart in this process once runs have had their time; what becomes of it."""
        if self._restarts is None:
            return {"ok": False, "reason": "this engine belongs to a console: restart that"}
        return self._restarts.request(reason, delay_ms)

    def _settle(self, outcome: Reloaded, restarts: bool) -> None:
        self.reloading.settle(outcome, restarts=restarts)

    def leave_note(self, payload: Mapping[str, object]) -> Awaitable[None]:
        """What the next engine is to say. Raises OSError."""
        return self._world.disk.run(leave_note, self._world.disk, self.state.restart_note, payload)

    def _end_for_restart(self, reason: str) -> None:
        log.info("restarting: %s", reason)
        self.restarting = True
        self._stopping.set()

    # ── what housekeeping works on ──────────────────────────────────────────────────────────

    @property
    def world(self) -> World:
        return self._world

    @property
    def config(self) -> ConfigStore:
        return self._config

    @property
    def bus(self) -> EventBus:
        return self._bus

    @property
    def lanes(self) -> Lanes:
        return self._rooms.lanes

    @property
    def watchdog(self) -> LoopWatchdog:
        return self._watchdog

    def workspaces(self) -> Iterable[Path]:
        """Workspace folders of all configured agents."""
        return dict.fromkeys(self._rooms.workspace(agent) for agent in self._rooms.agents())

    async def warm_up(self) -> None:
        """Do ahead of the first message what it would otherwise wait for; never raises."""
        await self._rooms.warm_up()

    async def workspace_texts(self) -> Mapping[str, str]:
        """Each workspace file as the prompt has it."""
        return await self._rooms.workspace_texts()

    async def clean_up(self) -> None:
        """Upkeep of the session folders."""
        await self._rooms.clean_up()

    def apply(self, settings: Settings) -> None:
        """Put a new configuration in force where it is not read on use anyway."""
        self._rooms.apply(settings)
        if self._logs is not None:
            self._logs.set_redact(_redactor(settings).text)
            self._logs.set_level(level_number(settings.logging.level, self.env))


def _redactor(settings: Settings) -> Redactor:
    return Redactor.from_settings(settings, settings.logging.redact_patterns)
