"""Approval records as lines of the journal: pure, lenient when read.

A line is one step in a request's life: `requested` (all of it), `resolved`, `expired`, `ran`.
Folding the lines in order gives the records back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from msgspec import to_builtins
from msgspec.structs import replace

from claw_engine.approvals.model import (
    AlwaysOffer,
    ApprovalAsk,
    ApprovalKind,
    ApprovalRecord,
    Binding,
    BoundFile,
    Decision,
    SegmentView,
    Status,
)

Json = Mapping[str, object]


def requested_line(record: ApprovalRecord) -> dict[str, object]:
    """The line that opens a record."""
    always = replace(record.ask.always, recent_matches=())  # a view of this same file
    ask = to_builtins(replace(record.ask, always=always))
    return {
        "type": "requested",
        "id": record.id,
        "createdAtMs": record.created_at_ms,
        "expiresAtMs": record.expires_at_ms,
        "ask": ask,
    }


def closed_line(record: ApprovalRecord) -> dict[str, object]:
    """The line of a decision, or of an end without one."""
    return {
        "type": record.status.value,
        "id": record.id,
        "decision": record.decision.value if record.decision else None,
        "by": record.by,
        "reason": record.reason,
        "atMs": record.decided_at_ms,
        **({"grant": record.grant} if record.grant else {}),
    }


def ran_line(approval_id: str, at_ms: int, ran: Json) -> dict[str, object]:
    """The line of what an allowed request did."""
    return {"type": "ran", "id": approval_id, "atMs": at_ms, "ran": dict(ran)}


def fold(lines: Iterable[Json]) -> list[ApprovalRecord]:
    """Records in order of their first line. Lines that make no sense are passed over, and so are
    later lines of a request whose first line is not among `lines`."""
    records: dict[str, ApprovalRecord] = {}
    for line in lines:
        approval_id = line.get("id")
        if not isinstance(approval_id, str):
            continue
        try:
            if line.get("type") == "requested":
                records[approval_id] = _record(approval_id, line)
            elif approval_id in records:
                records[approval_id] = _advance(records[approval_id], line)
        except (KeyError, TypeError, ValueError):
            continue
    return list(records.values())


def _record(approval_id: str, line: Json) -> ApprovalRecord:
    return ApprovalRecord(
        approval_id,
        _ask(cast(Json, line["ask"])),
        int(cast(int, line["createdAtMs"])),
        int(cast(int, line["expiresAtMs"])),
    )


def _advance(record: ApprovalRecord, line: Json) -> ApprovalRecord:
    match line.get("type"):
        case "resolved" | "expired" as status if record.status is Status.PENDING:
            decision = line.get("decision")
            return replace(
                record,
                status=Status(status),
                decision=Decision(str(decision)) if decision else None,
                by=str(line.get("by", "")),
                reason=str(line.get("reason", "")),
                decided_at_ms=int(cast(int, line["atMs"])),
                grant=str(line.get("grant", "")),
            )
        case "ran":
            return replace(record, ran=dict(cast(Json, line["ran"])))
    return record


def _ask(data: Json) -> ApprovalAsk:
    binding = cast(Json, data["binding"])
    always = cast(Json, data["always"])
    dev, ino = cast(list[int], binding["cwd_id"])
    return ApprovalAsk(
        kind=ApprovalKind(_text(data, "kind")),
        command=_text(data, "command"),
        cwd=_text(data, "cwd"),
        agent_id=_text(data, "agent_id"),
        session_key=_text(data, "session_key"),
        run_id=_text(data, "run_id"),
        tool_call_id=_text(data, "tool_call_id"),
        why=_text(data, "why"),
        binding=Binding(
            _text(binding, "command"),
            _text(binding, "cwd"),
            _text(binding, "cwd_real"),
            (dev, ino),
            _text(binding, "env_hash"),
            tuple(_file(f) for f in cast(list[Json], binding["files"])),
        ),
        host=_text(data, "host"),
        sandbox=_text(data, "sandbox"),
        security=_text(data, "security"),
        ask=_text(data, "ask"),
        env_changes=_texts(data, "env_changes"),
        redirections=_texts(data, "redirections"),
        reasons=_texts(data, "reasons"),
        segments=tuple(_segment(s) for s in cast(list[Json], data["segments"])),
        always=AlwaysOffer(
            _texts(always, "patterns"),
            cast("str | None", always.get("refusal")),
            cast(Mapping[str, str], always.get("content_hash") or {}),
            arguments=_arguments(always),
            notes=_texts(always, "notes") if "notes" in always else (),
        ),
        client=cast("Json | None", data.get("client")),
    )


def _arguments(always: Json) -> dict[str, tuple[str, str]]:
    found = cast("Mapping[str, list[str]]", always.get("arguments") or {})
    return {label: (str(real), str(pattern)) for label, (real, pattern) in found.items()}


def _file(data: Json) -> BoundFile:
    return BoundFile(
        _text(data, "path"),
        _text(data, "real"),
        cast("str | None", data.get("sha256")),
        int(cast(int, data["dev"])),
        int(cast(int, data["ino"])),
    )


def _segment(data: Json) -> SegmentView:
    return SegmentView(
        _text(data, "text"),
        _texts(data, "argv"),
        cast("str | None", data.get("resolved")),
        cast("str | None", data.get("rule")),
        _text(data, "why"),
        _texts(data, "risks"),
    )


def _text(data: Json, key: str) -> str:
    return str(data[key])


def _texts(data: Json, key: str) -> tuple[str, ...]:
    return tuple(str(item) for item in cast(list[object], data[key]))
