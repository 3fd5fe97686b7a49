"""The question about a file outside the workspace, ready for the broker. Blocking file access."""

from __future__ import annotations

from claw_engine.approvals.binding import bind_file
from claw_engine.approvals.fsview import FsView
from claw_engine.approvals.model import AlwaysOffer, ApprovalAsk, ApprovalKind

NO_RULE_FOR_FILES = AlwaysOffer(
    refusal="a file outside the workspace is allowed once at a time; there is no rule for files"
)


def ask_for_file(
    kind: ApprovalKind,
    path: str,
    *,
    workspace: str,
    agent_id: str,
    session_key: str,
    run_id: str,
    tool_call_id: str,
    why: str,
    fs: FsView,
) -> ApprovalAsk:
    """Ask to read, write or edit one absolute path; bound as `bind_file` says."""
    binding = bind_file(kind, path, fs)
    target = binding.files[0]
    reasons = [f"{path} is outside the workspace"]
    if target.real != path:
        reasons.append(f"it leads to {target.real}")
    if (target.dev, target.ino) == (0, 0):
        reasons.append("it does not exist yet")
    return ApprovalAsk(
        kind=kind,
        command=binding.command,
        cwd=workspace,
        agent_id=agent_id,
        session_key=session_key,
        run_id=run_id,
        tool_call_id=tool_call_id,
        why=why,
        binding=binding,
        reasons=tuple(reasons),
        always=NO_RULE_FOR_FILES,
    )
