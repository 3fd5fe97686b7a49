"""What went wrong with a model call, in words for a person and a kind for the agent.

Classification reads the HTTP status, the provider's error code and its error sentence, and nothing
else: never a message of the conversation, not even when a provider echoes one beside its error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from claw_engine.models.base import ModelError, ModelErrorKind, ModelRef
from claw_engine.patterns import late

# Longest piece of a provider's sentence that is shown, in characters.
_SENTENCE_LIMIT = 300

_OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "request_too_large",
        "string_above_max_length",
    }
)
# Sentences of OpenAI, vLLM, llama.cpp, Ollama, DeepSeek, ARK and OpenRouter for a full window.
_OVERFLOW = late(
    r"context[ _]length|maximum context|context window|context size|prompt is too long"
    r"|input is too long|too many (input )?tokens"
    r"|上下文(过长|超出|长度)|超出最大上下文|请压缩上下文",
    re.I,
)
_TOKENS_PER_MINUTE = late(r"tokens per min|\bTPM\b|rate.?limit", re.I)
_UNPAID_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_KEY_SHAPES = late(r"\b(?:sk|pk|rk|gsk|xai|key)-[\w*.-]{6,}|(?<=Bearer )\S+", re.I)


class ProviderError(Struct, frozen=True):
    """The error object of a provider: its code, its type and its sentence, each may be empty."""

    code: str = ""
    type: str = ""
    message: str = ""


def read_provider_error(body: bytes) -> ProviderError:
    """The provider's error from a response body; plain text counts when it is short, HTML never."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        plain = text if len(text) <= _SENTENCE_LIMIT and not text.startswith("<") else ""
        return ProviderError(message=plain)
    return provider_error_from(value) or ProviderError()


def provider_error_from(value: object) -> ProviderError | None:
    """The error inside a JSON value in any of the shapes in use, or None when it holds none.

    Shapes: `{"error": {code, type, message}}`, `{"error": "text"}`, vLLM's
    `{"object": "error", "message"}`, FastAPI's `{"detail": …}`, and a list of one of these.
    """
    match value:
        case [first, *_]:
            return provider_error_from(first)
        case {"error": dict(inner)}:
            return ProviderError(
                _text(inner.get("code")), _text(inner.get("type")), _text(inner.get("message"))
            )
        case {"error": str(message)} if message:
            return ProviderError(message=message)
        case {"detail": detail} if detail:
            return ProviderError(message=_detail(detail))
        case {"object": "error", **rest}:
            return ProviderError(
                _text(rest.get("code")), _text(rest.get("type")), _text(rest.get("message"))
            )
        case {"message": str(message), **rest} if "choices" not in rest:
            return ProviderError(_text(rest.get("code")), _text(rest.get("type")), message)
        case _:
            return None


def status_error(
    ref: ModelRef,
    status: int,
    error: ProviderError,
    *,
    retry_after_ms: int | None = None,
    secrets: Collection[str] = (),
) -> ModelError:
    """A typed error for an HTTP status (or for an error object inside a stream, status 0)."""
    kind, title, hint = _judge(ref, status, error)
    if retry_after_ms is not None and retry_after_ms >= 1000:
        hint = f"It asks to wait {_span(retry_after_ms)}. {hint}"
    said = redact(_shorten(error.message), secrets)
    number = f" (HTTP {status})" if status else ""
    return ModelError(
        f"{title}{number}.",
        kind=kind,
        hint=f"{hint} The provider said: {said}" if said else hint,
        status=status or None,
        retry_after_ms=retry_after_ms,
    )


def redirect_error(ref: ModelRef, status: int, location: str) -> ModelError:
    """A typed error for a redirect, which is never followed: the key would go where it points."""
    try:
        parts = urlsplit(location) if location.isprintable() else None
    except ValueError:
        parts = None
    place = f"{parts.netloc.rpartition('@')[2]}{parts.path}" if parts is not None else ""
    if parts is not None and parts.scheme:
        place = f"{parts.scheme}://{place}"
    where = f" to {_shorten(place)}" if place else ""
    return ModelError(
        f"{ref.provider} redirects the call{where} (HTTP {status}).",
        kind=ModelErrorKind.NOT_FOUND,
        hint=f"Redirects are not followed. Correct models.providers.{ref.provider}.baseUrl "
        f"({ref.base_url or '(none)'}), often http:// for https:// or a missing /v1.",
        status=status,
    )


def stream_error(ref: ModelRef, error: ProviderError, secrets: Collection[str] = ()) -> ModelError:
    """A typed error for an error object that arrived inside a stream."""
    code = error.code
    status = int(code) if code.isdecimal() and 400 <= int(code) <= 599 else 0
    return status_error(ref, status, error, secrets=secrets)


def redact(text: str, secrets: Collection[str]) -> str:
    """`text` without the given secrets and without anything that has the shape of a key."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= 4:
            text = text.replace(secret, "[key]")
    return _KEY_SHAPES.sub("[key]", text)


def secrets_of(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Header values that must not be shown: credentials, with and without their scheme."""
    found: list[str] = []
    for name, value in headers.items():
        if re.search(r"auth|key|token|cookie", name, re.I):
            found += [value, value.rpartition(" ")[2]]
    return tuple(found)


def _judge(ref: ModelRef, status: int, error: ProviderError) -> tuple[ModelErrorKind, str, str]:
    """Kind, title without the final stop, hint."""
    who = f"{ref.provider} ({ref.id})"
    kind = _kind(status, error)
    match kind:
        case ModelErrorKind.AUTH if status == 402 or _unpaid(error):
            return (
                kind,
                f"The account at {ref.provider} has no credit left",
                ("Add credit at the provider, or choose another model."),
            )
        case ModelErrorKind.AUTH:
            return (
                kind,
                f"{ref.provider} refused the API key for {ref.id}",
                (
                    f"Check models.providers.{ref.provider}.apiKey in the configuration, "
                    "or the key's environment variable."
                ),
            )
        case ModelErrorKind.NOT_FOUND:
            return (
                kind,
                f"{ref.provider} does not know the model {ref.id} or this address",
                (
                    f"Check the model name and the base URL {ref.base_url or '(none)'} "
                    "(it usually ends in /v1)."
                ),
            )
        case ModelErrorKind.RATE_LIMIT:
            return kind, f"{who} says: too many requests", "Wait, or choose another model."
        case ModelErrorKind.OVERLOADED:
            return kind, f"{who} is overloaded", "Wait a little, or choose another model."
        case ModelErrorKind.TIMEOUT:
            return kind, f"{who} took too long to answer", "Try again, or choose a faster model."
        case ModelErrorKind.CONTEXT_OVERFLOW:
            return (
                kind,
                f"The conversation is larger than the window of {who}",
                ("Start a new session, or choose a model with a larger context window."),
            )
        case ModelErrorKind.BAD_REQUEST:
            return (
                kind,
                f"{who} did not accept the request",
                ("Choose another model, or start a new session if it repeats."),
            )
        case _:
            return kind, f"{who} failed on its own side", "Try again in a moment."


def _kind(status: int, error: ProviderError) -> ModelErrorKind:
    if _unpaid(error):
        return ModelErrorKind.AUTH
    if status in (0, 400, 413, 422) and _is_overflow(error):
        return ModelErrorKind.CONTEXT_OVERFLOW
    words = f"{error.code} {error.type}".lower()
    match status:
        case 401 | 402 | 403:
            return ModelErrorKind.AUTH
        case 404 | 405 | 410:
            return ModelErrorKind.NOT_FOUND
        case 408 | 504 | 524:
            return ModelErrorKind.TIMEOUT
        case 429:
            return ModelErrorKind.RATE_LIMIT
        case 413 if _TOKENS_PER_MINUTE.search(error.message):
            return ModelErrorKind.RATE_LIMIT
        case 503 | 529:
            return ModelErrorKind.OVERLOADED
        case 0 if "rate_limit" in words or "too_many_requests" in words:
            return ModelErrorKind.RATE_LIMIT
        case 0 if "overloaded" in words or "unavailable" in words:
            return ModelErrorKind.OVERLOADED
        case 0 if "invalid_api_key" in words or "authentication" in words:
            return ModelErrorKind.AUTH
        case 0 if "invalid_request" in words or "badrequest" in words:
            return ModelErrorKind.BAD_REQUEST
        case 0:
            return ModelErrorKind.SERVER
        case _ if 300 <= status < 400:
            return ModelErrorKind.NOT_FOUND
        case _ if 400 <= status < 500:
            return ModelErrorKind.BAD_REQUEST
        case _:
            return ModelErrorKind.SERVER


def _span(ms: int) -> str:
    seconds = -(-ms // 1000)
    if seconds < 120:
        return f"{seconds} s"
    return f"{-(-seconds // 60)} min" if seconds < 7200 else f"{-(-seconds // 3600)} h"


def _unpaid(error: ProviderError) -> bool:
    return error.code in _UNPAID_CODES or error.type in _UNPAID_CODES


def _is_overflow(error: ProviderError) -> bool:
    if error.code in _OVERFLOW_CODES or error.type in _OVERFLOW_CODES:
        return True
    return bool(_OVERFLOW.search(error.message)) and not _TOKENS_PER_MINUTE.search(error.message)


def _detail(detail: object) -> str:
    """FastAPI's validation errors: place and message, never the `input` that it echoes."""
    match detail:
        case str(text):
            return text
        case [dict(first), *_]:
            place = first.get("loc")
            where = ".".join(str(step) for step in place) if isinstance(place, list) else ""
            return f"{where}: {_text(first.get('msg'))}".removeprefix(": ")
        case {"message": message}:
            return _text(message)
        case _:
            return ""


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SENTENCE_LIMIT else line[:_SENTENCE_LIMIT] + "…"
