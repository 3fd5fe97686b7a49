"""A question that a gateway client brings: about a command that the client runs itself. Pure.

The engine neither looks the command up nor binds it: what a card says of it is what can be read
from its text, and it says that nobody here checks it. No rule and no grant can come of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from claw_engine.approvals.model import (
    AlwaysOffer,
    ApprovalAsk,
    ApprovalKind,
    Binding,
    SegmentView,
)
from claw_engine.approvals.risks import command_risks
from claw_engine.approvals.shell import parse

NOT_OURS = "the client that asks runs it itself; nothing is checked or remembered here"


def client_ask(command: str, said: Mapping[str, object]) -> ApprovalAsk:
    """The question for `command`; `said` are the request's other fields by their wire names, and
    `name`: who asks."""
    cwd = _text(said, "cwd")
    parsed = parse(command)
    views = [
        SegmentView(segment.text, segment.argv, None, None, "not looked up here", notes)
        for segment, notes in zip(parsed.segments, command_risks(parsed, cwd), strict=True)
    ]
    if views:
        views[0] = replace(views[0], resolved=_text(said, "resolvedPath") or None)
    env = said.get("env")
    changes = tuple(f"{name}={env[name]}" for name in sorted(env)) if isinstance(env, dict) else ()
    kept = {name: value for name, value in said.items() if name != "env" and value is not None}
    return ApprovalAsk(
        kind=ApprovalKind.EXEC,
        command=command,
        cwd=cwd,
        agent_id=_text(said, "agentId"),
        session_key=_text(said, "sessionKey"),
        run_id="",
        tool_call_id="",
        why="",
        binding=Binding(command, cwd, "", (0, 0), ""),
        host=_text(said, "host"),
        security=_text(said, "security"),
        ask=_text(said, "ask"),
        env_changes=changes,
        redirections=parsed.redirections,
        reasons=(f"asked by {_text(said, 'name') or 'a client'}: {NOT_OURS}", *parsed.problems),
        segments=tuple(views),
        always=AlwaysOffer(refusal=NOT_OURS),
        client=kept,
    )


def _text(said: Mapping[str, object], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""
