"""What runs unasked, as view 8 lists it: standing rules, and grants that end. Pure."""

from __future__ import annotations

from msgspec import Struct

from claw_tui.store.wire import Json, flag, num, objs, text, texts


class Rule(Struct, frozen=True):
    """A rule, or a grant when `span` says so."""

    id: str
    label: str
    """What it lets through, in a few words."""
    agent: str
    bound: bool
    """Whether it holds for one content of its file only."""
    used_ms: int
    """0 while it was never used."""
    command: str
    """The command that used it last."""
    resolved: str = ""
    span: str = ""
    until_ms: int = 0
    """0 = until it is taken back."""
    session: str = ""
    cwd: str = ""
    uses: int = 0
    made_ms: int = 0
    made_by: str = ""
    sandbox: str = ""

    @property
    def grant(self) -> bool:
        return bool(self.span)


def rules_from(payload: Json) -> list[Rule]:
    """The answer of `exec.approvals.rules`: grants first, since they are somebody's exception of
    today; each kind by last use, never used ones last."""
    found = [_rule(raw) for raw in objs(payload.get("rules")) if text(raw, "id")]
    found += [_grant(raw) for raw in objs(payload.get("grants")) if text(raw, "id")]
    return sorted(found, key=lambda r: (not r.grant, -r.used_ms, r.agent, r.label))


def _rule(raw: Json) -> Rule:
    return Rule(
        text(raw, "id"),
        text(raw, "label") or text(raw, "pattern"),
        text(raw, "agentId", "main"),
        flag(raw, "bound"),
        num(raw, "lastUsedAt"),
        text(raw, "lastUsedCommand"),
        text(raw, "lastResolvedPath"),
    )


def _grant(raw: Json) -> Rule:
    exact = text(raw, "covers") == "exact"
    programs = ", ".join(texts(raw, "programs"))
    return Rule(
        text(raw, "id"),
        text(raw, "command") if exact else f"{programs} with any arguments",
        text(raw, "agentId", "main"),
        exact,
        num(raw, "lastUsedAt"),
        text(raw, "lastUsedCommand"),
        span=text(raw, "span", "session"),
        until_ms=num(raw, "untilMs"),
        session=text(raw, "sessionKey"),
        cwd=text(raw, "cwd") if exact else "",
        uses=num(raw, "uses"),
        made_ms=num(raw, "madeAtMs"),
        made_by=text(raw, "madeBy"),
        sandbox=text(raw, "sandbox"),
    )
