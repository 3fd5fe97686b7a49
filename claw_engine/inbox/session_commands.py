"""Commands of a session: `/new /reset /queue /think /reasoning /verbose /elevated /model /whoami`.

Each writes the fields OpenClaw uses and answers in words; a bare one says what holds now.
Effects: agent digest §10.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from claw_engine.agent.run import TRUSTED_SOURCES
from claw_engine.errors import ClawError
from claw_engine.inbox.commands import Command, CommandCall, Commands, Forward
from claw_engine.inbox.overrides import THINKING, model_override
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.queue_directive import acknowledgement, describe, entry_fields, find
from claw_engine.inbox.rules import channel_of, session_rules
from claw_engine.models.base import ModelConfigError, ModelRef
from claw_engine.sessions.entry import SessionEntry

RESET_WAIT_S = 15.0
"""Seconds that a session's runs may take to stop before a reset gives up (gateway digest §1.11)."""

Fields = dict[str, object]

_LEVEL_WORDS = {
    "on": "low", "enable": "low", "enabled": "low", "think": "minimal", "min": "minimal",
    "mid": "medium", "med": "medium", "max": "high", "highest": "high", "ultra": "high",
    "x-high": "xhigh", "disable": "off", "disabled": "off", "none": "off",
}  # fmt: skip
_VERBOSE = ("on", "full", "off")
_REASONING = ("on", "off", "stream")


class Resetter(Protocol):
    """Starts a session anew once nothing of it is going on. Raises ClawError."""

    async def __call__(self, session_key: str, reason: str) -> SessionEntry: ...


class SessionBusy(ClawError):
    """A run of the session did not stop in time."""

    retryable = True


class SessionCommands(Struct, frozen=True):
    """`named` turns a model's name into a model; `reset` starts a session anew."""

    deps: DispatchDeps
    reset: Resetter
    named: Callable[[str], ModelRef]

    def register(self, commands: Commands) -> None:
        """Put all of them into the registry."""
        for name, summary, run, aliases in (
            ("/new", "starts a new conversation: /new [model] [message]", self._anew, ()),
            ("/reset", "the same as /new", self._anew, ()),
            ("/queue", "what messages do that arrive during a run", self._queue, ()),
            ("/think", f"thinking level: {', '.join(THINKING)}", self._think, ("/thinking", "/t")),
            ("/verbose", f"tool notices: {', '.join(_VERBOSE)}", self._verbose, ("/v",)),
            ("/reasoning", f"shown reasoning: {', '.join(_REASONING)}", self._reasoning,
             ("/reason",)),
            ("/elevated", "commands outside the sandbox: off, on (asks), full (never asks)",
             self._elevated, ("/elev",)),
            ("/model", "the model of this session: provider/model, or default", self._model, ()),
            ("/whoami", "who you are to this engine", self._whoami, ("/id",)),
        ):  # fmt: skip
            commands.register(Command(name, summary, run, aliases))

    # -- the conversation ----------------------------------------------------------------------

    async def _anew(self, call: CommandCall) -> str | Forward:
        word, _, rest = call.args.partition(" ")
        ref = self._try_model(word) if "/" in word else None
        await self.reset(call.session_key, call.name.removeprefix("/"))
        text = call.args
        if ref is not None:
            await self._set(call, _override(ref))
            text = rest.strip()
        if text:
            return Forward(text)
        with_model = f" Model set to {ref.name}." if ref is not None else ""
        return f"New session started.{with_model}"

    def _try_model(self, name: str) -> ModelRef | None:
        try:
            return self.named(name)
        except ModelConfigError:
            return None

    async def _model(self, call: CommandCall) -> str:
        name = call.args.split("\n", 1)[0].strip()
        entry = self._entry(call)
        if not name or name.lower() in ("status", "list"):
            own = model_override(entry)
            current = own or self._default()
            where = "set for this session" if own else "the default"
            return f"Model: {current} ({where}).\nSwitch: /model provider/model, /model default."
        if name.lower() in ("default", "reset"):
            await self._set(call, {"providerOverride": None, "modelOverride": None})
            return f"Model reset to default ({self._default()})."
        if name.isdecimal():
            return "A model is chosen by its name, not by a number: /model provider/model."
        try:
            ref = self.named(name)
        except ModelConfigError as error:
            return f"{error.sentence()} Nothing was changed."
        await self._set(call, _override(ref))
        return f"Model set to {ref.name}."

    def _default(self) -> str:
        try:
            return self.deps.agent.deps.models.resolve(self.deps.settings()).name
        except ClawError as error:
            return f"none ({error.sentence()})"

    # -- options -------------------------------------------------------------------------------

    async def _queue(self, call: CommandCall) -> str:
        directive = find(f"/queue {call.args}".strip())
        assert directive is not None
        settings, channel = self.deps.settings(), channel_of(call.message)
        if not directive.bare and not directive.bad:
            await self._set(call, entry_fields(directive))
        now = session_rules(settings, channel, self._entry(call))
        answer = acknowledgement(directive, now)
        return f"{answer}\n{describe(now)}" if directive.reset else answer

    async def _think(self, call: CommandCall) -> str:
        word = _first(call.args)
        level = _LEVEL_WORDS.get(word, word)
        if not word:
            entry = self._entry(call)
            default = self.deps.settings().agents.defaults.thinking_default or "off"
            now = (entry.text("thinkingLevel") if entry else "") or default
            return f"Current thinking level: {now}.\nOptions: {', '.join(THINKING)}."
        if level not in THINKING:
            return _unknown("thinking", word, THINKING)
        await self._set(call, {"thinkingLevel": level})
        return "Thinking disabled." if level == "off" else f"Thinking level set to {level}."

    async def _verbose(self, call: CommandCall) -> str:
        words = {"off": "disabled", "on": "enabled", "full": "set to full"}
        said = await self._choose(call, "verbose", "verboseLevel", "Verbose", _VERBOSE, words)
        return _elsewhere(said, call)

    async def _reasoning(self, call: CommandCall) -> str:
        words = {"off": "hidden", "on": "shown", "stream": "streamed"}
        said = await self._choose(
            call, "reasoning", "reasoningLevel", "Reasoning", _REASONING, words
        )
        return _elsewhere(said, call)

    async def _elevated(self, call: CommandCall) -> str:
        words = {
            "off": "off: commands stay in the session's sandbox",
            "on": "on: commands run outside the sandbox and ask",
            "ask": "on: commands run outside the sandbox and ask",
            "full": "full: commands run outside the sandbox and nothing asks, until you switch it",
        }
        return await self._choose(
            call, "elevated", "elevatedLevel", "Elevated", tuple(words), words
        )

    async def _choose(
        self, call: CommandCall, kind: str, field: str, title: str, levels: tuple[str, ...],
        words: dict[str, str],
    ) -> str:  # fmt: skip
        word = _first(call.args)
        if not word:
            entry = self._entry(call)
            now = (entry.text(field) if entry else "") or "off"
            return f"Current {kind} level: {now}.\nOptions: {', '.join(levels)}."
        if word not in levels:
            return _unknown(kind, word, levels)
        await self._set(call, {field: word})
        return f"{title} {words[word]}."

    async def _whoami(self, call: CommandCall) -> str:
        message = call.message
        lines = [
            f"Channel: {channel_of(message)}",
            f"Session: {message.session_key}",
            f"Agent: {message.agent_id}",
        ]
        sender = message.extra.get("senderId") or message.extra.get("from")
        lines.append(f"Sender: {sender}" if sender else "Sender: the operator")
        return "\n".join(lines)

    def _entry(self, call: CommandCall) -> SessionEntry | None:
        return self.deps.sessions.get(call.session_key)

    async def _set(self, call: CommandCall, fields: Fields) -> None:
        now = self.deps.world.clock.now_ms()
        await self.deps.sessions.update(
            call.session_key, lambda entry: entry.replace(**{**fields, "updatedAt": now})
        )


def _override(ref: ModelRef) -> Fields:
    return {"providerOverride": ref.provider, "modelOverride": ref.id}


def _elsewhere(said: str, call: CommandCall) -> str:
    """What a level does not change where everything is told anyway."""
    if call.message.source not in TRUSTED_SOURCES:
        return said
    return f"{said}\nIt is kept for chat channels; here everything is shown at any level."


def _first(args: str) -> str:
    words = args.split()
    return words[0].lower() if words else ""


def _unknown(kind: str, word: str, levels: tuple[str, ...]) -> str:
    return f'Unrecognized {kind} level "{word}". Valid levels: {", ".join(levels)}.'


def stopping_reset(
    clear: Callable[[str, float], Awaitable[bool]],
    reset: Callable[[str, str], Awaitable[SessionEntry]],
) -> Resetter:
    """A reset that first stops everything of the session and tells the senders."""

    async def run(session_key: str, reason: str) -> SessionEntry:
        await stopped(clear, session_key)
        return await reset(session_key, reason)

    return run


async def stopped(clear: Callable[[str, float], Awaitable[bool]], session_key: str) -> None:
    """Return once nothing of the session goes on any more. Raises SessionBusy."""
    if not await clear(session_key, RESET_WAIT_S):
        raise SessionBusy(f"A run of {session_key} is still active.", hint="Try again in a moment.")
