from __future__ import annotations

import json

import pytest

from claw_engine.models.base import ModelErrorKind as Kind
from claw_engine.models.errors import (
    ProviderError,
    read_provider_error,
    secrets_of,
    status_error,
    stream_error,
)
from tests.models.helpers import SECRET, ref


@pytest.mark.parametrize(
    ("status", "code", "message", "kind", "retryable"),
    [
        (401, "", "Incorrect API key provided", Kind.AUTH, False),
        (402, "", "Insufficient Balance", Kind.AUTH, False),
        (403, "", "Forbidden", Kind.AUTH, False),
        (404, "", "model 'x' not found", Kind.NOT_FOUND, False),
        (405, "", "", Kind.NOT_FOUND, False),
        (302, "", "", Kind.NOT_FOUND, False),
        (408, "", "", Kind.TIMEOUT, True),
        (504, "", "", Kind.TIMEOUT, True),
        (429, "", "Rate limit reached", Kind.RATE_LIMIT, True),
        (429, "insufficient_quota", "You exceeded your quota", Kind.AUTH, False),
        (500, "", "", Kind.SERVER, True),
        (502, "", "", Kind.SERVER, True),
        (503, "", "", Kind.OVERLOADED, True),
        (529, "", "", Kind.OVERLOADED, True),
        (400, "", "bad field", Kind.BAD_REQUEST, False),
        (422, "", "bad field", Kind.BAD_REQUEST, False),
        (400, "context_length_exceeded", "", Kind.CONTEXT_OVERFLOW, False),
        (400, "", "This model's maximum context length is 8192 tokens", Kind.CONTEXT_OVERFLOW,
         False),
        (400, "", "请压缩上下文后重试", Kind.CONTEXT_OVERFLOW, False),
        (413, "", "prompt is too long: 210000 tokens", Kind.CONTEXT_OVERFLOW, False),
        (413, "", "Request too large: tokens per minute (TPM) limit 6000", Kind.RATE_LIMIT, True),
        (429, "", "Request too large for gpt: context window, tokens per min", Kind.RATE_LIMIT,
         True),
        # The words alone do not make an overflow: the status must allow it.
        (500, "", "context length exceeded", Kind.SERVER, True),
        (401, "", "context length exceeded", Kind.AUTH, False),
    ],
)  # fmt: skip
def test_kinds(status: int, code: str, message: str, kind: Kind, retryable: bool) -> None:
    error = status_error(ref(), status, ProviderError(code=code, message=message))
    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert error.title.endswith(f"(HTTP {status}).")
    assert error.hint


OVERFLOW_WORDS = 'why do I see "Context overflow: maximum context length, prompt is too long"?'


@pytest.mark.parametrize(
    "body",
    [
        # FastAPI echoes the whole offending message as `input`.
        {"detail": [{"loc": ["body", "messages", 1], "msg": "Field required",
                     "input": OVERFLOW_WORDS}]},
        {"error": {"message": "Invalid role", "param": OVERFLOW_WORDS}},
        {"error": {"message": "Invalid role"}, "request": {"messages": [OVERFLOW_WORDS]}},
        {"messages": [{"content": OVERFLOW_WORDS}]},
    ],
)  # fmt: skip
def test_co03_an_echoed_message_is_never_taken_for_an_overflow(body: dict[str, object]) -> None:
    """CO-03: a provider's error that quotes the conversation."""
    error = status_error(ref(), 400, read_provider_error(json.dumps(body).encode()))
    assert error.kind is Kind.BAD_REQUEST
    assert "overflow" not in error.sentence()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error":{"message":"m","type":"t","code":"c"}}', ProviderError("c", "t", "m")),
        (b'{"error":{"message":"m","code":404}}', ProviderError("404", "", "m")),
        (b'{"error":"text"}', ProviderError(message="text")),
        (b'{"object":"error","message":"m","code":400}', ProviderError("400", "", "m")),
        (b'{"detail":"Not Found"}', ProviderError(message="Not Found")),
        (b'[{"error":{"message":"m"}}]', ProviderError(message="m")),
        (b'{"message":"m"}', ProviderError(message="m")),
        (b"plain words", ProviderError(message="plain words")),
        (b"<html><body>Bad gateway</body></html>", ProviderError()),
        (b"", ProviderError()),
        (b"x" * 5000, ProviderError()),
        (b"\xff\xfe", ProviderError(message="\ufffd\ufffd")),
        (b"[]", ProviderError()),
        (b"null", ProviderError()),
    ],
)
def test_shapes_of_provider_errors(body: bytes, expected: ProviderError) -> None:
    assert read_provider_error(body) == expected


def test_no_key_is_shown() -> None:
    secrets = secrets_of({"Authorization": f"Bearer {SECRET}", "X-Api-Key": "plainpassword"})
    message = f"Incorrect API key provided: {SECRET}, or plainpassword, or sk-other-12345678"
    shown = status_error(ref(), 401, ProviderError(message=message), secrets=secrets).sentence()
    assert SECRET not in shown and "plainpassword" not in shown and "12345678" not in shown
    assert "Incorrect API key provided: [key]" in shown


def test_a_long_sentence_is_shortened_and_kept_on_one_line() -> None:
    hint = status_error(ref(), 400, ProviderError(message="a\nb " * 500)).hint
    assert len(hint) < 500 and "\n" not in hint


def test_an_error_object_in_a_stream_uses_its_code_as_status() -> None:
    assert stream_error(ref(), ProviderError(code="503")).kind is Kind.OVERLOADED
    assert stream_error(ref(), ProviderError(code="rate_limit_exceeded")).kind is Kind.RATE_LIMIT
    assert stream_error(ref(), ProviderError(message="boom")).kind is Kind.SERVER
