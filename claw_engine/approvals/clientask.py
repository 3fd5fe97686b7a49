"""A question that a gateway client brings: about a command that the client runs itself. Pure.

The engine neither looks the command up nor binds it: what a card says of it is what can be read
from its text, and it says that nobody here checks it. No rule and no grant can come of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.approvals.model import (
    AlwaysOffer,
    ApprovalAsk,
    ApprovalKind,
    Binding,
    SegmentView,
)
from claw_engine.approvals.risks import redirection_risks, risk_notes
from claw_engine.approvals.shell import parse

NOT_OURS = "the client that asks runs it itself; nothing is checked or remembered here"


def client_ask(command: str, said: Mapping[str, object]) -> ApprovalAsk:
    """The question for `command`; `said` are the request's other fields by their wire names, and
    `name`: who asks."""
    cwd = _text(said, "cwd")
    parsed = parse(command)
    extra = redirection_risks(parsed.redirections, cwd)
    views = []
    for index, segment in enumerate(parsed.segments):
        piped = index > 0 and parsed.operators[index - 1] in ("|", "|&")
        before = parsed.segments[index - 1].argv if piped else None
        notes = risk_notes(segment.argv, workspace=cwd, piped_from=before)
        resolved = _text(said, "resolvedPath") if index == 0 else ""
        views.append(
            SegmentView(
                segment.text,
                segment.argv,
                resolved or None,
                None,
                "not looked up here",
                tuple(dict.fromkeys((*notes, *extra))),
            )
        )
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
