"""The values of an approval: what is asked, what was decided, and what it binds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field


class ApprovalKind(StrEnum):
    """What would happen if allowed."""

    EXEC = "exec"
    READ = "read"
    WRITE = "write"
    EDIT = "edit"
    BUDGET = "budget"


class Decision(StrEnum):
    """Words of the wire protocol."""

    ALLOW_ONCE = "allow-once"
    ALLOW_ALWAYS = "allow-always"
    DENY = "deny"


class Status(StrEnum):
    """Life of a request; a request is decided at most once."""

    PENDING = "pending"
    RESOLVED = "resolved"
    EXPIRED = "expired"


class SegmentView(Struct, frozen=True):
    """One simple command of a command line, as the card shows it.

    `resolved` is the real path of its program, `rule` the pattern that allows it, `why` a short
    sentence why it matched or missed, `risks` plain words.
    """

    text: str
    argv: tuple[str, ...]
    resolved: str | None
    rule: str | None
    why: str
    risks: tuple[str, ...] = ()


class AlwaysOffer(Struct, frozen=True):
    """What "always" would store; empty patterns come with a `refusal` that says why not.

    A pattern is a real path, or the words of a rule for exactly these arguments: then `arguments`
    has, under it, the real path and the rule's argument pattern. `notes` say what it would mean.
    """

    patterns: tuple[str, ...] = ()
    refusal: str | None = None
    content_hash: Mapping[str, str] = field(default_factory=dict)
    recent_matches: tuple[str, ...] = ()
    arguments: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class BoundFile(Struct, frozen=True):
    """A file whose identity and content an approval is about; sha256 in hex, None = too large."""

    path: str
    real: str
    sha256: str | None
    dev: int
    ino: int


class Binding(Struct, frozen=True):
    """What exactly was approved; checked again right before it happens."""

    command: str
    cwd: str
    cwd_real: str
    cwd_id: tuple[int, int]
    env_hash: str
    files: tuple[BoundFile, ...] = ()


class ApprovalAsk(Struct, frozen=True):
    """A question to the operator. `why` are the model's own words before the call."""

    kind: ApprovalKind
    command: str
    cwd: str
    agent_id: str
    session_key: str
    run_id: str
    tool_call_id: str
    why: str
    binding: Binding
    host: str = "gateway"
    sandbox: str = "none"
    security: str = "allowlist"
    ask: str = "on-miss"
    env_changes: tuple[str, ...] = ()
    redirections: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    segments: tuple[SegmentView, ...] = ()
    always: AlwaysOffer = AlwaysOffer()
    client: Mapping[str, object] | None = None
    """What a gateway client said of a command that it runs itself; None = we run it."""


class ApprovalRecord(Struct, frozen=True):
    """A question and what became of it. Times in ms since the epoch."""

    id: str
    ask: ApprovalAsk
    created_at_ms: int
    expires_at_ms: int
    status: Status = Status.PENDING
    decision: Decision | None = None
    by: str = ""
    reason: str = ""
    decided_at_ms: int | None = None
    ran: Mapping[str, object] | None = None
    grant: str = ""
    """Id of the grant that the answer made, or that answered."""


class Outcome(Struct, frozen=True):
    """The end of a wait: `decision` None means nobody answered (`reason` says how it ended)."""

    record: ApprovalRecord

    @property
    def decision(self) -> Decision | None:
        return self.record.decision

    @property
    def reason(self) -> str:
        return self.record.reason

    @property
    def by(self) -> str:
        return self.record.by

    @property
    def allowed(self) -> bool:
        return self.decision in (Decision.ALLOW_ONCE, Decision.ALLOW_ALWAYS)


def segments_to_wire(segments: tuple[SegmentView, ...]) -> list[dict[str, object]]:
    """The parts of a command as a card and `claw approvals explain` show them."""
    return [
        {
            "text": s.text,
            "argv": list(s.argv),
            "resolved": s.resolved,
            "rule": s.rule,
            "why": s.why,
            "risks": list(s.risks),
        }
        for s in segments
    ]


def always_to_wire(always: AlwaysOffer) -> dict[str, object]:
    """An offer as a card and `claw approvals explain` show it."""
    return {
        "patterns": list(always.patterns),
        "refusal": always.refusal,
        "notes": list(always.notes),
        "recentMatches": list(always.recent_matches),
    }


def to_wire(record: ApprovalRecord) -> dict[str, object]:
    """A record as methods and events carry it: OpenClaw's request fields (§5.6) and ours."""
    ask = record.ask
    first = ask.segments[0] if ask.segments else None
    return {
        "id": record.id,
        "createdAtMs": record.created_at_ms,
        "expiresAtMs": record.expires_at_ms,
        "status": record.status.value,
        "decision": record.decision.value if record.decision else None,
        "resolvedBy": record.by,
        "reason": record.reason,
        "decidedAtMs": record.decided_at_ms,
        "ran": dict(record.ran) if record.ran is not None else None,
        "request": {
            "kind": ask.kind.value,
            "command": ask.command,
            "cwd": ask.cwd,
            "host": ask.host,
            "sandbox": ask.sandbox,
            "security": ask.security,
            "ask": ask.ask,
            "agentId": ask.agent_id,
            "sessionKey": ask.session_key,
            "runId": ask.run_id,
            "toolCallId": ask.tool_call_id,
            "why": ask.why,
            "envChanges": list(ask.env_changes),
            "redirections": list(ask.redirections),
            "reasons": list(ask.reasons),
            "resolvedPath": first.resolved if first else None,
            "nodeId": None,
            "segments": segments_to_wire(ask.segments),
            "always": always_to_wire(ask.always),
        },
    }
