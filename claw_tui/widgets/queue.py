"""The approval queue, one line a card: how many requests stand on it, what was viewed and marked,
the dangerous in red. And the history, one line a decision."""

from __future__ import annotations

from textual.strip import Strip

from claw_tui.store.approval import Approval, Ran
from claw_tui.store.approvals import Card
from claw_tui.store.sanitize import line, reveal_line
from claw_tui.store.sessions import short_key
from claw_tui.store.words import clock, countdown, took
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
        self.rows: list[Card] = []
        self.cursor = 0

    def show(self, rows: list[Card], cursor: int) -> None:
        self.rows, self.cursor = rows, cursor
        self.set_line_count(len(rows))
        self.scroll_into(cursor, cursor + 1)
        self.refresh()

    def draw(self, y: int) -> Strip:
        if y >= len(self.rows):
            return Strip.blank(0)
        app, ink, card = host(self), self.ink, self.rows[y]
        item, queue = card.head, app.store.queue
        here = y == self.cursor
        mark = "✓" if card.id in queue.marked else " " if card.id in queue.viewed else "•"
        many = f"×{card.count} " if card.count > 1 else ""
        left: list[Span] = [
            ("▌" if here else " ", ink("key")),
            (f"{mark} ", ink("good" if mark == "✓" else "faint")),
            (f"{line(item.kind):<5} ", ink("bad" if item.dangerous else "warn")),
            (many, ink("warn", "b")),
            (reveal_line(item.command), ink("text", "b" if here else "")),
        ]
        right: list[Span] = []
        if self.size.width >= 60:
            who = short_key(item.session) or item.client
            right.append((f"{clip(line(who), 18)}  ", ink("muted")))
        right.append((f"{countdown(item.left_ms(app.clock.now_ms()))} ", ink("warn")))
        return row(self.line_width, left, right)


class HistoryList(LineView, can_focus=False):
    """What was decided lately, the newest first; with a cursor where one can be moved."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.rows: list[Approval] = []
        self.cursor: int | None = None

    def show(self, rows: list[Approval], cursor: int | None = None) -> None:
        self.rows, self.cursor = rows, cursor
        self.set_line_count(max(1, len(rows)))
        if cursor is not None:
            self.scroll_into(cursor, cursor + 1)
        self.refresh()

    def draw(self, y: int) -> Strip:
        ink = self.ink
        if y >= len(self.rows):
            words = " nothing was decided yet" if y == 0 else ""
            return spans([(words, ink("faint"))])
        item = self.rows[y]
        words, pen = outcome(item)
        here = y == self.cursor
        left: list[Span] = [
            ("▌" if here else " ", ink("key")),
            (f"{clock(item.decided_ms or item.expires_ms):<6}", ink("faint")),
            (f"{words:<8}", ink(pen)),
            (reveal_line(item.command), ink("text" if here else "muted")),
        ]
        ended = ran_words(item.ran) if item.decision.startswith("allow") else ""
        note = line(item.by if item.decision else item.reason)
        bad = item.ran.exit_code not in (None, 0) or bool(item.ran.words)
        right: list[Span] = [(f"  {ended} ", ink("warn" if bad else "faint"))] if ended else []
        if note:
            right.append((f" {clip(note, 16)} ", ink("faint")))
        return row(self.line_width, left, right)


def outcome(item: Approval) -> tuple[str, str]:
    """How it was decided, and the pen for it."""
    words, pen = OUTCOMES.get(item.decision, ("expired", "warn"))
    if item.grant and item.decision == "allow-once":
        # By a grant that stood, or with one that was made by this answer.
        words = "granted" if item.by == "grant" else "+grant"
    return words, pen


def ran_words(ran: Ran, *, full: bool = False) -> str:
    """What came of it: exit 0, or why there is no exit code; with how long it took."""
    words = line(ran.words) if ran.words else ""
    if ran.exit_code is not None:
        words = f"exit {ran.exit_code}" + (f" · {words}" if words else "")
    if full and words and ran.duration_ms is not None:
        words += f" · {took(ran.duration_ms)}"
    return words
