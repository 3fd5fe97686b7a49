"""The standing rules about commands, as view 8 lists them. Pure."""

from __future__ import annotations

from msgspec import Struct

from claw_tui.store.wire import Json, flag, num, objs, text


class Rule(Struct, frozen=True):
    id: str
    pattern: str
    agent: str
    bound: bool
    """Whether it holds for one content of its file only."""
    used_ms: int
    """0 while it was never used."""
    command: str
    resolved: str


def rules_from(payload: Json) -> list[Rule]:
    """The answer of `exec.approvals.rules`: last used first, never used ones last."""
    found = [
        Rule(
            text(raw, "id"),
            text(raw, "pattern"),
            text(raw, "agentId", "main"),
            flag(raw, "bound"),
            num(raw, "lastUsedAt"),
            text(raw, "lastUsedCommand"),
            text(raw, "lastResolvedPath"),
        )
        for raw in objs(payload.get("rules"))
        if text(raw, "id")
    ]
    return sorted(found, key=lambda rule: (-rule.used_ms, rule.agent, rule.pattern))
