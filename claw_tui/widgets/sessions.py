"""The session list: one line a session, any number of them, drawn only where visible."""

from __future__ import annotations

from dataclasses import dataclass

from textual.events import Blur, Click, Focus
from textual.message import Message
from textual.strip import Strip

from claw_tui.keymap import bindings
from claw_tui.store.sanitize import line
from claw_tui.store.sessions import SessionRow, short_key
from claw_tui.store.words import clock
from claw_tui.widgets.cells import Span, row
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import LineView, set_title

STATES = {
    "idle": ("○", "faint", ""),
    "queued": ("◷", "warn", "queued"),
    "running": ("●", "good", "runs"),
    "waiting": ("◐", "warn", "waits"),
}


class SessionList(LineView):
    BINDINGS = bindings("list")

    @dataclass
    class Opened(Message):
        """The operator chose this session."""

        key: str

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.needle = ""
        self.rows: list[SessionRow] = []
        self.cursor_key = ""

    def pull(self) -> bool:
        store = host(self).store
        self.rows = store.sessions.ordered(self.needle)
        if not any(row.key == self.cursor_key for row in self.rows):
            self.cursor_key = store.selected
        set_title(self, "Sessions", f"/ {self.needle}" if self.needle else "")
        self.set_line_count(len(self.rows))
        self.refresh()
        return False

    @property
    def cursor(self) -> int:
        for index, item in enumerate(self.rows):
            if item.key == self.cursor_key:
                return index
        return 0

    def draw(self, y: int) -> Strip:
        if y >= len(self.rows):
            return Strip.blank(0)
        item, ink = self.rows[y], self.ink
        sign, pen, words = STATES.get(item.state, STATES["idle"])
        if item.aborted and item.state == "idle":
            sign, pen = "✗", "bad"
        here = item.key == host(self).store.selected
        bar = "▌" if self.has_focus and item.key == self.cursor_key else " "
        name = line(item.name or short_key(item.key))
        left: list[Span] = [
            (bar, ink("key")),
            (f"{sign} ", ink(pen)),
            (name, ink("claw", "b") if here else ink("text")),
        ]
        if self.size.width >= 60 and item.preview:
            left.append((f"   {line(item.preview)}", ink("faint")))
        right = [
            (words or clock(item.updated_ms), ink(pen if words else "faint")),
            (" ", ink("faint")),
        ]
        return row(self.line_width, left, right)

    def on_focus(self, event: Focus) -> None:
        self.refresh()

    def on_blur(self, event: Blur) -> None:
        self.refresh()

    def on_click(self, event: Click) -> None:
        y = event.get_content_offset_capture(self).y + self.scroll_offset.y
        if 0 <= y < len(self.rows):
            self.cursor_key = self.rows[y].key
            self.action_open()

    def _to(self, index: int) -> None:
        if self.rows:
            index = max(0, min(len(self.rows) - 1, index))
            self.cursor_key = self.rows[index].key
            self.scroll_into(index, index + 1)
            self.refresh()

    def action_move(self, step: int) -> None:
        self._to(self.cursor + step)

    def action_edge(self, where: int) -> None:
        self._to(0 if where < 0 else len(self.rows) - 1)

    def action_page(self, step: int) -> None:
        self._to(self.cursor + step * max(1, self.size.height - 1))

    def action_open(self) -> None:
        if self.rows:
            self.post_message(self.Opened(self.rows[self.cursor].key))

    async def action_filter(self) -> None:
        await self.app.run_action("app.filter")
