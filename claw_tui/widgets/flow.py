"""Wrapped lines of a text that is still growing: each delta costs its own length, because all
rows but the last are final."""

from __future__ import annotations

from claw_tui.store.sanitize import tame
from claw_tui.widgets.cells import wrap


class Flow:
    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[str] = [""]

    def feed(self, delta: str) -> None:
        last = self.rows.pop() + tame(delta)
        self.rows.extend(wrap(last, self.width))
