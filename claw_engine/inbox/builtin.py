"""The inbox's own commands: `/status`, `/context` and those of a session.

Answers come from what is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from claw_engine.errors import ClawError
from claw_engine.inbox.commands import Command, CommandCall, Commands
from claw_engine.inbox.overrides import settings_for
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.queue_directive import describe
from claw_engine.inbox.rules import channel_of, session_rules
from claw_engine.runs import RunState
from claw_engine.sessions.entry import SessionEntry

if TYPE_CHECKING:
    from claw_engine.usage.desk import UsageDesk


def builtin_commands(deps: DispatchDeps, desk: Callable[[], UsageDesk]) -> Commands:
    """A registry with `/help`, `/status`, `/context` and `/usage`; more is registered at wiring."""
    commands = Commands()

    async def status(call: CommandCall) -> str:
        text = status_text(deps, call.session_key, channel_of(call.message))
        from claw_engine.inbox.usage_command import standing

        budgets = await standing(deps, desk(), call.session_key)
        return "\n".join((text, *budgets))

    async def context(call: CommandCall) -> str:
        from claw_engine.inbox.context_command import answer  # no start needs it

        return await answer(deps, call)

    async def usage(call: CommandCall) -> str:
        from claw_engine.inbox.usage_command import answer

        return await answer(deps, desk(), call)

    commands.register(Command("/usage", "what answers cost: off, tokens, full, cost", usage))
    commands.register(Command("/context", "what the model is told: list, detail, json", context))
    commands.register(Command("/status", "says which model answers and what is going on", status))
    return commands


def status_text(deps: DispatchDeps, session_key: str, channel: str = "console") -> str:
    """Model, this session's runs and context, the lanes, one line each."""
    entry = deps.sessions.get(session_key)
    lines = [f"Model: {_model(deps, entry)}", f"Session: {session_key}"]
    runs = deps.runs.of_session(session_key)
    lines += [f"Run {run.id}: {run.state.value}" for run in runs] or ["Nothing is running here."]
    for name, field in (("Thinking", "thinkingLevel"), ("Verbose", "verboseLevel"),
                        ("Reasoning", "reasoningLevel")):  # fmt: skip
        if entry is not None and entry.text(field):
            lines.append(f"{name}: {entry.text(field)}")
    depth = sum(1 for run in runs if run.state is RunState.QUEUED)
    rules = session_rules(deps.settings(), channel, entry)
    lines.append(f"{describe(rules)} {depth} waiting.")
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


def _model(deps: DispatchDeps, entry: SessionEntry | None) -> str:
    try:
        ref = deps.agent.deps.models.resolve(settings_for(deps.settings(), entry))
    except ClawError as error:
        return f"none ({error.sentence()})"
    return ref.name if ref.is_ai else f"{ref.name} (not an AI)"
