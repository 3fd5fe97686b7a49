"""The exec tool: decide, ask, check that what was approved is still what would run, run, report.

The order is fixed: what the operator saw is bound before the wait and compared right before the
spawn. Knows nothing of how a decision is made (approvals) or how a process is stopped (run, stop).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping

from msgspec import Struct

from claw_engine.approvals.binding import verify
from claw_engine.approvals.evaluate import SHELL, Answer, RuleUse, Verdict, evaluate
from claw_engine.approvals.fsview import RealFs
from claw_engine.approvals.model import ApprovalAsk, ApprovalKind, ApprovalRecord, Decision
from claw_engine.approvals.policy import Ask, ExecPolicy, PermissionMode, Security
from claw_engine.config.settings import Settings
from claw_engine.errors import ClawError
from claw_engine.paths import contains
from claw_engine.sandbox.base import Scope, Wrapped
from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from claw_engine.tools.exec import env as environment
from claw_engine.tools.exec import results, unanswered
from claw_engine.tools.exec.boxed import Boxed
from claw_engine.tools.exec.checks import directory, passable, time_limit
from claw_engine.tools.exec.confine import Confinement
from claw_engine.tools.exec.hosts import Host, Where, where
from claw_engine.tools.exec.job import Job, Ran
from claw_engine.tools.exec.parameters import PARAMETERS
from claw_engine.tools.exec.pins import Start, by_person, by_rules
from claw_engine.tools.exec.run import attend
from claw_engine.tools.exec.running import Running, shielded, start
from claw_engine.tools.exec.table import Keep, ProcessTable
from claw_engine.tools.exec.terminal import NAME as TERMINAL_NAME
from claw_engine.tools.permission import (
    CHANGED,
    ask_operator,
    policy_of,
    refusal,
    refuse_in_look,
)

log = logging.getLogger(__name__)

_FS = RealFs()
"""One for all calls: it remembers the hashes of the system's programs."""

YIELD_RANGE_MS = (10, 120_000)
"""Bounds of the time until a command moves to the background (gateway digest §5.1)."""


class Call(Struct, frozen=True):
    """One call, ready to be decided about: `env` is the whole environment of the child."""

    command: str
    cwd: str
    workspace: str
    env: Mapping[str, str]
    overrides: Mapping[str, str]
    timeout_s: float | None
    background: bool = False
    yield_s: float | None = None
    terminal: bool = False


class Cleared(Struct, frozen=True):
    """What is spawned now, by which answer (None = by the policy) and by which rules.

    `note` tells that nobody answered.
    """

    start: Wrapped
    record: ApprovalRecord | None
    rules: tuple[RuleUse, ...]
    note: str = ""


class ExecTool:
    """Run a shell command on this machine, in a session of its own."""

    name = "exec"
    summary = "Run a shell command"
    description = (
        "Run a shell command and return what it prints (stdout and stderr together). The operator "
        "may have to approve it first: say beforehand why you need it. A command that takes long "
        "moves to the background, where the process tool looks after it. There is no terminal "
        "without pty, and no input unless background or pty is set. Prefer one simple command to "
        "a chain."
    )
    parameters = PARAMETERS

    def __init__(
        self,
        inherited: Mapping[str, str] | None = None,
        processes: ProcessTable | None = None,
        confinement: Confinement | None = None,
    ) -> None:
        """Without `processes` there is no background, without `confinement` none."""
        self._confinement = confinement or Confinement()
        self._inherited = dict(os.environ) if inherited is None else inherited
        self._processes = processes

    async def run(self, args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        """Do it. Raises ToolError for a call that cannot be done as asked."""
        call = self._call(args, ctx)
        placed = where(args, ctx.standing, ctx.settings.tools.exec.host)
        confinement = self._place(placed, call, ctx)
        await confinement.ready()
        cleared = await _clear(call, ctx, confinement, free=placed.unasked)
        if isinstance(cleared, ToolResult):
            return cleared
        child = cleared.start
        job = Job(
            child.argv, call.cwd, child.env, ctx.run_id, ctx.tool_call_id, call.timeout_s,
            stdin=call.background, terminal=call.terminal, monitor=child.monitor, stop=child.stop,
        )  # fmt: skip
        running: Running | None = None
        try:
            running = await start(ctx.world, job, ctx.output)
            if isinstance(confinement, Boxed):
                running.on_end(confinement.hold())
            ran = await attend(ctx.world, running, ctx.scope, call.yield_s)
            if ran is None:
                return confinement.told(await self._leave(running, cleared, call, ctx))
        except OSError as error:
            reason = error.strerror or str(error)
            await _record(cleared, call, {"error": reason}, ctx)
            raise ToolError(f"The command could not be started: {reason}.") from error
        except asyncio.CancelledError:
            if running is not None and running.ran is not None and running.ran.escaped:
                # There is no result that could say it: the stopped call's output does.
                ctx.output(f"\n{results.escaped(running.ran)}\n")
            why = ctx.scope.reason or "cancelled"
            await shielded(_record(cleared, call, {"aborted": str(why)}, ctx))
            raise
        result = confinement.told(results.of(ran, call.cwd, call.timeout_s))
        await _record(cleared, call, result.details or {}, ctx)
        return unanswered.noted(result, cleared.note)

    def _place(self, placed: Where, call: Call, ctx: ToolContext) -> Confinement | Boxed:
        """On this machine or in the session's sandbox. Raises ToolError where there is none."""
        box = ctx.standing.box
        if placed.host is not Host.SANDBOX or box is None:
            return self._confinement
        prepend = ctx.settings.tools.exec.path_prepend
        return self._confinement.boxed(
            box, call.command, call.overrides, terminal=call.terminal, path_prepend=prepend
        )

    async def _leave(
        self, running: Running, cleared: Cleared, call: Call, ctx: ToolContext
    ) -> ToolResult:
        """Hand the command to the table. Until the model knows of it, an abort still stops it."""
        table = self._processes
        assert table is not None

        async def on_end(ran: Ran) -> None:
            if cleared.record is not None:
                ended = results.of(ran, call.cwd, call.timeout_s).details or {}
                await _record(cleared, call, {**ended, "background": entry.id}, ctx)

        settings = ctx.settings.tools.exec
        keep = Keep(
            settings.cleanup_ms, settings.notify_on_exit, settings.notify_on_exit_empty_success
        )
        entry = table.adopt(
            running, session_key=ctx.session_key, command=call.command, keep=keep, on_end=on_end
        )
        said = {"status": "running", "background": entry.id, "pid": running.pid}
        try:
            await _record(cleared, call, said, ctx)
            await table.written()
        except asyncio.CancelledError:
            await shielded(table.kill(entry, "run stopped"))
            table.drop(entry)
            raise
        tail = entry.tail
        if len(running.tail.text()) <= len(tail):
            running.drain()  # all of it is in this answer: the next poll need not repeat it
        left = results.running(
            entry.id, running.pid, running.started_ms, call.cwd, tail, running.warning
        )
        return unanswered.noted(left, cleared.note)

    def _call(self, args: Mapping[str, object], ctx: ToolContext) -> Call:
        command = str(args["command"])
        if not command.strip():
            raise ToolError("exec: command is empty.")
        passable("command", command)
        cwd = directory(args.get("workdir"), ctx.workspace, ctx.standing.box)
        wanted = args.get("env")
        given = wanted if isinstance(wanted, Mapping) else {}
        try:
            overrides = environment.checked_overrides(
                {str(name): str(value) for name, value in given.items()}
            )
        except environment.EnvRefused as refused:
            raise ToolError(f"exec: {refused}") from refused
        for name, value in overrides.items():
            passable(f"env {name}", value)
        settings = ctx.settings
        base = environment.base_environment(
            settings.env or self._inherited,
            secret_names=settings.resolved_env_names,
            secret_values=settings.secret_values,
            path_prepend=settings.tools.exec.path_prepend,
        )
        marks = {
            environment.RUN_ID: ctx.run_id,
            environment.CALL_ID: ctx.tool_call_id,
            "PWD": cwd,
        }
        terminal = args.get("pty") is True
        if terminal:
            base["TERM"] = TERMINAL_NAME
        env = {**base, **overrides, **marks}
        return Call(
            command, cwd, str(ctx.workspace), env, overrides,
            time_limit(args, settings.tools.exec.timeout_sec),
            background=args.get("background") is True,
            yield_s=self._yield_s(args, settings),
            terminal=terminal,
        )  # fmt: skip

    def _yield_s(self, args: Mapping[str, object], settings: Settings) -> float | None:
        """Seconds until the command moves to the background; None = never."""
        if self._processes is None:
            if args.get("background") is True:
                raise ToolError("exec: there is no background here. Leave background out.")
            return None
        if args.get("background") is True:
            return 0.0
        given = args.get("yieldMs")
        ms = given if isinstance(given, (int, float)) else settings.tools.exec.background_ms
        low, high = YIELD_RANGE_MS
        return min(max(ms, low), high) / 1000


async def _clear(
    call: Call, ctx: ToolContext, confinement: Confinement | Boxed, *, free: bool
) -> Cleared | ToolResult:
    """Get leave to run: by rule, or from the operator; asks anew, once, after a change.

    `free` asks nobody, but what the policy refuses stays refused.
    """
    refuse_in_look(ctx, "exec")
    policy = await policy_of(ctx)
    unasked = await confinement.replaces_asking(ctx.mode(), policy)
    if free or (unasked and isinstance(confinement, Boxed)):
        policy = policy.under(PermissionMode.FULL)

    def wrap(start: Start, scope: Scope = Scope.MACHINE) -> Wrapped:
        return confinement.wrap(start.argv, call.cwd, start.env, ctx, scope)

    def bound(verdict: Verdict, *, by_rule: bool) -> Wrapped:
        if isinstance(confinement, Boxed):  # other files than the ones that were looked at
            return wrap(plain)
        return wrap(_start(call, verdict, ctx, by_rule=by_rule))

    plain = Start((SHELL, "-c", call.command), call.env)
    changes: tuple[str, ...] = ()
    for _ in range(2):
        verdict = await asyncio.to_thread(_decide, call, policy)
        answer, reasons = _with_env(call, verdict, policy)
        if answer is Answer.DENY:
            return results.denied_by_policy(reasons, call.cwd)
        if answer is Answer.ALLOW and not changes:
            if verdict.enforced_argv is None:
                return Cleared(await asyncio.to_thread(wrap, plain), None, ())
            child = await asyncio.to_thread(bound, verdict, by_rule=True)
            return Cleared(child, None, verdict.rules_used)
        if answer is Answer.ASK and unasked:
            return Cleared(await asyncio.to_thread(wrap, plain, Scope.WORKSPACE), None, ())
        told = (*_fresh(changes), *reasons, *_manner(call))
        question = _ask(call, verdict, policy, ctx, reasons=told, confinement=confinement)
        outcome = await ask_operator(ctx, question)
        stands_in = unanswered.stand_in(outcome.record, verdict, policy)
        if not outcome.allowed and stands_in is None:
            return refusal(outcome, "the command")
        if outcome.decision is Decision.ALLOW_ALWAYS:
            await _remember(verdict, ctx)
        by_rule = stands_in is Security.ALLOWLIST
        child = await asyncio.to_thread(bound, verdict, by_rule=by_rule)
        # Last before the spawn: nothing is awaited between this answer and it.
        changes = await asyncio.to_thread(verify, verdict.binding, call.env, _FS)
        if not changes:
            rules = verdict.rules_used if by_rule else ()
            said = unanswered.note(stands_in)
            if said:
                ctx.output(f"{said}\n")
                log.warning("run=%s call=%s %s", ctx.run_id, ctx.tool_call_id, said)
            return Cleared(child, outcome.record, rules, said)
    return results.changed(changes, call.cwd)


def _start(call: Call, verdict: Verdict, ctx: ToolContext, *, by_rule: bool) -> Start:
    """What to start, behind a last check of its own where anything could still change."""
    # Nothing that is confined can put another directory in the place of one in the state directory.
    fixed = call.cwd == call.workspace and contains(ctx.state_dir.root, ctx.workspace)
    make = by_rules if by_rule else by_person
    return make(verdict, call.env, _FS, fixed_cwd=fixed)


def _with_env(call: Call, verdict: Verdict, policy: ExecPolicy) -> tuple[Answer, tuple[str, ...]]:
    """A rule allows a program, not a program with any environment: then it is a miss."""
    names = environment.needs_asking(call.overrides)
    if not names:
        return verdict.verdict, verdict.reasons
    reasons = (*verdict.reasons, f"sets {', '.join(names)}, which no rule covers")
    if verdict.verdict is not Answer.ALLOW or policy.security is Security.FULL:
        return verdict.verdict, reasons
    return (Answer.DENY if policy.ask is Ask.OFF else Answer.ASK), reasons


def _fresh(changes: tuple[str, ...]) -> tuple[str, ...]:
    return (CHANGED, *changes) if changes else ()


def _manner(call: Call) -> tuple[str, ...]:
    """What is unusual about how it would run, for the operator."""
    limit = ", without a time limit" if call.timeout_s is None else ""
    manner = []
    if call.background:
        manner.append(f"runs in the background{limit}")
    elif limit:
        manner.append(f"may go on in the background{limit}")
    if call.terminal:
        manner.append("runs on a pseudo-terminal of its own")
    return tuple(manner)


def _decide(call: Call, policy: ExecPolicy) -> Verdict:
    return evaluate(call.command, call.cwd, call.env, policy, _FS, workspace=call.workspace)


def _ask(
    call: Call,
    verdict: Verdict,
    policy: ExecPolicy,
    ctx: ToolContext,
    *,
    reasons: tuple[str, ...],
    confinement: Confinement | Boxed,
) -> ApprovalAsk:
    return ApprovalAsk(
        kind=ApprovalKind.EXEC,
        command=call.command,
        cwd=call.cwd,
        agent_id=ctx.agent_id,
        session_key=ctx.session_key,
        run_id=ctx.run_id,
        tool_call_id=ctx.tool_call_id,
        why=ctx.why,
        binding=verdict.binding,
        host=confinement.host,
        sandbox=confinement.label,
        security=policy.security.value,
        ask=policy.ask.value,
        env_changes=environment.changes(call.overrides),
        redirections=verdict.redirections,
        reasons=reasons,
        segments=verdict.segments,
        always=verdict.always,
    )


async def _remember(verdict: Verdict, ctx: ToolContext) -> None:
    """Store the rules of an "always". Without them the command still runs: once was allowed."""
    offer = verdict.always
    command = verdict.binding.command
    try:
        await ctx.exec_approvals.add_always(
            ctx.agent_id, offer.patterns, dict(offer.content_hash),
            command=command, arguments=offer.arguments,
        )  # fmt: skip
    except ClawError as error:
        ctx.output(f"[The rule was not stored: {error.sentence()}]\n")
        log.warning("allow-always: %s", error.sentence())


async def _record(
    cleared: Cleared, call: Call, ran: Mapping[str, object], ctx: ToolContext
) -> None:
    """Write down what became of an approval, or that a rule was used. Never fails the call."""
    if cleared.record is not None:
        shown = {name: value for name, value in ran.items() if name != "cwd"}
        await ctx.approvals.record_ran(cleared.record.id, shown)
        return
    try:
        await ctx.exec_approvals.touch(cleared.rules, call.command)
    except ClawError as error:
        log.warning("rule use: %s", error.sentence())
