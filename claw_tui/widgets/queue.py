"""The approval queue: one line a request, what was viewed and marked, the dangerous in red."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip

from claw_tui.store.approvals import Approval
from claw_tui.store.sanitize import line, reveal_line
from claw_tui.store.sessions import short_key
from claw_tui.store.words import clock, countdown
from claw_tui.widgets.cells import Span, clip, row, spans
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import LineView

OUTCOMES = {
    "allow-once": ("once", "good"),
    "allow-always": ("always", "good"),
    "deny": ("denied", "bad"),
}


class QueueList(LineView, can_focus=False):
    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.rows: list[Approval] = []
        self.cursor = 0

    def show(self, rows: list[Approval], cursor: int) -> None:
        self.rows, self.cursor = rows, cursor
        self.set_line_count(len(rows))
        self.scroll_into(cursor, cursor + 1)
        self.refresh()

    def draw(self, y: int) -> Strip:
        if y >= len(self.rows):
            return Strip.blank(0)
        app, ink, item = host(self), self.ink, self.rows[y]
        queue = app.store.queue
        here = y == self.cursor
        mark = "✓" if item.id in queue.marked else " " if item.id in queue.viewed else "•"
        left: list[Span] = [
            ("▌" if here else " ", ink("key")),
            (f"{mark} ", ink("good" if mark == "✓" else "faint")),
            (f"{line(item.kind):<6}", ink("bad" if item.dangerous else "warn")),
            (reveal_line(item.command), ink("text", "b" if here else "")),
        ]
        right: list[Span] = []
        if self.size.width >= 60:
            right.append((f"{clip(line(short_key(item.session)), 18)}  ", ink("muted")))
        right.append((f"{countdown(item.left_ms(app.clock.now_ms()))} ", ink("warn")))
        return row(self.line_width, left, right)


class HistoryList(LineView, can_focus=False):
    """What was decided lately, the newest first."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.rows: list[Approval] = []

    def show(self, rows: list[Approval]) -> None:
        self.rows = rows
        self.set_line_count(max(1, len(rows)))
        self.refresh()

    def draw(self, y: int) -> Strip:
        ink = self.ink
        if y >= len(self.rows):
            words = " nothing was decided yet" if y == 0 else ""
            return spans([(words, ink("faint"))])
        item = self.rows[y]
        words, pen = OUTCOMES.get(item.decision, ("expired", "warn"))
        left: list[Span] = [
            (f" {clock(item.decided_ms or item.expires_ms):<6}", ink("faint")),
            (f"{words:<8}", ink(pen)),
            (reveal_line(item.command), ink("muted")),
        ]
        note = line(item.reason or item.by)
        right = [(clip(note, 24) + " ", ink("faint"))] if note else []
        return row(self.line_width, left, right) if left else spans([("", Style.null())])
