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


MOST_DAYS = 1100
"""Days of one question: three years."""


def chosen(
    now_ms: int, where: tzinfo, first: str | None, last: str | None, days: int | None
) -> list[Day]:
    """The days of a question: from `first` to `last` (YYYY-MM-DD), or the last `days`, or 30.

    Raises ValueError in words for whoever asked.
    """
    if first is None and last is None:
        return days_back(now_ms, min(MOST_DAYS, max(1, days or 30)), where)
    end = _date(last) if last else datetime.fromtimestamp(now_ms / 1000, where).date()
    start = _date(first) if first else end - timedelta(max(1, days or 30) - 1)
    if start > end:
        raise ValueError(f"the first day {start} is after the last day {end}")
    if (end - start).days >= MOST_DAYS:
        raise ValueError(f"at most {MOST_DAYS} days at once")
    return days_between(start, end, where)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no day: YYYY-MM-DD is wanted") from None


def _midnight(day: date, where: tzinfo) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=where).timestamp() * 1000)
