"""An answer to a request, and why a request cannot be answered that way. Pure."""

from __future__ import annotations

from msgspec import Struct

from claw_engine.approvals import grants
from claw_engine.approvals.errors import AlreadyResolved, NotOffered
from claw_engine.approvals.model import ApprovalRecord, Decision


class Answer(Struct, frozen=True):
    """What somebody said; `grant` comes with an allow-once only."""

    decision: Decision
    by: str
    reason: str = ""
    grant: grants.Wanted | None = None


def refuse(record: ApprovalRecord, answer: Answer) -> None:
    """Raises NotOffered for an answer that this request does not take."""
    offer = record.ask.always
    if answer.decision is Decision.ALLOW_ALWAYS and not offer.patterns:
        raise NotOffered(
            f"This request cannot be allowed for ever: {offer.refusal or 'no rule fits it'}.",
            hint="Allow it once, or deny it.",
        )
    if answer.grant is None:
        return
    if answer.decision is not Decision.ALLOW_ONCE:
        raise NotOffered("A grant goes with allow-once.", hint="Leave the grant out.")
    why = grants.objection(record.ask, answer.grant)
    if why is not None:
        raise NotOffered(
            f"This grant cannot be made: {why}.", hint="Allow it once, or choose what is offered."
        )


def already(record: ApprovalRecord) -> AlreadyResolved:
    """The error for a request that has ended; says who was faster."""
    if record.decision is None:
        title = f"already expired ({record.reason})"
    else:
        title = f"already resolved by {record.by or 'someone'} ({record.decision.value})"
    return AlreadyResolved(title, details={"id": record.id, "status": record.status.value})
