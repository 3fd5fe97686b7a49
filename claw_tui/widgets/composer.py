"""Where a message is written. Enter sends, ctrl+j breaks the line, up at the first line walks
through what was sent before. Everything typed here stays text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.events import Key, Paste
from textual.message import Message
from textual.widgets import TextArea

from claw_tui.store.sanitize import line, pasted
from claw_tui.widgets.host import host

MAX_LINES = 6
HISTORY = 100
"""Sent messages remembered per console."""
LONGEST_PASTE = 64 * 1024
"""Characters; wrapping more than that would hold up the screen."""
TOO_LONG = "too long to paste: write it to a file and use read:"


class Composer(TextArea):
    BINDINGS: ClassVar[list[BindingType]] = []

    @dataclass
    class Submitted(Message):
        """The operator sent this text."""

        text: str

    def __init__(self, name: str | None = None) -> None:
        super().__init__(
            id=name,
            soft_wrap=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
            tab_behavior="focus",
        )
        self.cursor_blink = False
        self.sent: list[str] = []
        self._at: int | None = None
        self._draft = ""

    def address(self, session: str) -> None:
        self.placeholder = Content(f"message {line(session)}…")

    async def _on_key(self, event: Key) -> None:
        match event.key:
            case "enter":
                event.stop()
                event.prevent_default()
                self._send()
            case "ctrl+j":
                event.stop()
                event.prevent_default()
                self.insert("\n")
            case "up" if self.cursor_location[0] == 0 and (not self.text or self._at is not None):
                event.stop()
                event.prevent_default()
                self._walk(-1)
            case "down" if self._at is not None and self._on_last_line():
                event.stop()
                event.prevent_default()
                self._walk(1)
            case _:
                await super()._on_key(event)

    async def _on_paste(self, event: Paste) -> None:
        event.stop()
        event.prevent_default()
        if len(event.text) > LONGEST_PASTE:
            host(self).refuse(TOO_LONG)
        elif not self.read_only:
            self.replace(pasted(event.text), *self.selection)

    def on_resize(self) -> None:
        # Textual wraps anew and leaves the cursor where the old lines had it.
        self.scroll_cursor_visible()

    def _on_last_line(self) -> bool:
        return self.cursor_location[0] == self.document.line_count - 1

    def _send(self) -> None:
        text = self.text
        if text.endswith("\\") and not text.endswith("\\\\"):
            end = self.document.end
            self.replace("\n", (end[0], end[1] - 1), end)
            self.move_cursor(self.document.end)
            return
        if not text.strip():
            return
        self.sent.append(text)
        del self.sent[:-HISTORY]
        self._at, self._draft = None, ""
        self.text = ""
        self.post_message(self.Submitted(text))

    def _walk(self, step: int) -> None:
        if not self.sent:
            return
        if self._at is None:
            self._draft, self._at = self.text, len(self.sent)
        self._at = max(0, self._at + step)
        if self._at >= len(self.sent):
            self._at = None
            self.text = self._draft
        else:
            self.text = self.sent[self._at]
        self.move_cursor(self.document.end)
