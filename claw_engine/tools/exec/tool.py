"""The exec tool: decide, ask, check that what was approved is still what would run, run, report.

The order is fixed: what the operator saw is bound before the wait and compared right before the
spawn. Knows nothing of how a decision is made (approvals) or how a process is stopped (run, stop).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from claw_engine.approvals.binding import verify
from claw_engine.approvals.evaluate import SHELL, Answer, RuleUse, Verdict, evaluate
from claw_engine.approvals.fsview import RealFs
from claw_engine.approvals.model import ApprovalAsk, ApprovalKind, ApprovalRecord, Decision
from claw_engine.approvals.policy import Ask, ExecPolicy, Security
from claw_engine.errors import ClawError
from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from claw_engine.tools.exec import env as environment
from claw_engine.tools.exec import results
from claw_engine.tools.exec.run import Job, run, shielded
from claw_engine.tools.permission import CHANGED, ask_operator, policy_of, refusal

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """One call, ready to be decided about: `env` is the whole environment of the child."""

    command: str
    cwd: str
    workspace: str
    env: Mapping[str, str]
    overrides: Mapping[str, str]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Cleared:
    """What may be spawned now, by which answer (None = by the policy) and by which rules."""

    argv: tuple[str, ...]
    record: ApprovalRecord | None
    rules: tuple[RuleUse, ...]


class ExecTool:
    """Run a shell command on this machine, in a session of its own."""

    name = "exec"
    summary = "Run a shell command"
    description = (
        "Run a shell command and return what it prints (stdout and stderr together). The operator "
        "may have to approve it first: say beforehand why you need it. There is no terminal and no "
        "input; the command ends when the timeout is over. Prefer one simple command to a chain."
    )
    parameters: Mapping[str, object] = {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "Command for /bin/sh",
                "examples": ["ls -la"],
            },
            "workdir": {
                "type": "string",
                "description": "Directory to run in (default: the workspace)",
            },
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Further environment variables",
            },
            "timeout": {
                "type": "number",
                "minimum": 1,
                "maximum": 86400,
                "description": "Seconds until it is stopped (default 1800)",
            },
        },
        "required": ["command"],
    }

    def __init__(self, inherited: Mapping[str, str] | None = None) -> None:
        self._inherited = dict(os.environ) if inherited is None else inherited

    async def run(self, args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        """Do it. Raises ToolError for a call that cannot be done as asked."""
        call = self._call(args, ctx)
        cleared = await _clear(call, ctx)
        if isinstance(cleared, ToolResult):
            return cleared
        job = Job(cleared.argv, call.cwd, call.env, ctx.run_id, ctx.tool_call_id, call.timeout_s)
        try:
            ran = await run(ctx.world, job, ctx.scope, ctx.output)
        except OSError as error:
            reason = error.strerror or str(error)
            await _record(cleared, call, {"error": reason}, ctx)
            raise ToolError(f"The command could not be started: {reason}.") from error
        except asyncio.CancelledError:
            why = ctx.scope.reason or "cancelled"
            await shielded(_record(cleared, call, {"aborted": str(why)}, ctx))
            raise
        result = results.of(ran, call.cwd, call.timeout_s)
        await _record(cleared, call, result.details or {}, ctx)
        return result

    def _call(self, args: Mapping[str, object], ctx: ToolContext) -> Call:
        command = str(args["command"])
        if not command.strip():
            raise ToolError("exec: command is empty.")
        _passable("command", command)
        cwd = _directory(args.get("workdir"), ctx.workspace)
        wanted = args.get("env")
        given = wanted if isinstance(wanted, Mapping) else {}
        try:
            overrides = environment.checked_overrides(
                {str(name): str(value) for name, value in given.items()}
            )
        except environment.EnvRefused as refused:
            raise ToolError(f"exec: {refused}") from refused
        for name, value in overrides.items():
            _passable(f"env {name}", value)
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
        timeout = args.get("timeout")
        seconds = timeout if isinstance(timeout, (int, float)) else settings.tools.exec.timeout_sec
        env = {**base, **overrides, **marks}
        return Call(command, cwd, str(ctx.workspace), env, overrides, seconds)


async def _clear(call: Call, ctx: ToolContext) -> Cleared | ToolResult:
    """Get leave to run: by rule, or from the operator; asks anew, once, after a change."""
    policy = await policy_of(ctx)
    changes: tuple[str, ...] = ()
    for _ in range(2):
        verdict = await asyncio.to_thread(_decide, call, policy)
        answer, reasons = _with_env(call, verdict, policy)
        if answer is Answer.DENY:
            return results.denied_by_policy(reasons, call.cwd)
        if answer is Answer.ALLOW and not changes:
            argv = verdict.enforced_argv or (SHELL, "-c", call.command)
            return Cleared(argv, None, verdict.rules_used)
        question = _ask(call, verdict, policy, ctx, reasons=(*_fresh(changes), *reasons))
        outcome = await ask_operator(ctx, question)
        if not outcome.allowed:
            return refusal(outcome, "the command")
        if outcome.decision is Decision.ALLOW_ALWAYS:
            await _remember(verdict, ctx)
        # Last before the spawn: nothing is awaited between this answer and it.
        changes = await asyncio.to_thread(verify, verdict.binding, call.env, RealFs())
        if not changes:
            return Cleared((SHELL, "-c", call.command), outcome.record, ())
    return results.changed(changes, call.cwd)


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


def _decide(call: Call, policy: ExecPolicy) -> Verdict:
    fs = RealFs()
    return evaluate(call.command, call.cwd, call.env, policy, fs, workspace=call.workspace)


def _ask(
    call: Call,
    verdict: Verdict,
    policy: ExecPolicy,
    ctx: ToolContext,
    *,
    reasons: tuple[str, ...],
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
            ctx.agent_id, offer.patterns, dict(offer.content_hash), command=command
        )
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


def _passable(what: str, text: str) -> None:
    """Raises ToolError for text that no program can be given."""
    if "\0" in text:
        raise ToolError(f"exec: {what} contains a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(
            f"exec: {what} is not valid Unicode text (half a surrogate pair)."
        ) from None


def _directory(workdir: object, workspace: Path) -> str:
    path = workspace
    if isinstance(workdir, str) and workdir.strip():
        _passable("workdir", workdir)
        try:
            path = workspace / Path(workdir).expanduser()
        except RuntimeError:
            raise ToolError(f"exec: workdir {workdir}: there is no such user.") from None
    text = os.path.normpath(path)
    if not Path(text).is_dir():
        raise ToolError(
            f"exec: workdir {text} is not a directory. Leave workdir out to run in the workspace "
            f"({workspace})."
        )
    return text
