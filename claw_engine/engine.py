"""The composition root: builds the rooms in order, owns their tasks, stops them in order.

    async with Engine(state_dir) as engine:
        client = engine.local_client()

Starting takes the state directory's lock; two engines never share one directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from claw_engine import __version__
from claw_engine.adapters import (
    ConfigAdapter,
    IntakeAdapter,
    ModelsAdapter,
    QueueAdapter,
    SessionsAdapter,
)
from claw_engine.agent.options import workspace_of
from claw_engine.agent.run import AgentDeps, AgentRuntime
from claw_engine.approvals.broker import Broker
from claw_engine.approvals.store import ExecApprovals
from claw_engine.client.local import LocalClient
from claw_engine.config.load import ConfigStore
from claw_engine.config.redact import Redactor
from claw_engine.config.settings import Settings
from claw_engine.errors import ClawError
from claw_engine.events import EventBus
from claw_engine.gateway.gateway import Gateway
from claw_engine.gateway.ports import GatewayParts
from claw_engine.housekeeping import Housekeeping
from claw_engine.inbox.builtin import builtin_commands
from claw_engine.inbox.dispatch import Dispatcher
from claw_engine.inbox.journal import Journal
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.session_commands import SessionCommands, stopping_reset
from claw_engine.lanes import DEFAULT_WIDTHS, Lanes
from claw_engine.logs import Logs, level_number, start_logs
from claw_engine.models.base import ModelConfigError, ModelRef
from claw_engine.models.catalog import Models
from claw_engine.notices import NoticeBoard, problem_notices
from claw_engine.paths import StateDir
from claw_engine.pauses import Pauses
from claw_engine.protocol.names import ALL_SCOPES, Scope
from claw_engine.runs import Runs
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.generation import state_generation
from claw_engine.sessions.store import Sessions
from claw_engine.storage.locks import HeldBy, Lock, acquire, foreign_locks
from claw_engine.tools.exec.table import ProcessTable
from claw_engine.tools.registry import ToolRegistry, default_tools
from claw_engine.watchdog import LoopWatchdog
from claw_engine.world import RealDisk, World, real_world

log = logging.getLogger("claw.engine")

Mode = Literal["embedded", "headless"]

BYPASS_WARNING = "approvals can be bypassed by allowed commands"
"""True until children are confined: an allowed program can do whatever this user can."""

DRAIN_S = 2.0
"""Seconds that runs get to end by themselves when the engine stops."""


class EngineHeld(ClawError):
    """Another process runs an engine on this state directory."""

    def __init__(self, state_dir: Path, held: HeldBy) -> None:
        who = f"pid {held.pid}" if held.pid else "another process"
        super().__init__(
            f"An engine ({who}) already runs on {state_dir}.",
            hint="Attach to it with claw-tui, or stop it first.",
            details={"pid": held.pid, "door": held.info.get("door")},
        )
        self.held = held


class ForeignState(ClawError):
    """The state directory belongs to a program that must not be disturbed."""


class Engine:
    """One engine on one state directory. `env` is the process environment; it is not changed."""

    def __init__(
        self,
        state_dir: Path,
        *,
        mode: Mode = "embedded",
        env: Mapping[str, str] | None = None,
        world: World | None = None,
        drain_s: float = DRAIN_S,
    ) -> None:
        self.state = StateDir(state_dir.absolute())
        self.env = dict(os.environ if env is None else env)
        self._world = world or real_world()
        self._own_world = world is None
        self._mode: Mode = mode
        self._drain_s = drain_s
        self._lock: Lock | None = None
        self._logs: Logs | None = None
        self._started_ms = self._world.clock.now_ms()
        self._stopping = asyncio.Event()
        self._idle_wanted = asyncio.Event()
        self._watchdog = LoopWatchdog()
        self._close = contextlib.AsyncExitStack()
        self.door_path: Path | None = None

    # ── life ────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        """Start. Raises EngineHeld, ForeignState, ConfigError, StateDiskError, DoorError."""
        try:
            await self._start()
        except BaseException:
            await self._close.aclose()
            self._release()
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
        state.ensure()
        self._take_directory()
        self._config = ConfigStore(world, state, self.env)
        loaded = self._config.load()
        settings = loaded.settings
        redactor = Redactor.from_settings(settings, settings.logging.redact_patterns)
        self._logs = start_logs(
            state.logs_dir,
            level=level_number(settings.logging.level, self.env),
            redact=redactor.text,
        )

        self._bus = EventBus()
        self.board = NoticeBoard(world.clock, self._bus)
        publish = self.board.publish
        self._runs = Runs(world.clock, publish)
        self._lanes = Lanes(world.clock, publish, lane_widths(settings))
        self._sessions = Sessions(world, state, publish, workspace=self._workspace)
        self._exec_approvals = ExecApprovals(world, state.exec_approvals, warn=self._warn_rules)
        self._broker = Broker(
            world, publish, state.approvals_journal, settings.approvals.timeout_ms
        )
        self._journal = Journal(world, state.inbox_dir)
        self._models = Models(world)
        self._processes = ProcessTable(world, publish, state.processes_json)
        self._pauses = Pauses(world, state, self._lanes)
        self._dispatcher = self._build_dispatcher()
        self.gateway = Gateway(world, self._parts(), state, self.env)
        self._housekeeping = Housekeeping(self)

        self.gateway.start()
        for notice in problem_notices(loaded):
            publish(notice)
        await self._sessions.open()
        self._close.push_async_callback(self._sessions.close)
        recovered = await self._journal.open()
        self._close.push_async_callback(self._journal.close)
        await self._processes.reap({accepted.id for accepted in recovered.interrupted})
        await self._exec_approvals.load()
        await self._pauses.restore()
        await self._broker.start()
        # Before the door opens: a new message must not overtake what was accepted before it.
        await self._dispatcher.recover(recovered)
        self.door_path = await self.gateway.open_door()
        self._close.push_async_callback(self.gateway.close, "gateway stopping")
        assert self._lock is not None
        self._lock.describe(self._description())
        self._watchdog.start()
        self._housekeeping.start()
        self._close.push_async_callback(self._housekeeping.stop)
        log.info(
            "engine ready: pid=%d mode=%s stateDir=%s door=%s",
            os.getpid(), self._mode, state.root, self.door_path,
        )  # fmt: skip

    async def _stop(self) -> None:
        log.info("engine stop: mode=%s", self._mode)
        try:
            # The order of the house: intake, drain, abort, writers (exit stack), clients, lock.
            await self._dispatcher.close(self._drain_s)
            await self._processes.close()
            await self._broker.close()
            await self._close.aclose()
            await self._models.aclose()
        finally:
            self._release()

    def _release(self) -> None:
        self._watchdog.close()
        if self._logs is not None:
            self._logs.close()
            self._logs = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._own_world and isinstance(self._world.disk, RealDisk):
            self._world.disk.close()

    def _take_directory(self) -> None:
        root = self.state.root
        if state_generation(root) == "sqlite":
            raise ForeignState(
                f"{root} holds the state of a newer OpenClaw (sessions in SQLite).",
                hint="It is never rewritten here. Choose another one with --state-dir.",
            )
        foreign = foreign_locks(root, self._world.clock.now_ms())
        if foreign:
            raise ForeignState(
                f"Process {foreign[0].pid} is using {root} (lock {foreign[0].path.name}).",
                hint="Stop that program first, or choose another directory with --state-dir.",
            )
        taken = acquire(self.state.gateway_lock, self._description())
        if isinstance(taken, HeldBy):
            raise EngineHeld(root, taken)
        self._lock = taken

    def _description(self) -> Mapping[str, object]:
        return {
            "startedAt": self._started_ms,
            "host": socket.gethostname(),
            "mode": self._mode,
            "version": __version__,
            "door": str(self.door_path) if self.door_path else None,
        }

    def _build_dispatcher(self) -> Dispatcher:
        deps = AgentDeps(
            world=self._world,
            state_dir=self.state,
            sessions=self._sessions,
            models=self._models,
            tools=ToolRegistry(default_tools(self._processes)),
            approvals=self._broker,
            exec_approvals=self._exec_approvals,
            abort=self._runs.abort,
        )
        self._agent = AgentRuntime(deps)
        inbox = DispatchDeps(
            world=self._world,
            publish=self.board.publish,
            runs=self._runs,
            lanes=self._lanes,
            journal=self._journal,
            sessions=self._sessions,
            agent=self._agent,
            approvals=self._broker,
            settings=self.settings,
        )
        commands = builtin_commands(inbox)
        dispatcher = Dispatcher(inbox, commands)
        self._reset = stopping_reset(dispatcher.clear, self._begin_anew)
        SessionCommands(inbox, self._reset, self._named_model).register(commands)
        return dispatcher

    async def _begin_anew(self, key: str, reason: str) -> SessionEntry:
        return await self._sessions.reset(key)

    def _named_model(self, name: str) -> ModelRef:
        return self._models.named(self.settings(), name)

    def _parts(self) -> GatewayParts:
        world = self._world
        return GatewayParts(
            clock=world.clock,
            ids=world.ids,
            bus=self._bus,
            runs=self._runs,
            lanes=self._lanes,
            pauses=self._pauses,
            intake=IntakeAdapter(self._dispatcher, self._sessions, world.clock),
            sessions=SessionsAdapter(self._sessions, self.settings),
            approvals=self._broker,
            models=ModelsAdapter(self._models, self.settings),
            config=ConfigAdapter(self._config),
            host=self,
            background=self._processes,
            queue=QueueAdapter(
                self._dispatcher, self._sessions, self._reset, self._named_model
            ),
        )

    def _warn_rules(self, sentence: str) -> None:
        self.board.tell("rules-damaged", "warn", "exec-approvals.json is damaged.", text=sentence)

    def _workspace(self, agent_id: str) -> Path:
        return workspace_of(self.settings(), agent_id, self.state)

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
        peers = self.gateway.broadcaster.peers
        return bool(self._runs.active()) or bool(peers) or bool(self._processes.running)

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
        return "guarded"

    @property
    def bypass_warning(self) -> str | None:
        return BYPASS_WARNING

    def notices(self) -> Sequence[Mapping[str, object]]:
        return self.board.current()

    def stop(self, when: Literal["now", "idle"] = "now") -> None:
        """Ask the engine to stop; returns at once."""
        (self._stopping if when == "now" else self._idle_wanted).set()

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
        return self._lanes

    @property
    def watchdog(self) -> LoopWatchdog:
        return self._watchdog

    def workspaces(self) -> Iterable[Path]:
        """Workspace folders of all configured agents."""
        return dict.fromkeys(self._workspace(agent) for agent in self._agents())

    def _agents(self) -> Sequence[str]:
        return [agent.id for agent in self.settings().agents.list] or ["main"]

    async def warm_up(self) -> None:
        """Do ahead of the first message what it would otherwise wait for; never raises."""
        for agent in self._agents():
            try:
                await self._agent.warm_up(self.settings(), agent)
            except OSError as error:
                log.warning("workspace of %s is not ready: %s", agent, error)
        with contextlib.suppress(ModelConfigError):  # the status says what is wrong with it
            await self._models.warm_up(self._models.resolve(self.settings()))

    async def workspace_tokens(self) -> Mapping[str, int]:
        """Estimated tokens of each workspace file; files of other agents carry their agent's id."""
        found: dict[str, int] = {}
        for number, agent in enumerate(self._agents()):
            try:
                tokens = await self._agent.workspace_tokens(self.settings(), agent)
            except OSError:
                continue
            prefix = f"{agent}/" if number else ""
            found.update((prefix + name, count) for name, count in tokens.items())
        return found

    def apply(self, settings: Settings) -> None:
        """Put a new configuration in force where it is not read on use anyway."""
        self._pauses.apply(lane_widths(settings))
        self._broker.timeout_ms = settings.approvals.timeout_ms
        if self._logs is not None:
            redactor = Redactor.from_settings(settings, settings.logging.redact_patterns)
            self._logs.set_redact(redactor.text)
            self._logs.set_level(level_number(settings.logging.level, self.env))


def lane_widths(settings: Settings) -> Mapping[str, int]:
    """Widths of the global lanes by configuration (gateway digest §4.1)."""
    defaults = settings.agents.defaults
    return {
        **DEFAULT_WIDTHS,
        "main": defaults.max_concurrent,
        "cron": settings.cron.max_concurrent_runs,
        "subagent": defaults.subagents.max_concurrent,
    }
