"""Records, grants and rules as methods and events carry them. Pure.

A record has OpenClaw's request fields (gateway digest §5.6) and ours beside them: the parsed
parts, what "always" would store, and the grants that can be made.
"""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.approvals import grants, model
from claw_engine.approvals.grants import Grant, Offer, Span, Wanted
from claw_engine.approvals.model import ApprovalRecord

OPENCLAW = (
    "systemRunBindingV1", "systemRunPlanV2", "nodeId", "turnSourceChannel", "turnSourceTo",
    "turnSourceAccountId", "turnSourceThreadId",
    # under protocol 4:
    "systemRunBinding", "systemRunPlan", "warningText", "scope", "sessionId",
    "cronExecutionSource", "cronOperationBinding",
)  # fmt: skip
"""Request fields that are null unless a client said something (protocol digest §4 for the last)."""
_NULL_WHEN_EMPTY = ("security", "ask", "agentId", "sessionKey")


def record_to_wire(record: ApprovalRecord) -> dict[str, object]:
    """A record with all that a card shows."""
    payload = model.to_wire(record)
    request = payload["request"]
    assert isinstance(request, dict)
    said: Mapping[str, object] = record.ask.client or {}
    for name in OPENCLAW:
        request[name] = said.get(name)
    for name in _NULL_WHEN_EMPTY:
        request[name] = request[name] or None
    if record.ask.client is not None:
        request["client"] = said.get("name")
        request["resolvedPath"] = said.get("resolvedPath")
    request.update(_for_protocol_4(record))
    always = request["always"]
    assert isinstance(always, dict)
    always["exact"] = list(record.ask.always.arguments)
    refusal = grants.refusal(record.ask)
    request["grants"] = {
        "refusal": refusal,
        "offers": [offer_to_wire(offer) for offer in grants.offers(record.ask)],
    }
    request["bindingId"] = grants.binding_id(record.ask)
    payload["grantId"] = record.grant or None
    payload["approvalKind"] = "exec"
    return payload


def _for_protocol_4(record: ApprovalRecord) -> dict[str, object]:
    """What later clients draw their buttons and warnings from. Our risks are sentences, not that
    generation's words, so they are warnings without a kind."""
    always = bool(record.ask.always.patterns)
    never: dict[str, object] = {} if always else {"unavailableDecisions": ["allow-always"]}
    decisions = ["allow-once", "allow-always", "deny"] if always else ["allow-once", "deny"]
    risks = [risk for segment in record.ask.segments for risk in segment.risks]
    return {
        **never,
        "allowedDecisions": decisions,
        "commandAnalysis": {
            "commandCount": len(record.ask.segments),
            "nestedCommandCount": 0,
            "riskKinds": [],
            "warningLines": list(dict.fromkeys(risks)),
        },
    }


def offer_to_wire(offer: Offer) -> dict[str, object]:
    return {**wanted_to_wire(offer.wanted), "words": offer.words}


def wanted_to_wire(wanted: Wanted) -> dict[str, object]:
    """As `exec.approval.resolve` takes it."""
    out: dict[str, object] = {"covers": wanted.covers.value, "span": wanted.span.value}
    if wanted.span is Span.MINUTES:
        out["minutes"] = wanted.minutes
    return out


def grant_to_wire(grant: Grant) -> dict[str, object]:
    """A grant in force; times in ms, null for never and for no end."""
    return {
        "id": grant.id,
        "agentId": grant.agent_id,
        "sessionKey": grant.session_key,
        "covers": grant.covers.value,
        "span": grant.span.value,
        "untilMs": grant.until_ms,
        "command": grant.command,
        "cwd": grant.cwd,
        "programs": [path for path, _ in grant.programs],
        "host": grant.host,
        "sandbox": grant.sandbox,
        "madeAtMs": grant.made_ms,
        "madeBy": grant.by,
        "approvalId": grant.approval_id,
        "uses": grant.uses,
        "lastUsedAt": grant.last_used_ms,
        "lastUsedCommand": grant.last_command,
    }
