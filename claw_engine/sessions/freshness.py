"""Whether a talk goes on or begins anew with the next message. Pure.

Rules: OpenClaw 2026.2.26 (gateway digest §3.3): a daily hour on the host's clock, an idle time, or
both; by channel, else by kind of talk, else for all.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from claw_engine.sessions.entry import SessionEntry

if TYPE_CHECKING:
    from claw_engine.config.sections.session import SessionReset, SessionSettings

Kind: TypeAlias = Literal["direct", "group", "thread"]

IDLE_MINUTES = 60
"""Minutes of the mode `idle` without a value (gateway digest §3.3)."""
AT_HOUR = 4
"""Hour of the daily reset without a value (gateway digest §3.3)."""


class ResetPolicy(Struct, frozen=True):
    """When a talk is stale. `idle_minutes` None = never by idleness."""

    daily: bool = True
    at_hour: int = AT_HOUR
    idle_minutes: int | None = None


def fresh(
    entry: SessionEntry,
    now_ms: int,
    settings: SessionSettings,
    *,
    channel: str = "",
    is_thread: bool = False,
    is_group: bool = False,
    zone: tzinfo | None = None,
) -> bool:
    """Whether the next message continues the entry's talk. `zone` None = the host's own."""
    kind = kind_of(entry.key, is_thread=is_thread, is_group=is_group)
    channel = channel or entry.text("channel") or entry.text("lastChannel")
    return not stale(entry.updated_at, now_ms, policy_of(settings, kind, channel), zone)


def stale(updated_ms: int, now_ms: int, policy: ResetPolicy, zone: tzinfo | None = None) -> bool:
    """Whether either limit has passed since `updated_ms` (wall ms)."""
    if policy.daily and updated_ms < last_boundary(now_ms, policy.at_hour, zone):
        return True
    idle = policy.idle_minutes
    return idle is not None and now_ms > updated_ms + idle * 60_000


def last_boundary(now_ms: int, at_hour: int, zone: tzinfo | None = None) -> int:
    """Wall ms of the newest daily boundary that is not in the future.

    An hour that a change to summer time skips comes when the clocks have moved; of one that comes
    twice the first counts.
    """
    now = datetime.fromtimestamp(now_ms / 1000, zone)
    today = datetime(now.year, now.month, now.day, at_hour, tzinfo=zone)
    boundary = round(today.timestamp() * 1000)
    if boundary <= now_ms:
        return boundary
    return round((today - timedelta(days=1)).timestamp() * 1000)


def kind_of(key: str, *, is_thread: bool = False, is_group: bool = False) -> Kind:
    """What kind of talk a session is, for `resetByType`."""
    if is_thread or ":thread:" in key or ":topic:" in key:
        return "thread"
    return "group" if is_group or ":group:" in key or ":channel:" in key else "direct"


def policy_of(settings: SessionSettings, kind: Kind, channel: str = "") -> ResetPolicy:
    """The policy in force for a kind of talk on a channel."""
    by_channel = {k.strip().lower(): v for k, v in settings.reset_by_channel.items()}
    chosen = by_channel.get(channel.strip().lower())
    if chosen is not None:
        return _merged((chosen,), None)
    types = settings.reset_by_type
    direct = types.direct if types.direct is not None else types.dm
    typed = {"direct": direct, "group": types.group, "thread": types.thread}[kind]
    stated = "reset" in settings.stated
    layers = [one for one in (typed, settings.reset if stated else None) if one is not None]
    by_type = "reset_by_type" in settings.stated
    if not stated and not by_type and settings.idle_minutes is not None:
        return ResetPolicy(daily=False, idle_minutes=settings.idle_minutes)
    return _merged(tuple(layers), settings.idle_minutes)


def _merged(layers: tuple[SessionReset, ...], legacy_idle: int | None) -> ResetPolicy:
    """The first layer that states a field decides it."""
    mode = next((one.mode for one in layers if "mode" in one.stated), "daily")
    hour = next((one.at_hour for one in layers if "at_hour" in one.stated), AT_HOUR)
    idle = next((one.idle_minutes for one in layers if one.idle_minutes is not None), legacy_idle)
    if mode == "idle" and idle is None:
        idle = IDLE_MINUTES
    return ResetPolicy(mode == "daily", hour, idle)
