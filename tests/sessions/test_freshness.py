from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.config.sections.session import SessionSettings
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.freshness import (
    ResetPolicy,
    fresh,
    kind_of,
    last_boundary,
    policy_of,
    stale,
)
from claw_engine.shapes import read

BERLIN, UTC, APIA = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC"), ZoneInfo("Pacific/Apia")
NEW_YORK, LORD_HOWE = ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")
MINUTE = 60_000


def at(text: str, zone: ZoneInfo, fold: int = 0) -> int:
    when = datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold)
    return round(when.timestamp() * 1000)


BOUNDARIES = [
    # now, zone, hour, the newest boundary
    ("2026-11-30T04:00", UTC, 4, "2026-11-30T04:00"),
    ("2026-11-30T03:59", UTC, 4, "2026-11-29T04:00"),
    ("2026-11-30T23:59", UTC, 0, "2026-11-30T00:00"),
    ("2026-03-01T03:00", UTC, 4, "2026-02-28T04:00"),
    ("2027-01-01T00:10", NEW_YORK, 23, "2026-12-31T23:00"),
    # clocks go forward at 02:00 on 29 March: 02:00 does not exist
    ("2026-03-29T03:30", BERLIN, 4, "2026-03-28T04:00"),
    ("2026-03-29T04:00", BERLIN, 4, "2026-03-29T04:00"),
    ("2026-03-29T03:00", BERLIN, 2, "2026-03-29T03:00"),
    ("2026-03-29T01:59", BERLIN, 2, "2026-03-28T02:00"),
    # clocks go back at 03:00 on 25 October: 02:00 comes twice, the first counts
    ("2026-10-25T02:00", BERLIN, 2, "2026-10-25T02:00"),
    ("2026-10-25T03:59", BERLIN, 4, "2026-10-24T04:00"),
    # half an hour of summer time
    ("2026-10-04T03:59", LORD_HOWE, 4, "2026-10-03T04:00"),
    ("2026-10-04T04:00", LORD_HOWE, 4, "2026-10-04T04:00"),
    ("2026-11-30T05:00", APIA, 4, "2026-11-30T04:00"),
]


@pytest.mark.parametrize(("now", "zone", "hour", "boundary"), BOUNDARIES)
def test_the_daily_boundary_follows_the_clock_on_the_wall(
    now: str, zone: ZoneInfo, hour: int, boundary: str
) -> None:
    assert last_boundary(at(now, zone), hour, zone) == at(boundary, zone)


def test_an_hour_that_comes_twice_resets_once() -> None:
    first, second = (at("2026-10-25T02:00", BERLIN, fold) for fold in (0, 1))
    assert second - first == 60 * MINUTE
    assert last_boundary(second, 2, BERLIN) == first
    assert last_boundary(second + 30 * MINUTE, 2, BERLIN) == first


zones = st.sampled_from([BERLIN, UTC, APIA, NEW_YORK, LORD_HOWE])
moments = st.integers(at("2025-01-01T00:00", UTC), at("2028-01-01T00:00", UTC))


@given(moments, st.integers(0, 23), zones)
def test_a_boundary_is_never_ahead_and_at_most_a_day_old(
    now: int, hour: int, zone: ZoneInfo
) -> None:
    boundary = last_boundary(now, hour, zone)
    assert boundary <= now
    assert now - boundary <= timedelta(hours=25) / timedelta(milliseconds=1)
    assert last_boundary(boundary, hour, zone) == boundary


DAILY = ResetPolicy()
STALE = [
    (DAILY, "2026-11-30T03:59", "2026-11-30T04:00", True),
    (DAILY, "2026-11-30T04:00", "2026-12-01T03:59", False),
    (DAILY, "2026-11-30T04:00", "2026-12-01T04:00", True),
    (ResetPolicy(daily=False), "2020-01-01T00:00", "2026-11-30T00:00", False),
    (ResetPolicy(False, 4, 30), "2026-11-30T03:50", "2026-11-30T04:20", False),
    (ResetPolicy(False, 4, 30), "2026-11-30T03:50", "2026-11-30T04:21", True),
    (ResetPolicy(True, 4, 30), "2026-11-30T03:50", "2026-11-30T04:01", True),
    (ResetPolicy(True, 4, 30), "2026-11-30T05:00", "2026-11-30T05:31", True),
]


@pytest.mark.parametrize(("policy", "last", "now", "expected"), STALE)
def test_whichever_limit_comes_first(
    policy: ResetPolicy, last: str, now: str, expected: bool
) -> None:
    assert stale(at(last, UTC), at(now, UTC), policy, UTC) is expected


POLICIES: list[tuple[dict[str, object], str, str, ResetPolicy]] = [
    ({}, "direct", "", DAILY),
    ({"reset": {"mode": "idle"}}, "direct", "", ResetPolicy(False, 4, 60)),
    ({"reset": {"mode": "idle", "idleMinutes": 5}}, "direct", "", ResetPolicy(False, 4, 5)),
    ({"reset": {"atHour": 7, "idleMinutes": 5}}, "group", "", ResetPolicy(True, 7, 5)),
    ({"idleMinutes": 9}, "direct", "", ResetPolicy(False, 4, 9)),
    ({"idleMinutes": 9, "reset": {"atHour": 5}}, "direct", "", ResetPolicy(True, 5, 9)),
    (
        {"reset": {"atHour": 5}, "resetByType": {"group": {"mode": "idle", "idleMinutes": 3}}},
        "group", "", ResetPolicy(False, 5, 3),
    ),
    (
        {"reset": {"atHour": 5}, "resetByType": {"group": {"mode": "idle", "idleMinutes": 3}}},
        "thread", "", ResetPolicy(True, 5, None),
    ),
    ({"resetByType": {"dm": {"atHour": 1}}}, "direct", "", ResetPolicy(True, 1)),
    (
        {"resetByType": {"dm": {"atHour": 1}, "direct": {"atHour": 2}}},
        "direct", "", ResetPolicy(True, 2),
    ),
    (
        {
            "resetByChannel": {"Discord": {"mode": "idle", "idleMinutes": 2}},
            "resetByType": {"direct": {"atHour": 1}},
            "reset": {"atHour": 9},
        },
        "direct", "discord", ResetPolicy(False, 4, 2),
    ),
    ({"resetByChannel": {"discord": {"mode": "idle"}}}, "direct", "slack", DAILY),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "kind", "channel", "policy"), POLICIES)
def test_the_nearest_policy_counts(
    raw: dict[str, object], kind: str, channel: str, policy: ResetPolicy
) -> None:
    settings = read(SessionSettings, raw)
    assert kind in ("direct", "group", "thread")
    assert policy_of(settings, kind, channel) == policy  # type: ignore[arg-type]  # a table


@pytest.mark.parametrize(
    ("key", "flags", "kind"),
    [
        ("agent:main:main", {}, "direct"),
        ("agent:main:telegram:group:1", {}, "group"),
        ("agent:main:slack:channel:1", {}, "group"),
        ("agent:main:slack:channel:1:thread:2", {}, "thread"),
        ("agent:main:telegram:group:1:topic:2", {}, "thread"),
        ("agent:main:x", {"is_group": True}, "group"),
        ("agent:main:x", {"is_group": True, "is_thread": True}, "thread"),
    ],
)
def test_the_kind_of_a_talk(key: str, flags: dict[str, bool], kind: str) -> None:
    assert kind_of(key, **flags) == kind


def test_an_entry_is_judged_by_its_own_channel() -> None:
    settings = read(
        SessionSettings, {"resetByChannel": {"telegram": {"mode": "idle", "idleMinutes": 10}}}
    )
    last = at("2026-11-30T05:00", UTC)
    entry = SessionEntry("agent:main:main", {"updatedAt": last, "lastChannel": "telegram"})
    assert fresh(entry, last + 10 * MINUTE, settings, zone=UTC)
    assert not fresh(entry, last + 11 * MINUTE, settings, zone=UTC)
    assert fresh(entry, last + 11 * MINUTE, settings, channel="console", zone=UTC)
    assert not fresh(SessionEntry("k"), last, SessionSettings(), zone=UTC)
