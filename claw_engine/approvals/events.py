"""What the approvals room tells the others: a request appeared, a request ended,
what it did, and that rules or grants changed."""

from __future__ import annotations

from typing import ClassVar

from claw_engine.approvals.model import ApprovalRecord
from claw_engine.events import Event


class ApprovalRequested(Event, frozen=True):
    """A person is asked; published after the request is on disk."""

    topic: ClassVar[str] = "approval"
    record: ApprovalRecord


class ApprovalResolved(Event, frozen=True):
    """A request was decided, expired or cancelled; published after that is on disk."""

    topic: ClassVar[str] = "approval"
    record: ApprovalRecord


class ApprovalRan(Event, frozen=True):
    """What an allowed request did is known now."""

    topic: ClassVar[str] = "approval"
    record: ApprovalRecord


class StandingChanged(Event, frozen=True):
    """A rule or a grant was made, used or taken back: lists of them are out of date."""

    topic: ClassVar[str] = "approval"
