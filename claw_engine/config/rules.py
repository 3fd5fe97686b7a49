"""What a changed key asks for: nothing, a part to be set up anew, or a restart. Pure.

OpenClaw 2026.2.26's table (gateway digest §2.4): the first prefix that matches decides, and what
none matches asks for a restart. The rows of `claw` and `$schema` are ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from claw_engine.config.problems import KeyPath

ReloadMode = Literal["off", "restart", "hot", "hybrid"]


class Effect(StrEnum):
    """NONE: read when next used. HOT: a part is set up anew at once. RESTART: at the next start."""

    NONE = "none"
    HOT = "hot"
    RESTART = "restart"


_RULES: tuple[tuple[str, Effect], ...] = (
    ("gateway.remote", Effect.NONE),
    ("gateway.reload", Effect.NONE),
    ("hooks", Effect.HOT),
    ("agents.defaults.heartbeat", Effect.HOT),
    ("agent.heartbeat", Effect.HOT),
    ("cron", Effect.HOT),
    ("browser", Effect.HOT),
    ("channels", Effect.HOT),
    ("web", Effect.HOT),
    ("claw.durability", Effect.RESTART),
    ("claw", Effect.HOT),
    *((name, Effect.NONE) for name in (
        "meta", "identity", "wizard", "logging", "models", "agents", "tools", "bindings", "audio",
        "agent", "routing", "messages", "session", "talk", "skills", "secrets", "ui", "$schema",
    )),
    *((name, Effect.RESTART) for name in ("plugins", "gateway", "discovery", "canvasHost")),
)  # fmt: skip


def effect_of(path: KeyPath) -> Effect:
    """What a change of this leaf asks for."""
    name = ".".join(str(step) for step in path)
    for prefix, effect in _RULES:
        if name == prefix or name.startswith(f"{prefix}."):
            return effect
    return Effect.RESTART


class Plan(Struct, frozen=True):
    """What becomes of a change: `applied` is in force now, `waiting` is not.

    `restart` says that a restart is to follow; without it the waiting keys wait for the operator's.
    """

    mode: ReloadMode
    applied: tuple[KeyPath, ...] = ()
    waiting: tuple[KeyPath, ...] = ()
    restart: bool = False

    @property
    def hold(self) -> bool:
        """Whether the settings in force stay as they are as a whole."""
        return bool(self.waiting) and self.mode in ("off", "restart")


def plan(changed: Iterable[KeyPath], mode: ReloadMode) -> Plan:
    """Sort what changed by what it asks for."""
    paths = tuple(changed)
    if mode in ("off", "restart"):
        return Plan(mode, (), paths, restart=mode == "restart" and bool(paths))
    waiting = tuple(path for path in paths if effect_of(path) is Effect.RESTART)
    applied = tuple(path for path in paths if effect_of(path) is not Effect.RESTART)
    return Plan(mode, applied, waiting, restart=mode == "hybrid" and bool(waiting))
