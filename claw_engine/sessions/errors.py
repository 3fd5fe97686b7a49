"""What can be wrong with a session, in words for the operator.

InvalidRequest
└── InvalidSessionKey    a key no session can have
ClawError
└── ForeignTranscript    the index points outside the sessions folder
"""

from __future__ import annotations

from claw_engine.errors import ClawError, InvalidRequest


class InvalidSessionKey(InvalidRequest):
    """A session key that cannot be: empty, malformed `agent:` form, control characters."""


class ForeignTranscript(ClawError):
    """A transcript path that leads out of the sessions folder; it is never opened."""
