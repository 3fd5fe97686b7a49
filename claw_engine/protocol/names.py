"""Scopes and closed name lists of the protocol (gateway digest §1.1, §1.7)."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """What a connection may do; admin includes all others, write includes read."""

    READ = "operator.read"
    WRITE = "operator.write"
    APPROVALS = "operator.approvals"
    PAIRING = "operator.pairing"
    QUESTIONS = "operator.questions"
    ADMIN = "operator.admin"


ALL_SCOPES = frozenset(Scope)

DEFAULT_SESSION = "agent:main:main"
"""The main session of the default agent."""

INTERRUPTED_BY_RESTART = "Interrupted: the engine stopped during this run. It was not repeated."
"""`errorMessage` of the assistant message that ends a run which a dead engine left open."""

LOST_CALL = (
    "The engine stopped while this call was going on. Outcome unknown: it may have happened, in "
    "part or not at all."
)
"""The result of a call that a dead engine left open."""

RESUME_NOTE = (
    "[The engine was restarted while it worked on this message. Go on from where it stopped. A "
    "call whose result says that its effect is unknown may or may not have happened: look before "
    "you repeat it.]"
)
"""Stands before the words of a message whose run is taken up again."""


def allows(granted: frozenset[Scope], needed: Scope) -> bool:
    """Whether a connection with `granted` scopes may call a method that needs `needed`."""
    if needed in granted or Scope.ADMIN in granted:
        return True
    return needed is Scope.READ and Scope.WRITE in granted
