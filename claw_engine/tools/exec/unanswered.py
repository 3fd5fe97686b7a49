"""What stands in for an operator who did not answer: `askFallback` of exec-approvals.json.

Only a request that ran out of time: one that was denied, cancelled or cut off by a restart is no.
"""

from __future__ import annotations

from msgspec.structs import replace

from claw_engine.approvals.evaluate import Verdict
from claw_engine.approvals.model import ApprovalRecord, Status
from claw_engine.approvals.policy import ExecPolicy, Security
from claw_engine.tools.base import ToolResult

_HIDING = ("decoded text", "piped in", "network download")
"""Risk notes of commands whose text does not show what they would run."""


def stand_in(record: ApprovalRecord, verdict: Verdict, policy: ExecPolicy) -> Security | None:
    """What lets an unanswered command run (gateway digest §5.5); None = it is denied.

    `full` lets what can be read run, never a command that hides what it would do.
    """
    if record.status is not Status.EXPIRED or record.reason != "timeout":
        return None
    match policy.ask_fallback:
        case Security.ALLOWLIST if verdict.satisfied:
            return Security.ALLOWLIST
        case Security.FULL if verdict.literal_argv is not None and not _hides(verdict):
            return Security.FULL
        case _:
            return None


def note(by: Security | None) -> str:
    """For the operator and the model; "" when somebody answered."""
    return "" if by is None else f"[Nobody answered in time; askFallback {by.value} let it run.]"


def noted(result: ToolResult, said: str) -> ToolResult:
    """The result, beginning with the note."""
    return replace(result, text=f"{said}\n\n{result.text}") if said else result


def _hides(verdict: Verdict) -> bool:
    risks = [risk for segment in verdict.segments for risk in segment.risks]
    return any(word in risk for risk in risks for word in _HIDING)
