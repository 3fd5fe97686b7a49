"""The circumstances of a run, from its session key, settings and message. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from claw_engine.sessions.keys import SessionKey, canonical, normalise_agent_id
from claw_engine.tools.policy.groups import group_rules
from claw_engine.tools.policy.steps import Circumstances

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

OWNER_SOURCES = frozenset({"console", "cli", "gateway"})
"""Doors that only the operator's own processes get through."""

OWNER_FIELD = "senderIsOwner"
"""Field of a message's `extra`: what a channel found out about its sender."""
SENDER_FIELD = "senderId"
EXTERNAL_FIELD = "externalContent"
"""Field of a message's `extra`: the text was written by nobody who may give orders; its value
says where it came from (a mail, a web page, a hook)."""


def external_origin(extra: Mapping[str, object]) -> str:
    """Where a message from outside came from, in a word; "" for one that somebody asked us."""
    told = extra.get(EXTERNAL_FIELD)
    if not told:
        return ""
    return told if isinstance(told, str) else "outside"


def circumstances(
    settings: Settings,
    session_key: str,
    agent_id: str,
    *,
    source: str = "",
    extra: Mapping[str, object] | None = None,
    provider: str = "",
    model: str = "",
) -> Circumstances:
    """What the policy needs to know of a run; `provider` and `model` are those that will answer."""
    key = canonical(session_key, agent_id)
    known = extra or {}
    told = known.get(OWNER_FIELD)
    owner = told if isinstance(told, bool) else source in OWNER_SOURCES
    return Circumstances(
        agent_id=agent_id,
        provider=provider,
        model=model,
        owner=owner and not known.get(EXTERNAL_FIELD),
        sandboxed=is_sandboxed(settings.resolved, key),
        depth=key.subagent_depth,
        group=group_rules(settings.resolved, key, str(known.get(SENDER_FIELD, ""))),
    )


def is_sandboxed(resolved: Mapping[str, object], key: SessionKey) -> bool:
    """Whether the session works in a sandbox (gateway digest §6.4): off, non-main or all."""
    agents = _object(resolved.get("agents"))
    mode = _object(_object(agents.get("defaults")).get("sandbox")).get("mode")
    listed = agents.get("list")
    for entry in listed if isinstance(listed, list | tuple) else ():
        if normalise_agent_id(str(_object(entry).get("id", ""))) == key.agent_id:
            mode = _object(_object(entry).get("sandbox")).get("mode", mode)
            break
    return mode == "all" or (mode == "non-main" and not (key.is_main or str(key) == "global"))


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
