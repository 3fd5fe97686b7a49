"""Grants: an operator's yes that holds for more than one request, and what it covers. Pure.

A grant is narrower than a rule: one exact command, or the programs of one request, for a time,
for a session, or until it is taken back. It never covers an interpreter, or a command that is
not fully understood, beyond its exact text, folder, files and environment changes.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from msgspec import Struct

from claw_engine.approvals.model import ApprovalAsk, ApprovalKind

MINUTES = 15
"""Offered length of a grant by time."""
LONGEST_MINUTES = 24 * 60
SESSION_MS = 12 * 3_600_000
"""A grant for a session ends with the session, and after twelve hours at the latest."""


class Covers(StrEnum):
    """What a grant lets through."""

    EXACT = "exact"
    """This command text, in this folder, with these files and environment changes."""
    PROGRAMS = "programs"
    """The programs of this request with any arguments, in plain commands."""


class Span(StrEnum):
    """How long it holds. `minutes` and `session` hold in the request's session only."""

    MINUTES = "minutes"
    SESSION = "session"
    LASTING = "lasting"


class Wanted(Struct, frozen=True):
    """A grant as an answer asks for it; `minutes` belongs to the span of that name."""

    covers: Covers
    span: Span
    minutes: int = MINUTES


class Grant(Struct, frozen=True, rename="camel"):
    """One grant. Times in ms since the epoch; `until_ms` None = until it is taken back."""

    id: str
    agent_id: str
    session_key: str | None
    """None = in every session of the agent."""
    covers: Covers
    span: Span
    until_ms: int | None
    command: str
    """The command that was asked about when it was made."""
    cwd: str
    binding_id: str
    programs: tuple[tuple[str, str], ...]
    """Real paths with the content (sha256) they are bound to, "" = any content."""
    host: str
    sandbox: str
    made_ms: int
    by: str
    approval_id: str
    session_id: str = ""
    """Which life of the session it was made in: a session that begins anew has another id."""
    uses: int = 0
    last_used_ms: int | None = None
    last_command: str | None = None


class Offer(Struct, frozen=True):
    """One choice on a card: `words` says what would run without asking, and for how long."""

    wanted: Wanted
    words: str


def offers(ask: ApprovalAsk) -> tuple[Offer, ...]:
    """The grants that may be made for a request, the narrowest first; none when `refusal` says
    why."""
    if refusal(ask) is not None:
        return ()
    spans = {
        Span.MINUTES: f"for {MINUTES} minutes, in this session",
        Span.SESSION: "until this session begins anew, 12 hours at most",
        Span.LASTING: f"in every session of agent {ask.agent_id}, until you take it back",
    }
    exact = "exactly this command, in this folder, with the same files"
    found = [Offer(Wanted(Covers.EXACT, span), f"{exact}, {spans[span]}") for span in Span]
    if programs_of(ask):
        names = ", ".join(path for path, _ in programs_of(ask))
        found += [
            Offer(Wanted(Covers.PROGRAMS, span), f"{names} with any arguments, {spans[span]}")
            for span in (Span.MINUTES, Span.SESSION)
        ]
    return tuple(found)


def refusal(ask: ApprovalAsk) -> str | None:
    """Why no grant can be made for a request; None when one can."""
    if ask.client is not None:
        return "the client that asks runs it itself"
    if ask.kind is ApprovalKind.BUDGET:
        return "a budget is passed once at a time"
    if ask.kind is not ApprovalKind.EXEC:
        return "a file outside the workspace is allowed once at a time"
    if ask.security != "allowlist" or ask.ask != "on-miss":
        return "the policy asks for every command"
    if not ask.binding.cwd_real:
        return "its folder does not exist"
    return None


def objection(ask: ApprovalAsk, wanted: Wanted) -> str | None:
    """Why this grant cannot be made for this request; None when it can."""
    why = refusal(ask)
    if why is not None:
        return why
    if wanted.covers is Covers.PROGRAMS:
        if wanted.span is Span.LASTING:
            return "programs are allowed for good by a rule (allow-always)"
        if not programs_of(ask):
            return ask.always.refusal or "only exactly this command can be granted"
    if wanted.span is Span.MINUTES and not 1 <= wanted.minutes <= LONGEST_MINUTES:
        return f"a grant lasts 1 to {LONGEST_MINUTES} minutes"
    return None


def make(
    ask: ApprovalAsk,
    wanted: Wanted,
    *,
    grant_id: str,
    approval_id: str,
    by: str,
    now_ms: int,
    session_id: str = "",
) -> Grant:
    """The grant for a request. The caller has asked `objection` before."""
    until = {
        Span.MINUTES: now_ms + wanted.minutes * 60_000,
        Span.SESSION: now_ms + SESSION_MS,
        Span.LASTING: None,
    }[wanted.span]
    lasting = wanted.span is Span.LASTING
    return Grant(
        id=grant_id,
        agent_id=ask.agent_id,
        session_key=None if lasting else ask.session_key,
        covers=wanted.covers,
        span=wanted.span,
        until_ms=until,
        command=ask.command,
        cwd=ask.cwd,
        binding_id=binding_id(ask),
        programs=programs_of(ask) if wanted.covers is Covers.PROGRAMS else (),
        host=ask.host,
        sandbox=ask.sandbox,
        made_ms=now_ms,
        by=by,
        approval_id=approval_id,
        session_id="" if lasting else session_id,
    )


def covers(grant: Grant, ask: ApprovalAsk, now_ms: int) -> bool:
    """Whether `ask` may go ahead by this grant. Anything that differs from what was on the
    operator's screen, also the walls around it, asks again."""
    if refusal(ask) is not None or expired(grant, now_ms):
        return False
    if grant.session_key is not None and grant.session_key != ask.session_key:
        return False
    if (grant.agent_id, grant.host, grant.sandbox) != (ask.agent_id, ask.host, ask.sandbox):
        return False
    if grant.covers is Covers.EXACT:
        return grant.command == ask.command and grant.binding_id == binding_id(ask)
    wanted = programs_of(ask)
    return bool(wanted) and set(wanted) <= set(grant.programs)


def same(one: Grant, other: Grant) -> bool:
    """Whether two grants let the same through, however long they last."""
    return _scope(one) == _scope(other)


def _scope(grant: Grant) -> tuple[object, ...]:
    exact = grant.covers is Covers.EXACT
    return (
        grant.agent_id, grant.session_key, grant.covers, grant.span, grant.host, grant.sandbox,
        grant.binding_id if exact else frozenset(grant.programs),
    )  # fmt: skip


def expired(grant: Grant, now_ms: int) -> bool:
    return grant.until_ms is not None and now_ms >= grant.until_ms


def programs_of(ask: ApprovalAsk) -> tuple[tuple[str, str], ...]:
    """What a grant for the programs of this request would name; nothing when the command is more
    than plain programs with plain words, or when only these arguments are harmless."""
    if ask.redirections or ask.env_changes or ask.always.refusal or ask.always.arguments:
        return ()
    hashes = ask.always.content_hash
    return tuple((path, hashes.get(path, "")) for path in ask.always.patterns)


def binding_id(ask: ApprovalAsk) -> str:
    """One value for all that an exact grant is bound to. Inode numbers stay out where the content
    is known: they do not survive a copy of the disk, the content does."""
    files = sorted((f.path, f.real, f.sha256 or f"{f.dev}:{f.ino}") for f in ask.binding.files)
    told = [ask.command, ask.cwd, ask.binding.cwd_real, files, list(ask.env_changes)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
