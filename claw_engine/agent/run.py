"""One run of the agent: pins what it needs, drives the loop, and always leaves a valid transcript.

The supervisor in the inbox owns the task and is the only one to cancel it; a cancelled run records
what is known and raises the cancellation again. Knows no channel, no gateway, no cron.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.agent.ask import Asker
from claw_engine.agent.briefing import Briefer, Briefing, Seen, SkillSource, Speaker
from claw_engine.agent.checks import CallChecks, Caller, Hooks, loop_rules
from claw_engine.agent.context.hygiene import TurnCache, turns_of
from claw_engine.agent.context.tokens import CHARS_PER_TOKEN
from claw_engine.agent.loop import Loop
from claw_engine.agent.options import Options, options, this_host
from claw_engine.agent.outside import Outside
from claw_engine.agent.parking import Parking
from claw_engine.agent.ports import (
    STOPPED,
    Claim,
    Conversations,
    Inbound,
    ModelSource,
    Place,
    RunError,
    RunResult,
    StandingOf,
    ToolShelf,
    Tracer,
    WorkspaceUnusable,
)
from claw_engine.agent.prompt.builder import PromptBuilder
from claw_engine.agent.prompt.facts import Host
from claw_engine.agent.prompt.fence import Fencer
from claw_engine.agent.prompt.report import SizeBook
from claw_engine.agent.record import (
    RESUMED_FIELD,
    Recorder,
    before_text,
    message_ids,
    stamped,
    user_message,
)
from claw_engine.agent.steering import Steering
from claw_engine.agent.steps import Steps
from claw_engine.agent.stopwatch import Stopwatch
from claw_engine.agent.toolround import ToolRound
from claw_engine.approvals.model import ApprovalRecord
from claw_engine.approvals.policy import PermissionMode
from claw_engine.errors import ClawError
from claw_engine.models.base import ModelError, ModelErrorKind, Request
from claw_engine.paths import StateDir
from claw_engine.protocol.trace import FIRST_CAUSES, CallCause, TraceKind
from claw_engine.runs import AbortReason, Run, RunState
from claw_engine.storage.errors import StateDiskFull, disk_error
from claw_engine.tools.base import ToolContext, guarded
from claw_engine.tools.loops import LoopGuard
from claw_engine.tools.policy.circumstances import external_origin
from claw_engine.usage.meter import Meter
from claw_engine.world import World

if TYPE_CHECKING:
    from claw_engine.agent.books import Books
    from claw_engine.agent.prompt.system_report import Report
    from claw_engine.approvals.broker import Broker
    from claw_engine.approvals.store import ExecApprovals
    from claw_engine.config.settings import Settings

log = logging.getLogger("claw.agent")

TRUSTED_SOURCES = frozenset({"console", "cli"})
"""Where a message must come from for the rehearsal model to read its verbs."""

WRITE_SECONDS = 5.0
"""How long the end of a run waits for a slow disk; the write itself goes on after that."""

LOCK_SPARE_S = 120.0
"""Seconds a run may hold its transcript's lock beyond its time limit (gateway digest §3.6)."""
LOCK_UNLIMITED_S = 86_400.0
"""Seconds a run without a time limit may."""

_OVERFLOW_HINT = "Go on in another session, or choose a model with a larger context window."


class AgentDeps(Struct, frozen=True):
    """Everything the runtime is wired to. `abort` stops a run, `mode` is a session's now."""

    world: World
    state_dir: StateDir
    sessions: Conversations
    models: ModelSource
    tools: ToolShelf
    approvals: Broker
    exec_approvals: ExecApprovals
    abort: Callable[[str, AbortReason], object]
    mode: Callable[[str], PermissionMode] = lambda key: guarded()
    standing: StandingOf | None = None
    """Where a run's commands belong; None = nowhere but here."""
    hooks: Hooks | None = None
    """Looks at every tool call before and after."""
    meter: Meter | None = None
    """Counts every call and holds it against the budgets; None = nothing is counted."""
    skills: SkillSource | None = None
    tracer: Tracer | None = None
    """Takes down every call to a model."""


class AgentRuntime:
    """Opens executions; holds what outlives a run (prompt, turn and size caches)."""

    def __init__(self, deps: AgentDeps, host: Host | None = None) -> None:
        self.deps = deps
        self.host = host or this_host()
        self.prompts = PromptBuilder(deps.world.disk, deps.world.clock)
        self.book = SizeBook()
        self.turns = TurnCache()
        self.loops = LoopGuard()
        self.fencer = Fencer(deps.world.ids.token(32).encode())
        self.briefer = Briefer(self.prompts, deps.tools, self.host, deps.standing, deps.skills)

    async def warm_up(self, settings: Settings, agent_id: str) -> list[str]:
        """Seed the workspace and read its files ahead of the first message; names written.

        Raises OSError.
        """
        chosen = options(settings, agent_id, self.deps.state_dir)
        return await self.prompts.prepare(chosen.workspace, seeding=chosen.seeding)

    async def workspace_texts(self, settings: Settings, agent_id: str) -> dict[str, str]:
        """Each workspace file as it would enter the next prompt."""
        chosen = options(settings, agent_id, self.deps.state_dir)
        await self.prompts.prepare(chosen.workspace, seeding=chosen.seeding)
        return await self.prompts.file_texts(chosen.workspace, chosen.limits)

    def open(
        self,
        run: Run,
        message: Inbound,
        place: Place,
        steps: Steps,
        before_tools: Callable[[], Awaitable[object]],
    ) -> Execution:
        """A run that is ready to `execute` once it has its place in the lanes.

        `before_tools` is awaited before anything with an effect happens: by then the start of the
        run must be on disk, so that no restart does it twice.
        """
        return Execution(self, run, message, place, steps, before_tools)


_KEPT_HINT = (
    "Your message is kept and is stored as soon as there is room: free some space, then ask for "
    "the answer again."
)


class Execution:
    """One run. After `execute`, also a cancelled one, `result` says how it ended."""

    def __init__(
        self, runtime: AgentRuntime, run: Run, message: Inbound, place: Place, steps: Steps,
        before_tools: Callable[[], Awaitable[object]],
    ) -> None:  # fmt: skip
        self._runtime = runtime
        self._run = run
        self._message = message
        self._place = place
        self._steps = steps
        self._before_tools = before_tools
        self._clock = runtime.deps.world.clock
        self._loop: Loop | None = None
        self._recorder: Recorder | None = None
        self._claim: Claim | None = None
        self._model = ""
        self._window = 0
        self._report: Report | None = None
        self._outside = Outside(external_origin(message.extra))
        self.steering = Steering()
        self.books: Books | None = None
        self.result = RunResult("aborted", "shutdown")

    async def execute(self, wait_ms: int = 0) -> RunResult:
        """Answer the message. Raises only CancelledError; failures are results."""
        began, started_ms = self._clock.monotonic(), self._clock.now_ms()
        run = self._run
        settings: Settings = run.settings  # type: ignore[assignment]  # runs.py knows no settings
        chosen = options(settings, run.agent_id, self._runtime.deps.state_dir, self._message)
        stopwatch = Stopwatch(self._clock, chosen.timeout_s, self._time_is_up)
        stopwatch.start()
        try:
            self.result = await self._answer(settings, chosen, stopwatch, wait_ms)
        except asyncio.CancelledError:
            self.result = await self._aborted(chosen)
            raise
        except ClawError as error:
            self.result = await self._failed(error)
        except Exception as error:
            log.exception("run failed: runId=%s", run.id)
            title = f"The run failed inside: {type(error).__name__}: {error}"
            self.result = await self._failed(ClawError(title, hint="The log has the details."))
        finally:
            self.steering.abandon()
            stopwatch.stop()
            if self._claim is not None:
                self._claim.let_go()
            duration = int((self._clock.monotonic() - began) * 1000)
            self.result = replace(
                self.result,
                duration_ms=duration,
                model=self._model,
                context_window=self._window,
                started_ms=started_ms,
                ended_ms=self._clock.now_ms(),
                report=self._report,
            )
        return self.result

    def _time_is_up(self) -> None:
        self._runtime.deps.abort(self._run.id, AbortReason.TIMEOUT)

    async def _answer(
        self, settings: Settings, chosen: Options, stopwatch: Stopwatch, wait_ms: int
    ) -> RunResult:
        runtime, deps, run, steps = self._runtime, self._runtime.deps, self._run, self._steps
        steps.state(RunState.BUILDING, "run started")
        hold_s = chosen.timeout_s + LOCK_SPARE_S if chosen.timeout_s > 0 else LOCK_UNLIMITED_S
        claim = self._claim = await deps.sessions.claim(run.session_key, max_hold_s=hold_s)
        conversation = claim.transcript
        refused, seen = await self._enter(claim, settings, chosen)
        extra = self._message.extra
        said = self._outside.said(self._message.text, runtime.fencer, run.id)
        text = before_text(extra) + stamped(said, self._message.received_ms, chosen.timezone)
        user = user_message(text, self._message.received_ms, run.id, extra)
        recorder = self._recorder = Recorder(conversation, None, self._clock)
        recorder.begin(user)
        if refused is not None:
            raise refused

        ref = deps.models.resolve(settings)
        recorder.ref, self._model = ref, ref.name
        self._window = min(ref.context_window, settings.agents.defaults.context_tokens or 1 << 60)
        await conversation.reach(self._window * CHARS_PER_TOKEN)
        turns = turns_of(conversation.messages(), runtime.turns)
        steps.tell(
            TraceKind.RUN_STARTED, model=ref.name, provider=ref.provider, isAI=ref.is_ai,
            waitMs=wait_ms, cause="resume" if extra.get(RESUMED_FIELD) else "message",
            messages=message_ids(run.id, extra),
        )  # fmt: skip
        log.info("run start: runId=%s sessionKey=%s model=%s", run.id, run.session_key, ref.name)
        for name in await self._workspace_ready(chosen):
            log.info("workspace file created: %s", chosen.workspace / name)
        speaker = Speaker(run.session_key, run.agent_id, self._message.source, extra)
        brief = await runtime.briefer.brief(settings, chosen, ref, speaker, seen)
        self._report = runtime.briefer.report(brief.told, self._clock.now_ms)
        request = Request(
            model=ref,
            system=brief.prompt.parts,
            tools=brief.specs,
            turns=(),
            max_tokens=ref.max_tokens,
            thinking=chosen.thinking,
            trusted_origin=self._message.source in TRUSTED_SOURCES and not self._outside,
        )
        parking = Parking(self._place, steps, stopwatch, claim)
        from claw_engine.agent.books import Books  # with the first run, not with a start

        books = self.books = await Books.of(deps.meter, ref, run, deps.approvals, parking, steps)
        model, clock = deps.models.model(ref), self._clock
        asker = Asker(model, steps, clock, runtime.book, run, deps.tracer, books)
        rules = loop_rules(settings, run.agent_id)
        caller = Caller(run.agent_id, run.session_key, run.id)
        checks = CallChecks(caller, brief.tools, steps.notice, runtime.loops, rules, deps.hooks)
        calls = ToolRound(
            checks, self._context_maker(settings, chosen, brief, parking), steps, parking,
            run.scope, self._clock, self.steering,
        )  # fmt: skip
        self._loop = Loop(
            asker, calls, recorder, steps, deps.world, runtime.book, runtime.fencer,
            self._before_tools, self.steering, run.id, chosen.timezone,
        )  # fmt: skip
        cause = FIRST_CAUSES.get(self._message.source, CallCause.TURN)
        if extra.get(RESUMED_FIELD):
            cause = CallCause.RESUME
        return await self._loop.run(request, turns, self._window, cause)

    async def _enter(
        self, claim: Claim, settings: Settings, chosen: Options
    ) -> tuple[ClawError | None, Seen]:
        """Take the transcript's lock and look at the workspace meanwhile: one wait for both."""
        look = asyncio.create_task(self._runtime.briefer.look(settings, chosen, self._run.agent_id))
        refused: ClawError | None = None
        try:
            await claim.acquire()
        except ClawError as error:
            refused = error
        except BaseException:
            look.cancel()
            raise
        return refused, await look

    async def _workspace_ready(self, chosen: Options) -> list[str]:
        try:
            prompts = self._runtime.prompts
            return await prompts.prepare(chosen.workspace, seeding=chosen.seeding)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise disk_error(error, chosen.workspace) from error
            raise WorkspaceUnusable(chosen.workspace, error) from error

    def _context_maker(
        self, settings: Settings, chosen: Options, brief: Briefing, parking: Parking
    ) -> Callable[[str, str, Callable[[str], None], Callable[[ApprovalRecord], None]], ToolContext]:
        deps, run, box = self._runtime.deps, self._run, brief.standing.box
        workspace = chosen.workspace if box is None else Path(box.workspace)

        outside = self._outside
        mode = outside.mode(partial(deps.mode, run.session_key))

        def make(
            tool_call_id: str,
            why: str,
            output: Callable[[str], None],
            on_approval: Callable[[ApprovalRecord], None],
        ) -> ToolContext:
            return ToolContext(
                run_id=run.id,
                session_key=run.session_key,
                agent_id=run.agent_id,
                tool_call_id=tool_call_id,
                workspace=workspace,
                state_dir=deps.state_dir,
                why=why,
                world=deps.world,
                scope=run.scope,
                settings=settings,
                approvals=deps.approvals,
                exec_approvals=deps.exec_approvals,
                output=output,
                operator_wait=parking,
                on_approval=on_approval,
                mode=mode,
                standing=brief.standing,
                readable=brief.readable,
                notes=outside.notes,
                external=bool(outside),
            )

        return make

    async def _failed(self, error: ClawError) -> RunResult:
        hint = error.hint
        if isinstance(error, ModelError) and error.kind is ModelErrorKind.CONTEXT_OVERFLOW:
            hint = hint or _OVERFLOW_HINT
        if isinstance(error, StateDiskFull):
            hint = _KEPT_HINT
        base = self._loop.partial() if self._loop else RunResult("failed", "error")
        await self._close_transcript("error", error.title, hint)
        return replace(
            base, status="failed", stop_reason="error", error=RunError(error.title, hint)
        )

    async def _aborted(self, chosen: Options) -> RunResult:
        reason = self._run.scope.reason or AbortReason.SHUTDOWN
        base = self._loop.partial() if self._loop else RunResult("aborted", reason.value)
        error = None
        if reason is AbortReason.TIMEOUT:
            error = RunError(
                f"The run took longer than {chosen.timeout_s:g} s and was stopped.",
                "Raise agents.defaults.timeoutSeconds if it needs more time.",
            )
        said = (STOPPED[reason], "") if error is None else (error.title, error.hint)
        await self._close_transcript("aborted", *said)
        return replace(base, status="aborted", stop_reason=reason.value, error=error)

    async def _close_transcript(self, stop_reason: str, why: str, hint: str = "") -> None:
        recorder = self._recorder
        if recorder is None:
            return
        content, usage, results = self._loop.leftovers() if self._loop else ((), None, [])
        try:
            end = recorder.assistant(content, stop_reason, usage, why, hint)
            async with asyncio.timeout(WRITE_SECONDS):
                await recorder.add(*results, end)
        except TimeoutError:
            log.warning("run end still being written: runId=%s", self._run.id)
        except (ClawError, OSError) as error:
            log.error("run end not recorded: runId=%s %s", self._run.id, error)
