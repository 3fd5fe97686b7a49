"""One request as the console knows it, read from the wire. A foreign gateway sends fewer fields;
what it leaves out is empty here."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from claw_tui.store.wire import Json, num, obj, objs, text, texts


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
    notes: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    """Those of the patterns that are a program with exactly these arguments."""

    def opens(self) -> tuple[str, ...]:
        """What a rule would let through, a phrase each."""
        return tuple(
            pattern if pattern in self.exact else f"{pattern} with any arguments"
            for pattern in self.patterns
        )


class Offer(Struct, frozen=True):
    """A grant that could be made; `words` are the engine's own about what it opens."""

    covers: str
    span: str
    minutes: int
    words: str


class Ran(Struct, frozen=True):
    """What an allowed request did; empty while that is not known."""

    exit_code: int | None = None
    words: str = ""
    duration_ms: int | None = None


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
    client: str = ""
    """Who asks, when it is a gateway client about a command of its own."""
    binding: str = ""
    """The engine's word for what it bound this request to: files, folder, environment."""
    offers: tuple[Offer, ...] = ()
    no_grants: str = ""
    grant: str = ""
    ran: Ran = Ran()

    @property
    def dangerous(self) -> bool:
        """Whether any part carries a risk the engine names; such a card is never marked."""
        return any(segment.risks for segment in self.segments)

    def left_ms(self, now_ms: int) -> int:
        return max(0, self.expires_ms - now_ms)

    def picture(self) -> Approval:
        """What is the same in requests that stand on one card: all a card shows but which run
        and call it is, and when it was asked."""
        return replace(
            self,
            id="",
            created_ms=0,
            expires_ms=0,
            run_id="",
            tool_call_id="",
            always=replace(self.always, matches=()),
        )


def approval_from(raw: Json) -> Approval:
    """A record (or an OpenClaw request, which has fewer fields) from the wire."""
    request = obj(raw.get("request"))
    always, grants = obj(request.get("always")), obj(request.get("grants"))
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
        Always(
            texts(always, "patterns"),
            text(always, "refusal"),
            texts(always, "recentMatches"),
            texts(always, "notes"),
            texts(always, "exact"),
        ),
        client=text(request, "client"),
        binding=text(request, "bindingId"),
        offers=tuple(_offer(item) for item in objs(grants.get("offers"))),
        no_grants=text(grants, "refusal"),
        grant=text(raw, "grantId"),
        ran=ran_from(obj(raw.get("ran"))),
    )


def ran_from(raw: Json) -> Ran:
    """What is said of a finished (or aborted, or never started) command."""
    words = ""
    for key, shape in (("aborted", "aborted: {}"), ("error", "not started: {}")):
        if text(raw, key):
            words = shape.format(text(raw, key))
    code = raw.get("exitCode")
    if not words and text(raw, "status") not in ("", "completed", "ok"):
        words = text(raw, "status")
    known = isinstance(code, int) and not isinstance(code, bool)
    duration = num(raw, "durationMs") if "durationMs" in raw else None
    return Ran(num(raw, "exitCode") if known else None, words, duration)


def _segment(raw: Json) -> Segment:
    return Segment(
        text(raw, "text"),
        texts(raw, "argv"),
        text(raw, "resolved"),
        text(raw, "rule"),
        text(raw, "why"),
        texts(raw, "risks"),
    )


def _offer(raw: Json) -> Offer:
    return Offer(text(raw, "covers"), text(raw, "span"), num(raw, "minutes"), text(raw, "words"))
