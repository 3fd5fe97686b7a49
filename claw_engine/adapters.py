"""Thin adapters between the rooms and the gateway's ports. Nothing is decided here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from claw_engine.agent.options import TIMEOUT_FIELD
from claw_engine.agent.ports import RunResult, usage_json
from claw_engine.agent.record import RESUMED_FIELD, RUN_ID_FIELD, RUN_IDS_FIELD
from claw_engine.agent.steering import TAKEN_FIELD
from claw_engine.config.load import ConfigStore
from claw_engine.config.redact import Redactor, redact_config
from claw_engine.config.settings import Settings
from claw_engine.errors import InvalidRequest
from claw_engine.gateway.ports import History, RunReport, SessionRow, Submission, Taken
from claw_engine.inbox.dispatch import Dispatcher
from claw_engine.inbox.model import InboundMessage
from claw_engine.inbox.session_commands import Resetter, stopped
from claw_engine.messages import TextBlock, UserMessage, message_to_json
from claw_engine.models.base import ModelConfigError, ModelRef
from claw_engine.models.catalog import Models
from claw_engine.protocol.trace import TraceEvent
from claw_engine.sessions.keys import normalise_agent_id
from claw_engine.sessions.rows import strip_stamp
from claw_engine.sessions.store import Sessions
from claw_engine.world import Clock


class IntakeAdapter:
    """The inbox as the gateway's `Intake`."""

    def __init__(
        self, dispatcher: Dispatcher, sessions: Sessions, clock: Clock,
        settings: Callable[[], Settings],
    ) -> None:  # fmt: skip
        self._dispatcher = dispatcher
        self._sessions = sessions
        self._clock = clock
        self._settings = settings

    async def submit(self, message: Submission) -> Taken:
        key = self._sessions.key(message.session_key)
        refuse_unknown_agent(self._settings(), key.agent_id)
        extra: dict[str, object] = {}
        if message.timeout_s is not None:
            extra[TIMEOUT_FIELD] = message.timeout_s
        inbound = InboundMessage(
            id=message.run_id,
            session_key=str(key),
            agent_id=key.agent_id,
            text=message.text,
            source=message.source,
            received_ms=self._clock.now_ms(),
            thinking=message.thinking,
            extra=extra,
        )
        submitted = await self._dispatcher.submit(inbound)
        stopped = submitted.run_ids if submitted.status == "stopped" else None
        return Taken(submitted.repeat, stopped)

    def known(self, run_id: str) -> Literal["active", "ended"] | None:
        return self._dispatcher.known(run_id)

    def abort(self, session_key: str, run_id: str | None) -> Sequence[str]:
        return self._dispatcher.abort(session_key, run_id)

    async def wait(self, run_id: str, timeout_s: float | None) -> RunReport | None:
        result = await self._dispatcher.wait(run_id, timeout_s)
        return None if result is None else report(run_id, result)

    def live(self, session_key: str | None) -> Sequence[Sequence[TraceEvent]]:
        return self._dispatcher.live(session_key)


def refuse_unknown_agent(settings: Settings, agent_id: str) -> None:
    """Raises InvalidRequest when the configuration lists its agents and this one is not there."""
    listed = [normalise_agent_id(entry.id) for entry in settings.agents.list]
    if listed and agent_id not in listed:
        raise InvalidRequest(
            f"There is no agent {agent_id}: agents.list names {', '.join(listed)}.",
            hint="Use a session key of one of them (agent:ID:main), or add the agent to the list.",
        )


class QueueAdapter:
    """What waits, and sessions that begin anew, as the gateway's `QueuePort`."""

    def __init__(
        self, dispatcher: Dispatcher, sessions: Sessions, reset: Resetter,
        named: Callable[[str], ModelRef],
    ) -> None:  # fmt: skip
        self._dispatcher = dispatcher
        self._sessions = sessions
        self._reset = reset
        self._named = named

    def drop(self, run_id: str) -> None:
        self._dispatcher.drop(run_id)

    def move(self, run_id: str, position: int) -> None:
        self._dispatcher.move(run_id, position)

    def blockers(self, run_id: str) -> Sequence[str]:
        return self._dispatcher.blockers(run_id)

    def interrupted(self) -> Sequence[Mapping[str, object]]:
        return self._dispatcher.resumes.rows()

    async def decide(self, run_id: str, action: Literal["resume", "discard"]) -> None:
        await self._dispatcher.resumes.decide(run_id, action)

    async def reset(self, key: str, reason: str) -> Mapping[str, object]:
        return (await self._reset(key, reason)).raw

    async def delete(self, key: str, *, keep_transcript: bool) -> Sequence[str] | None:
        await stopped(self._dispatcher.clear, key)
        gone = await self._sessions.delete(key, keep_transcript=keep_transcript)
        return None if gone is None else [str(path) for path in gone]

    async def patch(self, key: str, fields: Mapping[str, object]) -> Mapping[str, object]:
        return (await self._sessions.patch(key, fields, self._resolve)).raw

    def _resolve(self, name: str) -> tuple[str, str]:
        ref = self._named(name)
        return ref.provider, ref.id


def report(run_id: str, result: RunResult) -> RunReport:
    """A run's end in the gateway's words."""
    return RunReport(
        run_id=run_id,
        status=result.status,
        text=result.text,
        stop_reason=result.stop_reason,
        error=(result.error.title, result.error.hint) if result.error else None,
        started_ms=result.started_ms,
        ended_ms=result.ended_ms,
        duration_ms=result.duration_ms,
        usage=usage_json(result.usage),
        tool_calls=result.tool_calls,
    )


class SessionsAdapter:
    """The session store as the gateway's `SessionsPort`."""

    def __init__(self, sessions: Sessions, settings: Callable[[], Settings]) -> None:
        self._sessions = sessions
        self._settings = settings

    def canonical(self, key: str) -> str:
        return str(self._sessions.key(key))

    async def index(self) -> Sequence[tuple[str, int]]:
        return [
            (entry.key, entry.updated_at) for entry in await self._sessions.index.newest_first()
        ]

    async def rows(self, limit: int | None = None) -> Sequence[SessionRow]:
        found = []
        for row in await self._sessions.list(limit):
            fields = row.to_wire()
            for own in ("key", "sessionId", "updatedAt"):
                fields.pop(own, None)
            found.append(SessionRow(row.key, row.session_id or None, row.updated_at, fields))
        return found

    async def history(self, key: str, limit: int) -> History:
        entry = self._sessions.get(key)
        thinking = entry.text("thinkingLevel") if entry is not None else ""
        messages = []
        for stored in await self._sessions.history(key, limit):
            message = stored.message
            if isinstance(message, UserMessage):
                message = _unstamped(message)
            raw = message_to_json(message)
            own: dict[str, object] = {"id": stored.entry_id, "runId": raw.pop(RUN_ID_FIELD, None)}
            for name in (RUN_IDS_FIELD, TAKEN_FIELD, RESUMED_FIELD):
                if name in raw:
                    own[name] = raw.pop(name)
            raw["__claw"] = own
            messages.append(raw)
        return History(
            entry.session_id if entry is not None else None,
            messages,
            thinking or self._settings().agents.defaults.thinking_default or "off",
        )


def _unstamped(message: UserMessage) -> UserMessage:
    """The time stamp before user text is for the model, not for the person who wrote the text."""
    first = message.content[0] if message.content else None
    if not isinstance(first, TextBlock):
        return message
    return replace(message, content=(TextBlock(strip_stamp(first.text)), *message.content[1:]))


class ModelsAdapter:
    """The catalogue as the gateway's `ModelsPort`."""

    def __init__(self, models: Models, settings: Callable[[], Settings]) -> None:
        self._models = models
        self._settings = settings

    def current(self) -> Mapping[str, object]:
        try:
            return _model_row(self._models.resolve(self._settings()), None)
        except ModelConfigError as error:
            name = self._settings().agents.defaults.model.primary or "no usable model"
            provider, _, model = name.partition("/")
            return {
                "name": name,
                "provider": provider,
                "id": model or name,
                "isAI": True,
                "contextWindow": 0,
                "error": error.sentence(),
            }

    def rows(self) -> Sequence[Mapping[str, object]]:
        return [_model_row(ref, None) for ref in self._models.list(self._settings())]


def _model_row(ref: ModelRef, error: str | None) -> Mapping[str, object]:
    return {
        "name": ref.name,
        "provider": ref.provider,
        "id": ref.id,
        "isAI": ref.is_ai,
        "contextWindow": ref.context_window,
        "error": error,
    }


class ConfigAdapter:
    """The configuration as `config.get` shows it: secrets redacted."""

    def __init__(self, store: ConfigStore) -> None:
        self._store = store

    async def snapshot(self) -> Mapping[str, object]:
        loaded = self._store.current
        settings = loaded.settings
        redactor = Redactor.from_settings(settings, settings.logging.redact_patterns)
        fatal = [p for p in loaded.problems if p.fatal]
        shown = _sayable(redact_config(settings.raw, redactor))
        return {
            "path": str(self._store.path),
            "exists": self._store.path.exists(),
            "valid": loaded.banner is None and not fatal,
            "config": shown,
            "parsed": shown,
            "hash": loaded.raw_hash,
            "generation": settings.generation,
            "issues": [_issue(p.path, p.sentence(), redactor) for p in fatal],
            "warnings": [
                _issue(p.path, p.sentence(), redactor) for p in loaded.problems if not p.fatal
            ],
        }


def _sayable(value: object) -> object:
    """The same without numbers that JSON cannot say: JSON5's `Infinity` is shown as a word."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {key: _sayable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_sayable(inner) for inner in value]
    return value


def _issue(path: Sequence[str | int], text: str, redactor: Redactor) -> Mapping[str, object]:
    return {"path": ".".join(str(step) for step in path), "message": redactor.text(text)}
