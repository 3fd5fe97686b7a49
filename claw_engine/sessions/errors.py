"""What can be wrong with a session, in words for the operator.

InvalidRequest
└── InvalidSessionKey    a key no session can have
ClawError
├── ForeignTranscript    the index points outside the sessions folder
└── SessionEnded         the session was reset or deleted while somebody still wrote
"""

from __future__ import annotations

from claw_engine.errors import ClawError, InvalidRequest


class InvalidSessionKey(InvalidRequest):
    """A session key that cannot be: empty, malformed `agent:` form, control characters."""


class ForeignTranscript(ClawError):
    """A transcript path that leads out of the sessions folder; it is never opened."""


class SessionEnded(ClawError):
    """The session was reset or deleted; its old transcript is an archive and takes nothing more."""

    retryable = True
