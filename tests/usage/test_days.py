from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.usage.days import day_at, day_of, days_back, days_between, zone

HOUR = 3_600_000


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("at", "where", "name", "hours"),
    [
        ("2026-11-30T08:00+00:00", "UTC", "2026-11-30", 24),
        ("2026-11-30T23:30+00:00", "Europe/Berlin", "2026-12-01", 24),
        ("2026-11-30T03:00+00:00", "America/New_York", "2026-11-29", 24),
        ("2026-03-29T12:00+00:00", "Europe/Berlin", "2026-03-29", 23),  # the clocks go forward
        ("2026-10-25T12:00+00:00", "Europe/Berlin", "2026-10-25", 25),
        ("2026-11-30T18:20+00:00", "Asia/Kathmandu", "2026-12-01", 24),  # +5:45
        ("2026-11-30T20:00+00:00", "UTC+5:30", "2026-12-01", 24),
        ("2026-11-30T02:00+00:00", "UTC-3", "2026-11-29", 24),
        ("2026-11-30T02:00+00:00", "No/Where", "2026-11-30", 24),
    ],
)
def test_a_day_begins_at_the_persons_midnight(at: str, where: str, name: str, hours: int) -> None:
    day = day_at(ms(at), zone(where))
    assert day.name == name
    assert day.start <= ms(at) < day.end
    assert day.end - day.start == hours * HOUR


@given(
    st.integers(1_500_000_000_000, 2_200_000_000_000),
    st.sampled_from(["UTC", "Europe/Berlin", "America/Santiago", "Pacific/Chatham", "UTC-9:30"]),
)
def test_days_follow_each_other_without_a_gap(at: int, where: str) -> None:
    days = days_back(at, 5, zone(where))
    assert [a.end for a in days[:-1]] == [b.start for b in days[1:]]
    assert days[-1] == day_at(at, zone(where))
    assert all(edge % 900_000 == 0 for day in days for edge in (day.start, day.end))


def test_a_range_has_both_its_ends() -> None:
    found = days_between(date(2026, 2, 27), date(2026, 3, 1), UTC)
    assert [day.name for day in found] == ["2026-02-27", "2026-02-28", "2026-03-01"]
    assert day_of(date(2026, 3, 1), UTC) == found[-1]
