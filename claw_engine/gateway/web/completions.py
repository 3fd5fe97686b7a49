"""POST /v1/chat/completions: OpenAI's shape in front of a session (gateway digest §1.12).

A request becomes a message like any other: the same queue, tools and approvals. The agent has its
own history, so earlier turns of the request are told to it as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.errors import ClawError
from claw_engine.events import Resync
from claw_engine.gateway.methods.chat import clean_message
from claw_engine.gateway.ports import GatewayParts, RunReport, Submission
from claw_engine.gateway.web.http import (
    ClientGone,
    HttpRequest,
    Send,
    answer,
    problem,
    stream_events,
)
from claw_engine.gateway.web.reading import chat_request
from claw_engine.protocol.trace import TraceEvent, TraceKind

if TYPE_CHECKING:
    from claw_engine.gateway.web.bodies import ChatMessage, ChatRequest

MAX_BODY = 1024 * 1024

_AGENT = re.compile(r"(?:openclaw|agent|claw)[:/](?P<id>[a-z0-9][a-z0-9_-]{0,63})", re.IGNORECASE)


class Asked(Struct, frozen=True):
    """What a request wants."""

    model: str
    text: str
    session_key: str
    stream: bool
    with_usage: bool


async def handle(parts: GatewayParts, request: HttpRequest, send: Send) -> None:
    """Answer one request. The caller is known already. Raises HttpError, ClientGone."""
    body = await chat_request(await request.body(MAX_BODY))
    try:
        asked = read(parts, body, request.headers)
        run_id = f"chatcmpl_{parts.ids.uuid()}"
        events = _Tokens(parts, run_id)
        try:
            await parts.intake.submit(Submission(run_id, asked.session_key, asked.text, "gateway"))
            if asked.stream:
                chunks = _chunks(parts, events, asked, run_id)
                await request.or_gone(stream_events(send, chunks))
            else:
                report = await request.or_gone(_end(parts, run_id))
                await _whole(parts, asked, run_id, report, send)
        except (ClientGone, OSError):
            # As with OpenAI: who hangs up wants no more of it.
            parts.intake.abort(asked.session_key, run_id)
        finally:
            events.close()
    except ClawError as error:
        raise problem(400, "invalid_request_error", error.sentence()) from None


def read(parts: GatewayParts, body: ChatRequest, headers: Mapping[str, str]) -> Asked:
    """The request as one message for a session. Raises HttpError, ClawError."""
    options = body.stream_options
    return Asked(
        body.model or "claw", clean_message(_told(body.messages)), _session(parts, body, headers),
        body.stream is True, options is not None and options.include_usage is True,
    )  # fmt: skip


def _session(parts: GatewayParts, body: ChatRequest, headers: Mapping[str, str]) -> str:
    """The key header, else one for the user, else a new one for each request."""
    if key := headers.get("x-openclaw-session-key", "").strip():
        return parts.sessions.canonical(key)
    named = headers.get("x-openclaw-agent-id") or headers.get("x-openclaw-agent") or ""
    found = _AGENT.fullmatch(body.model)
    agent = named.strip().lower() or (found["id"].lower() if found else "main")
    rest = f"openai-user:{body.user}" if body.user else f"openai:{parts.ids.uuid()}"
    return parts.sessions.canonical(f"agent:{agent}:{rest}")


def _told(messages: Sequence[ChatMessage]) -> str:
    """The conversation as one text; its last user message alone when it is the only one."""
    turns = [(message.role, text) for message in messages if (text := message.text)]
    if not any(role in ("user", "tool", "function") for role, _ in turns):
        raise problem(400, "invalid_request_error", "there is no user message")
    rules = [text for role, text in turns if role in ("system", "developer")]
    talk = [(role, text) for role, text in turns if role not in ("system", "developer")]
    if len(talk) == 1 and not rules:
        return talk[0][1]
    parts = [f"Instructions of the caller:\n{text}" for text in rules]
    if len(talk) > 1:
        said = "\n".join(f"{role}: {text}" for role, text in talk[:-1])
        parts.append(f"The conversation so far:\n{said}")
    parts.append(talk[-1][1] if len(parts) == 0 else f"The newest message:\n{talk[-1][1]}")
    return "\n\n".join(parts)


class _Tokens:
    """The text of one run as it comes."""

    def __init__(self, parts: GatewayParts, run_id: str) -> None:
        self._run_id = run_id
        self._subscription = parts.bus.subscribe("trace", capacity=4096)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for event in self._subscription:
            if isinstance(event, Resync):
                raise ClientGone  # we were too slow: an answer with a hole is none
            if not isinstance(event, TraceEvent) or event.run_id != self._run_id:
                continue
            if event.kind is TraceKind.TEXT:
                yield str(event.data.get("delta", ""))
            elif event.kind is TraceKind.RUN_ENDED:
                return

    def close(self) -> None:
        self._subscription.close()


async def _end(parts: GatewayParts, run_id: str) -> RunReport:
    """How the run ended. Raises HttpError."""
    report = await parts.intake.wait(run_id, None)
    if report is None:
        raise problem(500, "server_error", "the run is unknown")
    return report


async def _whole(
    parts: GatewayParts, asked: Asked, run_id: str, report: RunReport, send: Send
) -> None:
    if report.status != "done":
        title, hint = report.error or (f"The run was {report.status}.", "")
        raise problem(502, "server_error", f"{title} {hint}".strip())
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": report.text},
        "finish_reason": "stop",
    }
    await answer(send, 200, {
        "id": run_id, "object": "chat.completion", "created": parts.clock.now_ms() // 1000,
        "model": asked.model, "choices": [choice], "usage": _usage(report),
    })  # fmt: skip


async def _chunks(
    parts: GatewayParts, tokens: _Tokens, asked: Asked, run_id: str
) -> AsyncIterator[str]:
    """The JSON of each chunk."""
    created = parts.clock.now_ms() // 1000

    def chunk(delta: Mapping[str, object], finish: str | None = None, **extra: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return json.dumps({
            "id": run_id, "object": "chat.completion.chunk", "created": created,
            "model": asked.model, "choices": [choice], **extra,
        }, ensure_ascii=False)  # fmt: skip

    yield chunk({"role": "assistant", "content": ""})
    async for text in tokens:
        if text:
            yield chunk({"content": text})
    report = await _end(parts, run_id)
    if report.status != "done":
        title, hint = report.error or (f"The run was {report.status}.", "")
        message = f"{title} {hint}".strip()
        yield json.dumps({"error": {"message": message, "type": "server_error"}})
    else:
        yield chunk({}, "stop")
        if asked.with_usage:
            yield json.dumps({
                "id": run_id, "object": "chat.completion.chunk", "created": created,
                "model": asked.model, "choices": [], "usage": _usage(report),
            })  # fmt: skip
    yield "[DONE]"


def _usage(report: RunReport) -> Mapping[str, int]:
    usage = report.usage or {}
    prompt, completion = _int(usage.get("input")), _int(usage.get("output"))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
