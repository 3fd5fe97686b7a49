"""When a server says to come back: `Retry-After` and its relatives, read into milliseconds.

Pure; knows no HTTP client. Formats: RFC 9110 §10.2.3 (seconds or an HTTP date) and the
`retry-after-ms` header that OpenAI's service sends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC


def retry_after_ms(headers: Mapping[str, str], now_ms: int) -> int | None:
    """Milliseconds to wait as the response headers ask, or None when they do not say.

    `now_ms` is the wall clock in milliseconds since the epoch, needed for the date form.
    Header names are matched without case. A date in the past gives 0.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    exact = _number(lowered.get("retry-after-ms", ""))
    if exact is not None:
        return math.ceil(exact)
    value = lowered.get("retry-after", "").strip()
    if not value:
        return None
    seconds = _number(value)
    if seconds is not None:
        return math.ceil(seconds * 1000)
    return _date_ms(value, now_ms)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _date_ms(text: str, now_ms: int) -> int | None:
    from email.utils import parsedate_to_datetime  # few servers send a date

    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0, math.ceil(when.timestamp() * 1000) - now_ms)
