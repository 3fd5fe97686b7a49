"""The approval queue as the console sees it: pending requests in order of arrival, a short
history, and what the operator has viewed and marked. Decides nothing by itself."""

from __future__ import annotations

from msgspec import Struct, field

from claw_tui.store.wire import EMPTY, Json, num, obj, objs, text, texts

HISTORY = 200
"""Decided requests kept for view 8."""


class Segment(Struct, frozen=True):
    text: str
    argv: tuple[str, ...]
    resolved: str
    rule: str
    why: str
    risks: tuple[str, ...]


class Always(Struct, frozen=True):
    patterns: tuple[str, ...] = ()
    refusal: str = ""
    matches: tuple[str, ...] = ()
    """Which of the last 100 commands these patterns would have matched."""


class Approval(Struct, frozen=True):
    id: str
    created_ms: int
    expires_ms: int
    status: str
    decision: str
    by: str
    reason: str
    decided_ms: int
    kind: str
    command: str
    cwd: str
    host: str
    sandbox: str
    agent: str
    session: str
    run_id: str
    tool_call_id: str
    why: str
    env: tuple[str, ...]
    redirections: tuple[str, ...]
    reasons: tuple[str, ...]
    segments: tuple[Segment, ...]
    always: Always

    @property
    def dangerous(self) -> bool:
        """Whether any part carries a risk the engine names; such a card is never marked."""
        return any(segment.risks for segment in self.segments)

    def left_ms(self, now_ms: int) -> int:
        return max(0, self.expires_ms - now_ms)


def approval_from(raw: Json) -> Approval:
    """A record (or an OpenClaw request, which has fewer fields) from the wire."""
    request = obj(raw.get("request"))
    always = obj(request.get("always"))
    return Approval(
        text(raw, "id"),
        num(raw, "createdAtMs"),
        num(raw, "expiresAtMs"),
        text(raw, "status", "pending"),
        text(raw, "decision"),
        text(raw, "resolvedBy"),
        text(raw, "reason"),
        num(raw, "decidedAtMs"),
        text(request, "kind", "exec"),
        text(request, "command"),
        text(request, "cwd"),
        text(request, "host", "gateway"),
        text(request, "sandbox", "none"),
        text(request, "agentId", "main"),
        text(request, "sessionKey"),
        text(request, "runId"),
        text(request, "toolCallId"),
        text(request, "why"),
        texts(request, "envChanges"),
        texts(request, "redirections"),
        texts(request, "reasons"),
        tuple(_segment(item) for item in objs(request.get("segments"))),
        Always(texts(always, "patterns"), text(always, "refusal"), texts(always, "recentMatches")),
    )


def _segment(raw: Json) -> Segment:
    return Segment(
        text(raw, "text"),
        texts(raw, "argv"),
        text(raw, "resolved"),
        text(raw, "rule"),
        text(raw, "why"),
        texts(raw, "risks"),
    )


class Queue(Struct):
    pending: dict[str, Approval] = field(default_factory=dict)
    history: list[Approval] = field(default_factory=list)
    viewed: set[str] = field(default_factory=set)
    marked: set[str] = field(default_factory=set)
    rung: set[str] = field(default_factory=set)

    def requested(self, raw: Json) -> bool:
        """Take a new request; True when the bell has not rung for it yet."""
        approval = approval_from(raw)
        if not approval.id:
            return False
        self.pending[approval.id] = approval
        first = approval.id not in self.rung
        self.rung.add(approval.id)
        return first

    def resolved(self, raw: Json) -> Approval | None:
        """A decision or an expiry: the request leaves the queue. Returns what left it."""
        record = obj(raw.get("record")) or raw
        known = self.pending.pop(text(record, "id"), None)
        self.marked.discard(text(record, "id"))
        if known is None and not record.get("request"):
            return None
        done = approval_from(record if record.get("request") else _joined(known, record))
        if any(old.id == done.id for old in self.history[:HISTORY]):
            return known  # the answer to our own call and its event say the same
        self.history.insert(0, done)
        del self.history[HISTORY:]
        return known

    def replace(self, records: list[Json]) -> bool:
        """The whole list, after a (re)connection; True when something new is in it."""
        fresh = False
        self.pending = {}
        for raw in records:
            if text(raw, "status", "pending") == "pending":
                fresh = self.requested(raw) or fresh
        self.marked &= set(self.pending)
        self.viewed &= set(self.pending)
        return fresh

    def replace_history(self, records: list[Json]) -> None:
        done = [approval_from(raw) for raw in records]
        done = [a for a in done if a.status != "pending"]
        self.history = sorted(done, key=lambda a: a.decided_ms or a.expires_ms, reverse=True)
        del self.history[HISTORY:]

    def ordered(self, needle: str = "") -> list[Approval]:
        """Oldest first, optionally only those whose command, session or agent has `needle`."""
        rows = sorted(self.pending.values(), key=lambda a: (a.created_ms, a.id))
        if not needle:
            return rows
        low = needle.lower()
        return [a for a in rows if low in f"{a.command} {a.session} {a.agent}".lower()]

    def shortest_ms(self, now_ms: int) -> int | None:
        return min((a.left_ms(now_ms) for a in self.pending.values()), default=None)

    def mark(self, approval_id: str) -> str:
        """Toggle a mark; returns why not, or nothing."""
        approval = self.pending.get(approval_id)
        if approval is None:
            return "it is no longer waiting"
        if approval_id in self.marked:
            self.marked.discard(approval_id)
            return ""
        if approval.dangerous:
            return "this one names a risk: it is decided alone"
        if approval_id not in self.viewed:
            return "look at the card first"
        self.marked.add(approval_id)
        return ""


def _joined(known: Approval | None, record: Json) -> Json:
    if known is None:
        return record
    request: dict[str, object] = {
        "kind": known.kind,
        "command": known.command,
        "cwd": known.cwd,
        "host": known.host,
        "agentId": known.agent,
        "sessionKey": known.session,
        "why": known.why,
    }
    base: dict[str, object] = {
        "createdAtMs": known.created_ms,
        "expiresAtMs": known.expires_ms,
        "status": "resolved",
    }
    return {**base, **(record or EMPTY), "request": request}
