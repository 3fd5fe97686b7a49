"""The rooms of one engine, wired to each other, and the order in which they open and close.

Only wiring: nothing here decides anything about a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from claw_engine.adapters import (
    IntakeAdapter,
    ModelsAdapter,
    QueueAdapter,
    SessionsAdapter,
)
from claw_engine.agent.run import AgentDeps, AgentRuntime
from claw_engine.approvals.broker import Broker
from claw_engine.approvals.modes import ModeSwitch, at_most
from claw_engine.approvals.policy import PermissionMode
from claw_engine.approvals.rulesfile import RulesFile
from claw_engine.approvals.store import ExecApprovals
from claw_engine.client_adapters import (
    AgentsAdapter,
    CommandsAdapter,
    EditsAdapter,
    SkillsAdapter,
)
from claw_engine.config.load import ConfigStore, Reloaded
from claw_engine.config.settings import Settings
from claw_engine.config_desk import ConfigDesk
from claw_engine.events import EventBus
from claw_engine.gateway.ports import GatewayParts, HostPort
from claw_engine.inbox.builtin import builtin_commands
from claw_engine.inbox.dispatch import Dispatcher
from claw_engine.inbox.journal import Journal
from claw_engine.inbox.overrides import settings_for
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.session_commands import SessionCommands, stopping_reset
from claw_engine.lanes import Lanes
from claw_engine.log_tail import LogTail
from claw_engine.metering import meter_for
from claw_engine.models.base import ModelConfigError, ModelRef
from claw_engine.models.catalog import Models
from claw_engine.notices import NoticeBoard
from claw_engine.paths import StateDir
from claw_engine.patterns import compile_next
from claw_engine.pauses import Pauses, lane_widths
from claw_engine.probes import Found, Probes
from claw_engine.runs import Runs
from claw_engine.sandbox.boxes import Boxes
from claw_engine.sandbox.keeper import Keeper, Wishes
from claw_engine.sandbox.limits import wanted
from claw_engine.sandbox.report import look
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.events import SessionBegun
from claw_engine.sessions.maintenance import limits_of
from claw_engine.sessions.routing import routes_of, workspace_of
from claw_engine.sessions.store import Sessions
from claw_engine.skills.door import SkillDoor
from claw_engine.tool_calls import ToolCalls
from claw_engine.tools.box_desk import BoxDesk
from claw_engine.tools.exec.table import ProcessTable
from claw_engine.tools.hooks import ToolHooks
from claw_engine.tools.policy.desk import Answering, ToolDesk
from claw_engine.tools.registry import ToolRegistry, default_tools
from claw_engine.tools.standing import Standings
from claw_engine.tracing import Tracing
from claw_engine.world import World

log = logging.getLogger("claw.engine")


class Rooms:
    """Use: `await open()`, …, `await stop(drain_s)`, `await close()`."""

    def __init__(
        self,
        world: World,
        state: StateDir,
        config: ConfigStore,
        bus: EventBus,
        board: NoticeBoard,
        env: Mapping[str, str],
    ) -> None:
        self._world = world
        self._state = state
        self._config = config
        self._bus = bus
        self._board = board
        self._env = env
        self._closing = contextlib.AsyncExitStack()
        settings, publish = config.settings, board.publish
        durability = settings.durability
        self.runs = Runs(world.clock, publish)
        self.lanes = Lanes(world.clock, publish, lane_widths(settings))
        self.pauses = Pauses(world, state, self.lanes)
        self.sessions = Sessions(
            world, state, publish, workspace=self.workspace, durability=durability
        )
        self.exec_approvals = ExecApprovals(world, state.exec_approvals, warn=self._warn_rules)
        self.broker = Broker(
            world, publish, state.approvals_journal, settings.approvals.timeout_ms,
            self._session_id,
        )  # fmt: skip
        self.journal = Journal(world, state.inbox_dir, durability)
        self.models = Models(world)
        self.processes = ProcessTable(world, publish, state.processes_json)
        self.keeper = Keeper(world, state.root, env, wishes_of(settings))
        self.boxes = Boxes(world, state.root, env, self.keeper)
        self.meter = meter_for(world, state, board, self.settings, self._session_id)
        self.permission = ModeSwitch(world, publish, state.approvals_dir / "mode.json")
        self.probes = Probes()
        self.box_desk = BoxDesk(self.boxes, self.settings, self.workspace, self._entry)
        self.probes.add("sandbox", partial(look, self.keeper, self.boxes, self.box_desk.agents))
        self.tracing = Tracing(world, state, board.tell, self.settings)
        self.probes.add("trace", self.tracing.recorder.look)
        self._route(settings)
        self._wire_inbox()

    def _wire_inbox(self) -> None:
        world, publish = self._world, self._board.publish
        self.tools = ToolRegistry(default_tools(self.processes, self.keeper, self.boxes))
        self.hooks = ToolHooks(world.clock)
        self.skills = SkillDoor(world.disk, world.clock, self._state.skills_dir)
        self.probes.add("skills", self._look_at_skills)
        self.desk = ToolDesk(self.tools, self.tools.explain, self._answering)
        self.agent = AgentRuntime(
            AgentDeps(
                world=world,
                state_dir=self._state,
                sessions=self.sessions,
                models=self.models,
                tools=self.tools,
                hooks=self.hooks,
                skills=self.skills,
                approvals=self.broker,
                exec_approvals=self.exec_approvals,
                abort=self.runs.abort,
                mode=self._mode_of,
                standing=Standings(self.boxes, self._entry),
                tracer=self.tracing.recorder,
                meter=self.meter,
            )
        )
        deps = DispatchDeps(
            world=world,
            publish=publish,
            runs=self.runs,
            lanes=self.lanes,
            journal=self.journal,
            sessions=self.sessions,
            agent=self.agent,
            approvals=self.broker,
            settings=self.settings,
            record=self.tracing.recorder.note,
        )
        commands = self.commands = builtin_commands(deps, self.meter.desk)
        self.dispatcher = Dispatcher(deps, commands)
        self._reset = stopping_reset(self.dispatcher.clear, self._begin_anew)
        SessionCommands(deps, self._reset, self._named_model).register(commands)

    def parts(self, host: HostPort, settle: Callable[[Reloaded, bool], None]) -> GatewayParts:
        """Everything the gateway is wired to; `settle` follows a changed configuration."""
        world = self._world
        self.config_desk = ConfigDesk(self._config, settle)
        self.log_tail = LogTail(world.disk, self._state.logs_dir)
        return GatewayParts(
            clock=world.clock,
            ids=world.ids,
            bus=self._bus,
            runs=self.runs,
            lanes=self.lanes,
            pauses=self.pauses,
            intake=IntakeAdapter(self.dispatcher, self.sessions, world.clock, self.settings),
            sessions=SessionsAdapter(self.sessions, self.settings),
            approvals=self.broker,
            models=ModelsAdapter(self.models, self.settings),
            config=self.config_desk,
            config_file=self.config_desk,
            logs=self.log_tail,
            host=host,
            background=self.processes,
            queue=QueueAdapter(self.dispatcher, self.sessions, self._reset, self._named_model),
            rules=self.exec_approvals,
            grants=self.broker.grants,
            rules_file=RulesFile(world, self._state.exec_approvals),
            permission=self.permission,
            probes=self.probes,
            sandbox=self.box_desk,
            audit=self._audit,
            policy=self.desk,
            agents=AgentsAdapter(world, self._state, self.settings),
            commands=CommandsAdapter(self.commands),
            edits=EditsAdapter(world, self._state, self.sessions, self.dispatcher.clear),
            skills=SkillsAdapter(world, self._state, self.skills, self._config, settle),
            trace=self.tracing.desk,
            usage=self.meter,
            tools=ToolCalls(self.agent.deps, self.tools, self.settings, self.workspace),
        )

    # ── life ────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Read what is on disk and finish what a dead engine left; nobody may talk to us yet."""
        checking = asyncio.create_task(self.keeper.check(), name="sandbox check")
        self._closing.push_async_callback(self.keeper.close)
        self._closing.push_async_callback(asyncio.wait, [checking])
        self._closing.push_async_callback(self.tracing.close)
        await self.sessions.open()
        self._closing.push_async_callback(self.sessions.close)
        self._closing.push_async_callback(self.meter.close)
        recovered = await self.journal.open()
        self._closing.push_async_callback(self.journal.close)
        await self.processes.reap({accepted.id for accepted in recovered.interrupted})
        await self.exec_approvals.load()
        await self.pauses.restore()
        await self.permission.load(self.settings().permission_mode)
        await self.broker.start()
        await checking  # recovered runs may start commands
        # Before the door opens: a new message must not overtake what was accepted before it.
        await self.dispatcher.recover(recovered)

    async def stop(self, drain_s: float) -> None:
        """No intake, bounded drain, abort; what children there are end too."""
        async with contextlib.AsyncExitStack() as steps:  # one that fails keeps none from ending
            steps.callback(self.permission.close)
            steps.push_async_callback(self.broker.close)
            steps.push_async_callback(self.processes.close)
            await self.dispatcher.close(drain_s)

    async def close(self) -> None:
        """Flush the writers, then let connections go."""
        await self._closing.aclose()
        await self.models.aclose()

    # ── what the engine asks ────────────────────────────────────────────────────────────────

    def settings(self) -> Settings:
        """The newest configuration."""
        return self._config.settings

    def workspace(self, agent_id: str) -> Path:
        return workspace_of(self.settings(), self._state, agent_id)

    def agents(self) -> Sequence[str]:
        """Ids of the configured agents, the default one first."""
        routes = routes_of(self.settings())
        rest = [agent for agent in routes.agents if agent != routes.default_agent]
        return [routes.default_agent, *rest]

    @property
    def busy(self) -> bool:
        """Whether a run or a command in the background goes on."""
        return bool(self.runs.active()) or bool(self.processes.running)

    def apply(self, settings: Settings) -> None:
        """Put a new configuration in force where it is not read on use anyway."""
        self.pauses.apply(lane_widths(settings))
        self.broker.timeout_ms = settings.approvals.timeout_ms
        self.permission.configure(settings.permission_mode)
        self.keeper.configure(wishes_of(settings))
        self.tracing.recorder.configure(settings.trace)
        self._tell_doubts()
        self._route(settings)

    async def warm_up(self) -> None:
        """Do ahead of the first message what it would otherwise wait for; never raises."""
        await self._world.disk.run(_load_later)
        await self.tracing.recorder.open()
        for _ in iter(compile_next, False):
            await asyncio.sleep(0)
        for agent in self.agents():
            try:
                await self.agent.warm_up(self.settings(), agent)
            except OSError as error:
                log.warning("workspace of %s is not ready: %s", agent, error)
        with contextlib.suppress(ModelConfigError):  # the status says what is wrong with it
            await self.models.warm_up(self.models.resolve(self.settings()))
        await self.meter.open()
        self._tell_doubts()
        for agent, why in (await self.box_desk.doubts()).items():
            self._board.tell(
                f"sandbox-broken-{agent}", "warn", f"Agent {agent} has no sandbox that works.",
                text=f"Its commands do not run: {why}.", hint="claw doctor says what helps.",
                sticky=True,
            )  # fmt: skip

    async def workspace_texts(self) -> Mapping[str, str]:
        """Each workspace file as the prompt has it; other agents' carry the agent's id."""
        found: dict[str, str] = {}
        for number, agent in enumerate(self.agents()):
            try:
                texts = await self.agent.workspace_texts(self.settings(), agent)
            except OSError:
                continue
            prefix = f"{agent}/" if number else ""
            found.update((prefix + name, text) for name, text in texts.items())
        return found

    async def clean_up(self) -> None:
        """Sessions' and sandboxes' upkeep by configuration; what was done or failed is logged."""
        prune = self.settings().agents.defaults.sandbox.prune
        await self.boxes.containers.prune(prune.idle_hours, prune.max_age_days)
        limits = limits_of(self.settings().session.maintenance)
        active = [run.session_key for run in self.runs.active()]
        for result in await self.sessions.cleanup(limits, dry_run=False, active=active):
            if result.actions:
                verb = "did" if result.done else "would do"
                log.info("session upkeep of %s %s %d steps", result.agent_id, verb,
                         len(result.actions))  # fmt: skip
            for action, why in result.failed:
                log.warning("session upkeep failed: %s: %s", action, why)

    # ── inside ──────────────────────────────────────────────────────────────────────────────

    def _route(self, settings: Settings) -> None:
        routes = routes_of(settings)
        self.sessions.configure(routes.default_agent, global_scope=routes.global_scope)

    def _session_id(self, key: str) -> str:
        """The id of a session's present life, empty before it has one."""
        entry = self.sessions.get(key)
        return entry.session_id if entry is not None else ""

    async def _begin_anew(self, key: str, reason: str) -> SessionEntry:
        await self.broker.grants.end_session(key)
        entry = await self.sessions.reset(key)
        self._board.publish(SessionBegun(key=str(self.sessions.key(key)), reason=reason))
        return entry

    async def _audit(self) -> Mapping[str, object]:
        from claw_engine.audits import report, subject_of  # only for whoever asks

        warning = self.keeper.warning
        env, disk = self._env, self._world.disk
        routes = (warning,) if warning else ()
        subject = await disk.run(subject_of, self._state, env, disk, routes)
        return await asyncio.to_thread(report, subject, self._world.clock.now_ms())

    async def _look_at_skills(self) -> Sequence[Found]:
        where = [(agent, self.workspace(agent)) for agent in self.agents()]
        return await self.skills.probe(self.settings(), where)

    def _mode_of(self, key: str) -> PermissionMode:
        return at_most(self.permission.mode(), self._entry(key).get("permissionMode"))

    def _entry(self, key: str) -> Mapping[str, object]:
        entry = self.sessions.get(key)
        return entry.raw if entry is not None else {}

    def _answering(self, key: str) -> Answering:
        settings = settings_for(self.settings(), self.sessions.get(key))
        try:
            ref = self.models.resolve(settings)
        except ModelConfigError:
            return Answering(settings)
        return Answering(settings, ref.provider, ref.id)

    def _tell_doubts(self) -> None:
        """Notices about entries of tool lists that do not do what their writer hoped."""
        now = {f"tools:{d.source}:{d.entry}": d for d in self.desk.doubts(self.agents())}
        for code in self._board.codes():
            if code.startswith("tools:") and code not in now:
                self._board.clear(code)
        for code, doubt in now.items():
            title = f"{doubt.source}: {doubt.entry!r}: {doubt.text}."
            self._board.tell(code, "warn", title, sticky=True)

    def _named_model(self, name: str) -> ModelRef:
        return self.models.named(self.settings(), name)

    def _warn_rules(self, sentence: str) -> None:
        self._board.tell("rules-damaged", "warn", "exec-approvals.json is damaged.", text=sentence)


def _load_later() -> None:
    """What the first message needs and a start does not. Blocking: not on the loop."""
    import zoneinfo

    import claw_engine.agent.books
    import claw_engine.usage.budgets  # noqa: F401 - for whoever makes the first call

    zoneinfo.ZoneInfo("UTC")


def wishes_of(settings: Settings) -> Wishes:
    """How commands are to be confined."""
    chosen = settings.tools.exec
    return Wishes(
        chosen.confine, chosen.confine_network, chosen.confine_writable, chosen.confine_reach,
        wanted(chosen.confine_processes, chosen.confine_memory_percent),
    )  # fmt: skip
