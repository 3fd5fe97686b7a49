"""What can go wrong between a question and its answer.

ClawError
├── RulesError          the rules file cannot be written
├── JournalError        the journal of requests cannot be written: nothing is shown or decided
└── InvalidRequest
    ├── UnknownApproval
    ├── AmbiguousApproval
    ├── AlreadyResolved
    ├── AlreadyKnown    a caller chose the id of another request
    └── NotOffered      "always" for a request that does not offer it
"""

from __future__ import annotations

from claw_engine.errors import ClawError, InvalidRequest


class RulesError(ClawError):
    """exec-approvals.json could not be written."""


class JournalError(ClawError):
    """A request or a decision could not be made durable."""


class BrokerClosed(ClawError):
    """The broker was closed."""


class UnknownApproval(InvalidRequest):
    """No request has this id."""


class AmbiguousApproval(InvalidRequest):
    """A prefix fits more than one request; the title lists them."""


class AlreadyResolved(InvalidRequest):
    """Somebody else, or time, was faster; the title says who."""


class AlreadyKnown(InvalidRequest):
    """Another request has this id."""


class NotOffered(InvalidRequest):
    """The request says why it cannot be allowed for ever."""
