"""The inbox's own commands: `/status`. Answers come from what is known, never from a model."""

from __future__ import annotations

from claw_engine.errors import ClawError
from claw_engine.inbox.commands import Command, CommandCall, Commands
from claw_engine.inbox.ports import DispatchDeps


def builtin_commands(deps: DispatchDeps) -> Commands:
    """A registry with `/help` and `/status`; other rooms register theirs at wiring."""
    commands = Commands()

    async def status(call: CommandCall) -> str:
        return status_text(deps, call.session_key)

    commands.register(Command("/status", "says which model answers and what is going on", status))
    return commands


def status_text(deps: DispatchDeps, session_key: str) -> str:
    """Model, this session's runs and context, the lanes, one line each."""
    lines = [f"Model: {_model(deps)}", f"Session: {session_key}"]
    runs = deps.runs.of_session(session_key)
    lines += [f"Run {run.id}: {run.state.value}" for run in runs] or ["Nothing is running here."]
    entry = deps.sessions.get(session_key)
    used = entry.number("totalTokens") if entry is not None else None
    window = entry.number("contextTokens") if entry is not None else None
    if used is not None and window:
        lines.append(f"Context: {used} of {window} tokens ({100 * used // window} %)")
    for lane in deps.lanes.status():
        if lane.active or lane.queued or lane.parked:
            lines.append(
                f"Lane {lane.lane}: {lane.active} of {lane.width} active, {lane.queued} queued, "
                f"{lane.parked} waiting for the operator"
            )
    if deps.lanes.paused:
        lines.append("The lanes are paused: nothing new starts.")
    return "\n".join(lines)


def _model(deps: DispatchDeps) -> str:
    try:
        ref = deps.agent.deps.models.resolve(deps.settings())
    except ClawError as error:
        return f"none ({error.sentence()})"
    return ref.name if ref.is_ai else f"{ref.name} (not an AI)"
