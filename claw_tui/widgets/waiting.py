"""Messages that wait for their turn, apart from the conversation: a few lines above the composer
that take no room when nothing waits."""

from __future__ import annotations

from textual.strip import Strip

from claw_tui.store.sanitize import line
from claw_tui.store.turns import Queued
from claw_tui.store.words import clock, short_run
from claw_tui.widgets.cells import Span, clip, row
from claw_tui.widgets.host import host
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.lineview import Lines

MAX_LINES = 3


def waiting_lines(waiting: list[Queued], going: set[str], width: int, ink: Ink) -> list[Strip]:
    """At most three lines, the last with how many more there are. `going`: ids of running runs."""
    shown = waiting[:MAX_LINES]
    hidden = len(waiting) - len(shown)
    out = []
    for index, queued in enumerate(shown):
        left: list[Span] = [
            (" ◷ queued ", ink("warn", "b" if index == 0 else "")),
            (f"{clock(queued.ts_ms):<6}", ink("faint")),
            (line(queued.message), ink("muted")),
        ]
        words = line(queued.note)
        if queued.host in going:
            words = f"into run {short_run(queued.host)}"
        right: list[Span] = [(f"  {clip(words, width // 3)} ", ink("faint"))] if words else []
        if hidden and index == MAX_LINES - 1:
            right = [(f"  +{hidden} more ", ink("warn", "b"))]
        out.append(row(width, left, right))
    return out


class WaitingStrip(Lines):
    def pull(self) -> None:
        """What waits in the selected session; while paused, everything that has not begun."""
        app = host(self)
        talk = app.store.conversation()
        waiting = talk.waiting(everything=app.store.lanes.paused)
        self.display = bool(waiting)
        if waiting:
            going = set(talk.unfinished()) - set(talk.queued)
            self.show(waiting_lines(waiting, going, self.app.size.width, self.ink))
