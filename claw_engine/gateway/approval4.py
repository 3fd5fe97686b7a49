"""An approval request as protocol 4 carries it (protocol digest §4): a superset of ours. Pure."""

from __future__ import annotations

from collections.abc import Mapping

DECISIONS = ("allow-once", "allow-always", "deny")

_RENAMED = {"systemRunBindingV1": "systemRunBinding", "systemRunPlanV2": "systemRunPlan"}
_NULL = ("warningText", "scope", "sessionId", "cronExecutionSource", "cronOperationBinding")


def as_protocol4(payload: Mapping[str, object]) -> dict[str, object]:
    """The payload of `exec.approval.requested`, `.resolved` or a row of `exec.approval.list`."""
    request = payload.get("request")
    if not isinstance(request, Mapping):
        return dict(payload)
    possible = _always_possible(request)
    allowed = [d for d in DECISIONS if possible or d != "allow-always"]
    asked: dict[str, object] = {
        _RENAMED.get(str(name), str(name)): value for name, value in request.items()
    }
    for name in _NULL:
        asked.setdefault(name, None)
    asked["commandAnalysis"] = _analysis(request)
    asked["allowedDecisions"] = allowed
    asked["unavailableDecisions"] = [d for d in DECISIONS if d not in allowed]
    return {"approvalKind": "exec", **payload, "request": asked}


def _always_possible(request: Mapping[str, object]) -> bool:
    always = request.get("always")
    return not (isinstance(always, Mapping) and always.get("refusal"))


def _analysis(request: Mapping[str, object]) -> dict[str, object]:
    segments = request.get("segments")
    rows = [s for s in segments if isinstance(s, Mapping)] if isinstance(segments, list) else []
    risks: list[str] = []
    for row in rows:
        found = row.get("risks")
        risks += [str(risk) for risk in found] if isinstance(found, list | tuple) else []
    kinds = list(dict.fromkeys(risks))
    return {
        "commandCount": max(1, len(rows)),
        "nestedCommandCount": 0,
        "riskKinds": kinds,
        "warningLines": [f"Contains {kind}" for kind in kinds],
    }
