"""Which lines of a command's output are shown. Pure."""

from __future__ import annotations

from msgspec import Struct

DEFAULT_LINES = 200
"""Lines that `log` shows when the call names none (OpenClaw 2026.2.26)."""


class Window(Struct, frozen=True):
    """Lines `first` (0 = the oldest kept) to `first + count`, of `total`."""

    text: str
    first: int
    count: int
    total: int

    @property
    def note(self) -> str:
        """What is not shown, for the model; empty when everything is."""
        if self.count == self.total:
            return ""
        shown = f"lines {self.first + 1}-{self.first + self.count}" if self.count else "no line"
        after = self.first + self.count
        more = f" Use offset={after} to continue." if after < self.total else ""
        before = " Use offset and limit for earlier ones." if self.first and not more else ""
        return f"[… {shown} of {self.total}.{more}{before}]"


def window(text: str, offset: int | None = None, limit: int | None = None) -> Window:
    """`offset` lines are skipped; without it the last `limit` lines (200) are shown."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    total = len(lines)
    if offset is None:
        first = max(0, total - (DEFAULT_LINES if limit is None else limit))
    else:
        first = min(offset, total)
    shown = lines[first:] if limit is None else lines[first : first + limit]
    return Window("\n".join(shown), first, len(shown), total)
