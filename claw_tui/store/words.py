"""Numbers and times as the console says them. Pure."""

from __future__ import annotations

from datetime import datetime


def countdown(ms: int) -> str:
    """01:52, or 1:04:00 from an hour on."""
    seconds = max(0, (ms + 999) // 1000)
    if seconds >= 3600:
        return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{seconds // 60:02d}:{seconds % 60:02d}"


def clock(ms: int) -> str:
    """Local wall time as HH:MM; empty for an unknown or impossible time."""
    return _local(ms, "%H:%M")


def day(ms: int) -> str:
    """Local date and wall time as 30 Nov 14:02; empty for an unknown or impossible time."""
    return _local(ms, "%d %b %H:%M")


def _local(ms: int, form: str) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000).strftime(form) if ms > 0 else ""
    except (OverflowError, ValueError, OSError):  # beyond the years that a date can have
        return ""


def took(ms: int | None) -> str:
    """A duration: 0.8 s, 11.2 s, 3 m 05 s."""
    if ms is None:
        return ""
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000} m {ms // 1000 % 60:02d} s"


def age(ms: int) -> str:
    """How long something has been so: 12 s, 3 m, 2 h 05 m."""
    seconds = max(0, ms // 1000)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} m"
    return f"{seconds // 3600} h {seconds // 60 % 60:02d} m"


def count(n: int) -> str:
    """1234 → 1.2k, 19400 → 19.4k, 2500000 → 2.5M."""
    if n < 1000:
        return str(n)
    if n < 1_000_000:
        return f"{n / 1000:.1f}k"
    return f"{n / 1_000_000:.1f}M"


def size(n: int) -> str:
    """Bytes (or characters) in a short form: 812 B, 9.3 kB, 5.0 MB."""
    if n < 1000:
        return f"{n} B"
    if n < 1_000_000:
        return f"{n / 1000:.1f} kB"
    return f"{n / 1_000_000:.1f} MB"


def short_run(run_id: str) -> str:
    """The first characters of a run id, enough to tell runs apart on one screen."""
    return run_id.removeprefix("h").replace("-", "")[:4] or "····"
