"""Refusals of the gateway itself. Their sentences are the ones OpenClaw's clients know."""

from __future__ import annotations

from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.protocol.frames import ErrorShape
from claw_engine.protocol.names import Scope


class UnknownMethod(InvalidRequest):
    def __init__(self, method: str) -> None:
        super().__init__(f"unknown method: {method}")


class InvalidParams(InvalidRequest):
    """`problems` are sentences such as "at root: unexpected property 'x'"."""

    def __init__(self, method: str, problems: list[str]) -> None:
        super().__init__(f"invalid {method} params: {'; '.join(problems)}")


class MissingScope(InvalidRequest):
    def __init__(self, scope: Scope) -> None:
        super().__init__(f"missing scope: {scope.value}")
        self.scope = scope


class TooManyRequests(ClawError):
    """One connection has more unanswered requests than we hold for it."""

    retryable = True


def to_shape(error: ClawError) -> ErrorShape:
    """The wire form: code, the title as message, the hint among the details."""
    details = dict(error.details)
    if error.hint:
        details["hint"] = error.hint
    after = getattr(error, "retry_after_ms", None)
    retryable = True if error.retryable else None
    return ErrorShape(error.code, error.title, details or None, retryable, after)
