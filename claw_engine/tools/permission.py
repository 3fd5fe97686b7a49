"""Asks the operator for a tool: the wait that parks the run, and what the model is told after it.

Shared by the file tools and exec. Knows neither: they hand in the question.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.approvals.model import (
    AlwaysOffer,
    ApprovalAsk,
    ApprovalKind,
    Binding,
    BoundFile,
    Outcome,
)
from claw_engine.approvals.policy import Ask, ExecPolicy, PermissionMode, Security
from claw_engine.approvals.safe_bins import configured
from claw_engine.errors import ClawError
from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from claw_engine.tools.guard import Target

_NEVER_ALWAYS = AlwaysOffer(
    refusal="A file outside the workspace is allowed once at a time; there is no rule for files."
)

CHANGED = (
    "Changed since you approved: what was shown is not what would happen now. "
    "This is a fresh request for what is there now."
)


class Leave(StrEnum):
    """What the policy says before anyone is asked."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


async def policy_of(ctx: ToolContext) -> ExecPolicy:
    """The policy of this agent: its file, tightened by the configuration; `full` loosens it."""
    settings = ctx.settings.tools.exec
    caller = ExecPolicy(
        Security(settings.security),
        Ask(settings.ask),
        safe_bins=configured(
            settings.safe_bins, settings.safe_bin_trusted_dirs, settings.safe_bin_profiles
        ),
    )
    policy = await ctx.world.disk.run(ctx.exec_approvals.policy_for, ctx.agent_id, caller)
    policy = policy.tightened(settings.security, settings.ask)
    if ctx.external:
        return policy.tightened(Security.ALLOWLIST.value)
    mode = ctx.mode()
    # What `look` refuses depends on the tool: reading is no change.
    return policy.under(mode) if mode is PermissionMode.FULL else policy


def refuse_in_look(ctx: ToolContext, what: str) -> None:
    """Raises ToolError in the permission mode that changes nothing."""
    if ctx.mode() is PermissionMode.LOOK:
        raise ToolError(
            f"{what}: not in permission mode look (no commands, no writes). Nobody was asked; "
            "the operator can switch the mode."
        )


def leave_outside(policy: ExecPolicy) -> Leave:
    """Whether a file outside the workspace may be touched: like a command that no rule allows."""
    if policy.security is Security.DENY:
        return Leave.DENY
    if policy.ask is Ask.ALWAYS:
        return Leave.ASK
    if policy.security is Security.FULL:
        return Leave.ALLOW
    return Leave.DENY if policy.ask is Ask.OFF else Leave.ASK


async def ask_operator(ctx: ToolContext, ask: ApprovalAsk) -> Outcome:
    """Put the question and wait for its end; the run is parked meanwhile.

    `ctx.on_approval` hears of it twice: when it waits, and when it has ended. A grant answers at
    once, and nothing is parked for it.

    Raises ToolError when it cannot be asked or the run was stopped meanwhile.
    """
    if ctx.notes:
        ask = replace(ask, reasons=(*ctx.notes, *ask.reasons))
    try:
        # What the operator granted in advance was not meant for words from outside.
        granted = None if ctx.external else await ctx.approvals.granted(ask)
        if granted is None:
            async with ctx.operator_wait():
                granted = await ctx.approvals.request(
                    ask, on_pending=ctx.on_approval, by_grant=False
                )
        outcome = granted
    except ToolError:
        raise
    except ClawError as error:
        raise ToolError(f"The operator could not be asked: {error.sentence()}") from error
    ctx.on_approval(outcome.record)
    if ctx.scope.aborted:
        raise ToolError("The run was stopped; nothing was done.")
    return outcome


def refusal(outcome: Outcome, what: str) -> ToolResult:
    """The result for a question that did not end in yes; says the real reason."""
    record = outcome.record
    details: dict[str, object] = {
        "status": "denied" if outcome.decision is not None else "expired",
        "approvalId": record.id,
        "decision": outcome.decision.value if outcome.decision is not None else None,
        "reason": outcome.reason,
    }
    if outcome.decision is not None:
        said = f" Their reason: {outcome.reason}" if outcome.reason else ""
        text = f"Denied by the operator: {what} was not done.{said}"
        text += "\nDo not try the same again in another form; ask or choose another way."
    else:
        minutes = max(1, round((record.expires_at_ms - record.created_at_ms) / 60_000))
        waited = f"nobody answered within {minutes} min" if not outcome.reason else outcome.reason
        if outcome.reason == "timeout":
            waited = f"timeout: nobody answered within {minutes} min"
        text = f"Not approved ({waited}), so it counts as denied: {what} was not done."
    return ToolResult(text, is_error=True, details=details)


class FileQuestion(Struct, frozen=True):
    """What a file tool wants outside the workspace, in words for the operator."""

    kind: ApprovalKind
    target: Target
    text: str
    reasons: tuple[str, ...]
    sha256: str | None


def file_ask(
    ctx: ToolContext, question: FileQuestion, policy: ExecPolicy, *, changed: bool
) -> ApprovalAsk:
    """The approval request of a file tool; bound to the real path, identity and content."""
    target = question.target
    dev, ino = target.identity or (0, 0)
    bound = BoundFile(target.given, str(target.real), question.sha256, dev, ino)
    cwd = str(ctx.workspace)
    reasons = (target.why, *question.reasons)
    binding = Binding(question.text, cwd, str(ctx.workspace.resolve()), (0, 0), "", (bound,))
    return ApprovalAsk(
        kind=question.kind,
        command=question.text,
        cwd=cwd,
        agent_id=ctx.agent_id,
        session_key=ctx.session_key,
        run_id=ctx.run_id,
        tool_call_id=ctx.tool_call_id,
        why=ctx.why,
        binding=binding,
        security=policy.security.value,
        ask=policy.ask.value,
        reasons=((CHANGED, *reasons) if changed else reasons),
        always=_NEVER_ALWAYS,
    )
