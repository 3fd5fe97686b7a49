"""`chat.*`: read a conversation, say something in it, stop the answer."""

from __future__ import annotations

import unicodedata

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.idempotency import AnswerCache
from claw_engine.gateway.peer import Peer
from claw_engine.gateway.ports import GatewayParts, Submission
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import ChatAbortParams, ChatHistoryParams, ChatSendParams
from claw_engine.protocol.frames import MAX_PAYLOAD
from claw_engine.protocol.names import Scope


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    answers = AnswerCache(parts.clock)

    async def history(call: Call, params: ChatHistoryParams) -> Payload:
        key = parts.sessions.canonical(params.session_key)
        found = await parts.sessions.history(key, params.limit)
        return {
            "sessionKey": key,
            "sessionId": found.session_id,
            "messages": [dict(message) for message in found.messages],
            "thinkingLevel": found.thinking_level,
        }

    async def send(call: Call, params: ChatSendParams) -> Payload:
        key = parts.sessions.canonical(params.session_key)
        text = clean_message(params.message)
        if text.casefold().rstrip(".!? ") == "/stop":
            return _stopped(parts, key, None)
        run_id = params.idempotency_key
        answer_key = f"chat:{run_id}"
        if answer_key not in answers:
            return await answers.once(answer_key, lambda: submit(call, params, key, text))
        await answers.once(answer_key, lambda: submit(call, params, key, text))
        return {"runId": run_id, "status": _replay_status(parts, run_id)}

    async def submit(call: Call, params: ChatSendParams, key: str, text: str) -> Payload:
        run_id = params.idempotency_key
        if parts.intake.known(run_id) is not None:
            return {"runId": run_id, "status": _replay_status(parts, run_id)}
        call.peer.started(run_id)
        source = source_of(call.peer)
        submission = Submission(run_id, key, text, source, params.thinking)
        taken = await parts.intake.submit(submission)
        if taken.stopped is not None:
            return {"ok": True, "aborted": bool(taken.stopped), "runIds": list(taken.stopped)}
        status = _replay_status(parts, run_id) if taken.repeat else "started"
        return {"runId": run_id, "status": status}

    async def abort(call: Call, params: ChatAbortParams) -> Payload:
        key = parts.sessions.canonical(params.session_key)
        if params.run_id is not None:
            run = parts.runs.get(params.run_id)
            if run is not None and run.session_key != key:
                raise InvalidRequest("runId does not match sessionKey")
        return _stopped(parts, key, params.run_id)

    return (
        method("chat.history", Scope.READ, ChatHistoryParams, history),
        method("chat.send", Scope.WRITE, ChatSendParams, send),
        method("chat.abort", Scope.WRITE, ChatAbortParams, abort),
    )


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
