"""Thin adapters between the rooms and the gateway's ports. Nothing is decided here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from claw_engine.agent.options import TIMEOUT_FIELD
from claw_engine.agent.ports import RunResult, usage_json
from claw_engine.agent.record import RESUMED_FIELD, RUN_ID_FIELD, RUN_IDS_FIELD
from claw_engine.agent.steering import TAKEN_FIELD
from claw_engine.config.settings import Settings
from claw_engine.errors import InvalidRequest
from claw_engine.events import Event
from claw_engine.gateway.ports import History, RunReport, SessionNews, SessionRow, Submission, Taken
from claw_engine.inbox.dispatch import Dispatcher
from claw_engine.inbox.model import InboundMessage
from claw_engine.inbox.session_commands import Resetter, stopped
from claw_engine.messages import TextBlock, UserMessage, message_to_json
from claw_engine.models.base import ModelConfigError, ModelRef
from claw_engine.models.catalog import Models
from claw_engine.protocol.trace import TraceEvent
from claw_engine.sessions.entries import StoredMessage
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.events import MessageStored, SessionBegun
from claw_engine.sessions.keys import normalise_agent_id
from claw_engine.sessions.rows import SessionRow as StoredRow
from claw_engine.sessions.rows import facts, strip_stamp
from claw_engine.sessions.rows import row as stored_row
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
        try:
            ref = self._named(name)
        except ModelConfigError as error:  # the caller's word, not our state
            raise InvalidRequest(error.title, hint=error.hint) from error
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
        self._facts: dict[str, tuple[SessionEntry, Mapping[str, object]]] = {}
        self._rows: dict[str, tuple[StoredRow, SessionRow]] = {}
        self._index: tuple[Sequence[SessionEntry], Sequence[tuple[str, int]]] = ((), ())

    def canonical(self, key: str) -> str:
        return str(self._sessions.key(key))

    async def index(self) -> Sequence[tuple[str, int]]:
        entries = await self._sessions.index.newest_first()
        if entries is not self._index[0]:  # the same list while nothing changed
            self._index = (entries, [(entry.key, entry.updated_at) for entry in entries])
        return self._index[1]

    async def rows(self, limit: int | None = None) -> Sequence[SessionRow]:
        found, made = [], 0
        for row in await self._sessions.list(limit):
            known = self._rows.get(row.key)
            if known is None or known[0] is not row:  # rows stay while nothing changes
                made += 1
                if made % 64 == 0:
                    await asyncio.sleep(0)  # the first look at an entry's fields takes a while
                entry = self._sessions.get(row.key)
                if entry is None:
                    continue
                known = self._rows[row.key] = (row, _wire_row(row, self._facts_of(entry)))
            found.append(known[1])
        if limit is None and len(self._facts) > 2 * len(found):
            keys = {row.key for row in found}
            self._facts = {key: known for key, known in self._facts.items() if key in keys}
            self._rows = {key: self._rows[key] for key in keys}
        return found

    def row(self, key: str) -> SessionRow | None:
        entry = self._sessions.get(key)
        return None if entry is None else _wire_row(stored_row(entry), self._facts_of(entry))

    def news(self, event: Event) -> SessionNews | None:
        match event:
            case MessageStored():
                return SessionNews(event.key, stored_json(event.number, event.message))
            case SessionBegun():
                return SessionNews(event.key, reason=event.reason)
            case _:
                return None

    def _facts_of(self, entry: SessionEntry) -> Mapping[str, object]:
        known = self._facts.get(entry.key)
        if known is None or known[0] is not entry:
            known = (entry, facts(entry, self._sessions.key(entry.key)))
            self._facts[entry.key] = known
        return known[1]

    async def history(self, key: str, limit: int) -> History:
        entry = self._sessions.get(key)
        first, found = await self._sessions.numbered(key, limit)
        return History(
            entry.session_id if entry is not None else None,
            [stored_json(number, stored) for number, stored in enumerate(found, first)],
            (entry.text("thinkingLevel") if entry is not None else "")
            or self._settings().agents.defaults.thinking_default
            or "off",
            (entry.text("verboseLevel") if entry is not None else "") or None,
        )


def _wire_row(row: StoredRow, more: Mapping[str, object]) -> SessionRow:
    fields = {**more, **row.to_wire()}
    for own in ("key", "sessionId", "updatedAt"):
        fields.pop(own, None)
    return SessionRow(row.key, row.session_id or None, row.updated_at, fields)


def stored_json(number: int, stored: StoredMessage) -> dict[str, object]:
    """A stored message as the gateway tells it: ours in `__claw`, its place in `__openclaw`."""
    message = stored.message
    if isinstance(message, UserMessage):
        message = _unstamped(message)
    raw = message_to_json(message)
    run_id = raw.pop(RUN_ID_FIELD, None)
    own: dict[str, object] = {"id": stored.entry_id, "runId": run_id}
    for name in (RUN_IDS_FIELD, TAKEN_FIELD, RESUMED_FIELD):
        if name in raw:
            own[name] = raw.pop(name)
    raw["__claw"] = own
    place: dict[str, object] = {
        "id": stored.entry_id, "seq": number, "recordTimestampMs": stored.timestamp,
    }  # fmt: skip
    if stored.kind != "message":
        place["kind"] = stored.kind
    if run_id:
        if raw.get("role") == "user":
            raw["idempotencyKey"] = f"{run_id}:user"
        else:
            place["runId"] = run_id
    raw["__openclaw"] = place
    return raw


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
        "reasoning": ref.reasoning,
        "input": ["text"],
        "error": error,
    }
