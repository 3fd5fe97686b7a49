"""Settings of session keys and resets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from claw_engine.config.sections.base import Amount, Count, Names, Section, defaults


class SessionReset(Section):
    """`idle_minutes` None means 60 when the mode is `idle`."""

    mode: Literal["daily", "idle"] = "daily"
    at_hour: Annotated[Amount, Field(le=23)] = 4
    idle_minutes: Count | None = None


class SessionSettings(Section):
    scope: Literal["per-sender", "global"] = "per-sender"
    dm_scope: Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"] = "main"
    reset_triggers: Names = ("/new", "/reset")
    reset: SessionReset = defaults(SessionReset)
