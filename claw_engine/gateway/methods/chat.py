"""`chat.send`, `chat.abort`, `chat.inject`, and the same by session: `sessions.send`, `.abort`.

Reading a conversation is in history.py.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated

from msgspec import Meta, field

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.client_ports import EditsPort
from claw_engine.gateway.idempotency import AnswerCache
from claw_engine.gateway.methods.sessions import full_key
from claw_engine.gateway.peer import Peer
from claw_engine.gateway.ports import GatewayParts, Submission
from claw_engine.gateway.session_events import Injected
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Millis, Params, RunId, Text, Thinking
from claw_engine.protocol.frames import MAX_PAYLOAD
from claw_engine.protocol.names import Scope
from claw_engine.runs import RunState


class SendParams(Params, frozen=True, kw_only=True):
    """`timeout_ms` of the run. There are no channels to `deliver` to, and no attachments yet."""

    session_key: Text
    message: str
    idempotency_key: RunId
    thinking: Thinking | None = None
    agent_id: Text | None = None
    session_id: Text | None = None
    deliver: bool = False
    timeout_ms: Millis | None = None
    attachments: list[object] = field(default_factory=list)


class AbortParams(Params, frozen=True, kw_only=True):
    """Of no run stands another aside, so `preserve_side_runs` has none to preserve."""

    session_key: Text
    run_id: Text | None = None
    agent_id: Text | None = None
    preserve_side_runs: bool = False


class InjectParams(Params, frozen=True, kw_only=True):
    session_key: Text
    message: Text
    label: Annotated[str, Meta(max_length=100)] = ""


class SessionSendParams(Params, frozen=True, kw_only=True):
    key: Text
    message: str
    idempotency_key: RunId | None = None
    thinking: Thinking | None = None
    agent_id: Text | None = None
    timeout_ms: Millis | None = None
    attachments: list[object] = field(default_factory=list)


class SessionAbortParams(Params, frozen=True, kw_only=True):
    """A session's runs, or one run. `clear_queued` false leaves what waits."""

    key: Text | None = None
    run_id: Text | None = None
    agent_id: Text | None = None
    clear_queued: bool = True


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    say = Sayer(parts)

    async def send(call: Call, params: SendParams) -> Payload:
        return await say.send(call, params)

    async def abort(call: Call, params: AbortParams) -> Payload:
        key = full_key(parts, params.session_key, params.agent_id)
        if params.run_id is not None:
            run = parts.runs.get(params.run_id)
            if run is not None and run.session_key != key:
                raise InvalidRequest("runId does not match sessionKey")
        return _stopped(parts, key, params.run_id)

    async def session_send(call: Call, params: SessionSendParams) -> Payload:
        run_id = params.idempotency_key or parts.ids.uuid()
        return await say.send(call, SendParams(
            session_key=params.key, message=params.message, idempotency_key=run_id,
            thinking=params.thinking, agent_id=params.agent_id, timeout_ms=params.timeout_ms,
            attachments=params.attachments,
        ))  # fmt: skip

    async def session_abort(call: Call, params: SessionAbortParams) -> Payload:
        return _abort_session(parts, params)

    found = (
        method("chat.send", Scope.WRITE, SendParams, send),
        method("chat.abort", Scope.WRITE, AbortParams, abort),
        method("sessions.send", Scope.WRITE, SessionSendParams, session_send),
        method("sessions.abort", Scope.WRITE, SessionAbortParams, session_abort),
    )
    return found if parts.edits is None else (*found, _injecting(parts, parts.edits))


def _injecting(parts: GatewayParts, edits: EditsPort) -> Method:
    async def inject(call: Call, params: InjectParams) -> Payload:
        key, text = parts.sessions.canonical(params.session_key), clean_message(params.message)
        label = params.label.strip()
        entry_id = await edits.inject(key, text, label)
        parts.bus.publish(Injected(key=key, entry_id=entry_id, text=text, label=label))
        return {"ok": True, "messageId": entry_id}

    return method("chat.inject", Scope.ADMIN, InjectParams, inject)


class Sayer:
    """Hands messages in, each idempotency key once."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._answers = AnswerCache(parts.clock)

    async def send(self, call: Call, params: SendParams) -> Payload:
        """The answer of `chat.send`. Raises ClawError."""
        parts, answers = self._parts, self._answers
        if params.attachments:
            raise InvalidRequest(
                "attachments are not taken",
                hint="Put the file into the workspace and name it in the message.",
            )
        key = full_key(parts, params.session_key, params.agent_id)
        text = clean_message(params.message)
        if text.casefold().rstrip(".!? ") == "/stop":
            return _stopped(parts, key, None)
        run_id = params.idempotency_key
        answer_key = f"chat:{run_id}"
        if answer_key not in answers:
            return await answers.once(answer_key, lambda: self._submit(call, params, key, text))
        await answers.once(answer_key, lambda: self._submit(call, params, key, text))
        return {"runId": run_id, "status": _replay_status(parts, run_id)}

    async def _submit(self, call: Call, params: SendParams, key: str, text: str) -> Payload:
        parts, run_id = self._parts, params.idempotency_key
        if parts.intake.known(run_id) is not None:
            return {"runId": run_id, "status": _replay_status(parts, run_id)}
        call.peer.started(run_id)
        source = source_of(call.peer)
        seconds = -(-params.timeout_ms // 1000) if params.timeout_ms else None
        submission = Submission(run_id, key, text, source, params.thinking, seconds)
        taken = await parts.intake.submit(submission)
        if taken.stopped is not None:
            return {"ok": True, "aborted": bool(taken.stopped), "runIds": list(taken.stopped)}
        status = _replay_status(parts, run_id) if taken.repeat else "started"
        return {"runId": run_id, "status": status}


def clean_message(message: str) -> str:
    """The text as it is stored: NFC, no control characters but tab and line ends (digest §1.11).

    Raises InvalidRequest for more than a request may carry, for a NUL, for a text that UTF-8
    cannot carry, and for nothing.
    """
    if len(message) > MAX_PAYLOAD:
        raise InvalidRequest(
            f"The message is larger than {MAX_PAYLOAD >> 20} MB.",
            hint="Put the text into a file of the workspace and name the file instead.",
        )
    if "\0" in message:
        raise InvalidRequest("message must not contain null bytes")
    text = unicodedata.normalize("NFC", message)
    text = "".join(c for c in text if c in "\t\n\r" or unicodedata.category(c) != "Cc")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest("message is not valid Unicode") from error
    if not text.strip():
        raise InvalidRequest("message required")
    return text


def source_of(peer: Peer) -> str:
    """Where a message came from: `console`, `cli`, or `gateway` for anyone else."""
    match peer.identity.mode:
        case "ui":
            return "console"
        case "cli":
            return "cli"
        case _:
            return "gateway"


def known_as(peer: Peer) -> str:
    """How the history names who did something: `console`, `cli`, or the client's id."""
    source = source_of(peer)
    return peer.identity.client_id if source == "gateway" else source


def _replay_status(parts: GatewayParts, run_id: str) -> str:
    return "in_flight" if parts.intake.known(run_id) == "active" else "ok"


def _stopped(parts: GatewayParts, session_key: str, run_id: str | None) -> Payload:
    run_ids = list(parts.intake.abort(session_key, run_id))
    return {"ok": True, "aborted": bool(run_ids), "runIds": run_ids}


def _abort_session(parts: GatewayParts, params: SessionAbortParams) -> Payload:
    run = parts.runs.get(params.run_id) if params.run_id is not None else None
    if params.key is None and params.run_id is None:
        raise InvalidRequest("sessions.abort needs a key or a runId")
    key = run.session_key if run is not None else ""
    if params.key is not None:
        wanted = full_key(parts, params.key, params.agent_id)
        if run is not None and wanted != key:
            raise InvalidRequest("runId does not match key")
        key = wanted
    if not key:
        stopped: list[str] = []
    elif params.run_id is not None or params.clear_queued:
        stopped = list(parts.intake.abort(key, params.run_id))
    else:
        going = [r.id for r in parts.runs.of_session(key) if r.state is not RunState.QUEUED]
        stopped = [one for run_id in going for one in parts.intake.abort(key, run_id)]
    return {
        "ok": True,
        "abortedRunId": stopped[0] if stopped else None,
        "runIds": stopped,
        "status": "aborted" if stopped else "no-active-run",
    }
