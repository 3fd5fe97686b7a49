"""`/usage`: the line under each answer (off, tokens, full), and what was spent (cost)."""

from __future__ import annotations

from claw_engine.errors import ClawError
from claw_engine.inbox.commands import CommandCall
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.usage.desk import UsageDesk
from claw_engine.usage.words import counts

MODES = ("off", "tokens", "full")
"""A bare `/usage` goes from one to the next (agent digest §10.3)."""
_SAID = {
    "off": "Usage line: off.",
    "tokens": "Usage line: tokens and cost under each answer.",
    "full": "Usage line: tokens, cost and the session under each answer.",
}


async def answer(deps: DispatchDeps, desk: UsageDesk, call: CommandCall) -> str:
    """What `/usage` says; the mode is OpenClaw's `responseUsage` field of the session."""
    word = (call.args.split() or [""])[0].lower()
    word = "tokens" if word == "on" else word
    entry = deps.sessions.get(call.session_key)
    if word == "cost":
        return await _cost(deps, desk, call.session_key)
    if word and word not in MODES:
        valid = ", ".join((*MODES, "cost"))
        return f'Unrecognized usage mode "{word}". Valid modes: {valid}.'
    if not word:
        now = (entry.text("responseUsage") if entry else "") or "off"
        word = MODES[(MODES.index(now) + 1) % len(MODES)] if now in MODES else "tokens"
    fields = {
        "responseUsage": None if word == "off" else word,
        "updatedAt": deps.world.clock.now_ms(),
    }
    await deps.sessions.update(call.session_key, lambda entry: entry.replace(**fields))
    return _SAID[word]


async def standing(deps: DispatchDeps, desk: UsageDesk, key: str) -> list[str]:
    """A line for each budget, for `/status`."""
    entry = deps.sessions.get(key)
    try:
        found = await desk.budgets(key, entry.session_id if entry is not None else "")
    except ClawError as error:
        return [f"Budgets: unknown ({error.sentence()})"]
    return [f"Budget of the {budget['scope']}: {budget['text']}." for budget in found]


async def _cost(deps: DispatchDeps, desk: UsageDesk, key: str) -> str:
    entry = deps.sessions.get(key)
    month = desk.days(days=30)
    try:
        lines = [
            f"{name}: {counts(sums)}" if sums.calls else f"{name}: nothing yet"
            for name, sums in (
                ("This session", await desk.session(entry.session_id if entry else "")),
                ("Today", await desk.span(month[-1:])),
                ("Last 30 days", await desk.span(month)),
            )
        ]
    except ClawError as error:
        return f"What was spent cannot be read: {error.sentence()}"
    return "\n".join((*lines, *await standing(deps, desk, key)))
