"""Settings of session keys, resets and the upkeep of the session store."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from claw_engine.config.sections.base import Amount, Count, Names, Section
from claw_engine.shapes import Before

DmScope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]


class SessionReset(Section, frozen=True):
    """When a talk starts anew. `idle_minutes` None means 60 when the mode is `idle`."""

    mode: Literal["daily", "idle"] = "daily"
    at_hour: Annotated[Amount, Meta(le=23)] = 4
    idle_minutes: Count | None = None


class ResetByType(Section, frozen=True):
    """`dm` is an older name of `direct`."""

    direct: SessionReset | None = None
    dm: SessionReset | None = None
    group: SessionReset | None = None
    thread: SessionReset | None = None


def _text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Amounts = Annotated[str, Before(_text)]
"""A number with an optional unit, as text: `30d`, `10mb`, `86400000`."""


class Maintenance(Section, frozen=True):
    """Upkeep; durations and sizes as written, read by `sessions.maintenance`."""

    mode: Literal["enforce", "warn"] = "warn"
    prune_after: Amounts | None = None
    prune_days: Count | None = None
    max_entries: Count = 500
    rotate_bytes: Amounts = "10mb"
    reset_archive_retention: Amounts | Literal[False] | None = None
    max_disk_bytes: Amounts | None = None
    high_water_bytes: Amounts | None = None


class SessionSettings(Section, frozen=True):
    """`identity_links`: a person's name → `peerId` or `channel:peerId` of each account."""

    scope: Literal["per-sender", "global"] = "per-sender"
    dm_scope: DmScope = "main"
    identity_links: dict[str, Names] = field(default_factory=dict)
    reset_triggers: Names = ("/new", "/reset")
    idle_minutes: Count | None = None
    reset: SessionReset = SessionReset()
    reset_by_type: ResetByType = ResetByType()
    reset_by_channel: dict[str, SessionReset] = field(default_factory=dict)
    parent_fork_max_tokens: Amount = 100_000
    maintenance: Maintenance = Maintenance()
