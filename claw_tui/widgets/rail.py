"""The right-hand rail: lane gauges with a sparkline each, and what waits for the operator."""

from __future__ import annotations

from textual.strip import Strip

from claw_tui.keymap import bindings
from claw_tui.store.approvals import Card
from claw_tui.store.lanes import Lane, sparkline
from claw_tui.store.sanitize import line, reveal_line
from claw_tui.store.words import countdown
from claw_tui.widgets.cells import Span, clip, row, spans
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import LineView, set_title


class LanesRail(LineView, can_focus=False):
    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.lines: list[Strip] = []

    def pull(self) -> bool:
        store, ink, width = host(self).store, self.ink, self.line_width
        lines: list[Strip] = []
        for lane in store.lanes.lanes.values():
            lines.append(self._gauge(lane, width))
            if lane.name == "main" or lane.active or lane.queued:
                spark = sparkline(list(lane.load), width - 3)
                lines.append(spans([("  ", ink("faint")), (spark, ink("claw"))]))
        if store.lanes.parked:
            lines.append(spans([(f" parked {store.lanes.parked}", ink("warn"))]))
        percent = store.context_percent()
        if percent is not None:
            filled = min(10, max(0, round(percent / 10)))
            pen = "bad" if percent >= 90 else "warn" if percent >= 75 else "good"
            lines.append(spans([]))
            lines.append(
                spans(
                    [
                        (" ctx ", ink("muted")),
                        ("▓" * filled, ink(pen)),
                        ("░" * (10 - filled), ink("faint")),
                        (f" {percent}%", ink(pen)),
                    ]
                )
            )
        if not lines:
            lines.append(spans([(" no lanes reported", ink("faint"))]))
        self.lines = lines
        set_title(self, "Lanes", "PAUSED" if store.lanes.paused else "")
        self.set_line_count(len(lines))
        self.refresh()
        return False

    def _gauge(self, lane: Lane, width: int) -> Strip:
        ink = self.ink
        pen = "good" if lane.active else "text"
        left: list[Span] = [
            (f" {clip(line(lane.name), 8):<8}", ink("text")),
            (f" {lane.active}/{lane.width}", ink(pen, "b" if lane.active else "")),
            (f" q{lane.queued}", ink("warn" if lane.queued else "faint")),
        ]
        right = [(f"{lane.wait_ms}ms ", ink("faint"))] if lane.wait_ms else []
        return row(width, left, right)

    def draw(self, y: int) -> Strip:
        return self.lines[y] if y < len(self.lines) else Strip.blank(0)


class WaitingRail(LineView):
    BINDINGS = bindings("list")

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.rows: list[Card] = []

    def pull(self) -> bool:
        self.rows = host(self).store.queue.ordered()
        waiting = len(host(self).store.queue.pending)
        set_title(self, "Waiting for you", str(waiting) if waiting else "")
        self.set_line_count(max(1, len(self.rows) + 1))
        self.refresh()
        return False

    def draw(self, y: int) -> Strip:
        ink = self.ink
        if not self.rows:
            return spans([(" nothing waits", ink("faint"))]) if y == 0 else Strip.blank(0)
        if y == len(self.rows):
            return spans([(" a", ink("key", "b")), (" open the queue", ink("muted"))])
        if y > len(self.rows):
            return Strip.blank(0)
        card = self.rows[y]
        left = countdown(card.head.left_ms(host(self).clock.now_ms()))
        many = f"×{card.count} " if card.count > 1 else ""
        return row(
            self.line_width,
            [(f" {y + 1} ", ink("warn", "b")), (reveal_line(card.picture.command), ink("text"))],
            [(f"{many}{left} ", ink("warn"))],
        )

    def action_move(self, step: int) -> None:
        self.scroll_relative(y=step, animate=False)

    def action_edge(self, where: int) -> None:
        self.scroll_to(y=0 if where < 0 else self.max_scroll_y, animate=False)

    def action_page(self, step: int) -> None:
        self.scroll_relative(y=step * max(1, self.size.height - 1), animate=False)

    async def action_open(self) -> None:
        await self.app.run_action("app.approvals")

    def action_filter(self) -> None:
        host(self).refuse("filter the queue in view 8: a")
