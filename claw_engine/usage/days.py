"""Where days begin, in a person's time zone or at a fixed offset. Pure; times in ms, UTC."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from msgspec import Struct

_OFFSET = r"UTC([+-])(\d{1,2})(?::(\d{2}))?"


class Day(Struct, frozen=True):
    """A calendar day: `name` (YYYY-MM-DD), from `start` to before `end` (ms)."""

    name: str
    start: int
    end: int


@lru_cache(maxsize=32)
def zone(name: str) -> tzinfo:
    """An IANA zone or `UTC±H[:MM]`; what nobody knows is UTC."""
    found = re.fullmatch(_OFFSET, name)
    if found is not None:
        shift = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        if shift < timedelta(hours=24):
            return timezone(-shift if found[1] == "-" else shift)
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # off the start path

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def day_at(at_ms: int, where: tzinfo) -> Day:
    """The day that a moment lies in: 23, 24 or 25 hours."""
    return day_of(datetime.fromtimestamp(at_ms / 1000, where).date(), where)


def day_of(day: date, where: tzinfo) -> Day:
    """A calendar day."""
    return Day(day.isoformat(), _midnight(day, where), _midnight(day + timedelta(1), where))


def days_back(at_ms: int, days: int, where: tzinfo) -> list[Day]:
    """The last `days` days up to the one of `at_ms`, oldest first."""
    last = datetime.fromtimestamp(at_ms / 1000, where).date()
    return [day_of(last - timedelta(days - 1 - n), where) for n in range(days)]


def days_between(first: date, last: date, where: tzinfo) -> list[Day]:
    """All days from `first` to `last`, both included."""
    return [day_of(first + timedelta(n), where) for n in range((last - first).days + 1)]


def _midnight(day: date, where: tzinfo) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=where).timestamp() * 1000)
