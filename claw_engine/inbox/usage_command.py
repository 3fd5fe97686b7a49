"""`/usage`: the line under each answer (off, tokens, full), and what was spent (cost)."""

from __future__ import annotations

from claw_engine.errors import ClawError
from claw_engine.inbox.commands import Command, CommandCall, Commands
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.sessions.entry import SessionEntry
from claw_engine.usage.desk import UsageDesk
from claw_engine.usage.words import counts

MODES = ("off", "tokens", "full")
"""A bare `/usage` goes from one to the next (agent digest §10.3)."""
_SAID = {
    "off": "Usage line: off.",
    "tokens": "Usage line: tokens and cost under each answer.",
    "full": "Usage line: tokens, cost and the session under each answer.",
}


class UsageCommand:
    """Answers in words; the mode is OpenClaw's `responseUsage` field of the session."""

    def __init__(self, deps: DispatchDeps, desk: UsageDesk) -> None:
        self._deps = deps
        self._desk = desk

    def register(self, commands: Commands) -> None:
        """Put it into the registry."""
        summary = f"what answers cost: {', '.join((*MODES, 'cost'))}"
        commands.register(Command("/usage", summary, self._usage))

    async def standing(self, key: str) -> list[str]:
        """A line for each budget, for `/status`."""
        entry = self._deps.sessions.get(key)
        try:
            found = await self._desk.budgets(key, entry.session_id if entry is not None else "")
        except ClawError as error:
            return [f"Budgets: unknown ({error.sentence()})"]
        return [f"Budget of the {budget['scope']}: {budget['text']}." for budget in found]

    async def _usage(self, call: CommandCall) -> str:
        word = (call.args.split() or [""])[0].lower()
        word = "tokens" if word == "on" else word
        entry = self._deps.sessions.get(call.session_key)
        if word == "cost":
            return await self._cost(call.session_key, entry)
        if word and word not in MODES:
            valid = ", ".join((*MODES, "cost"))
            return f'Unrecognized usage mode "{word}". Valid modes: {valid}.'
        if not word:
            now = (entry.text("responseUsage") if entry else "") or "off"
            word = MODES[(MODES.index(now) + 1) % len(MODES)] if now in MODES else "tokens"
        await self._set(call.session_key, word)
        return _SAID[word]

    async def _cost(self, key: str, entry: SessionEntry | None) -> str:
        session_id = entry.session_id if entry is not None else ""
        try:
            month = self._desk.days(days=30)
            lines = [
                f"{name}: {counts(sums)}" if sums.calls else f"{name}: nothing yet"
                for name, sums in (
                    ("This session", await self._desk.session(session_id)),
                    ("Today", await self._desk.span(month[-1:])),
                    ("Last 30 days", await self._desk.span(month)),
                )
            ]
            lines += await self.standing(key)
        except ClawError as error:
            return f"What was spent cannot be read: {error.sentence()}"
        return "\n".join(lines)

    async def _set(self, key: str, mode: str) -> None:
        fields = {
            "responseUsage": None if mode == "off" else mode,
            "updatedAt": self._deps.world.clock.now_ms(),
        }
        await self._deps.sessions.update(key, lambda entry: entry.replace(**fields))
