"""A text of any length, fetched page by page as it is scrolled to. Keeps one unbroken stretch of
it; knows nothing about where pages come from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from msgspec import Struct
from textual.events import Resize
from textual.message import Message
from textual.strip import Strip

from claw_tui.store.sanitize import tame
from claw_tui.widgets.cells import Span, spans, wrap
from claw_tui.widgets.lineview import LineView

PAGE_CHARS = 10_000
"""Characters of one page: to wrap them takes some 4 ms."""
MARGIN_ROWS = 60
"""So many rows before the end of what is there, more is asked for."""


class Piece(Struct):
    """One page: where it begins in the text, its characters, its rows."""

    offset: int
    text: str
    rows: list[str]

    @property
    def end(self) -> int:
        return self.offset + len(self.text)


class PagedText(LineView):
    @dataclass
    class Needed(Message):
        """The page that begins at `offset` is wanted, for the text of this `subject`."""

        subject: str
        offset: int

    class Moved(Message):
        """Other rows are on the screen now."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.subject = ""
        self.chars = 0
        """Characters of the whole text."""
        self.pieces: list[Piece] = []
        self.match: int | None = None
        """The offset of the match that is looked at."""
        self._shown = False
        """Whether it was scrolled to."""
        self.mark_row = -1
        self._needle: re.Pattern[str] | None = None
        self._asked: int | None = None
        self._to_end = False

    def begin(self, subject: str, at: int | None = None, needle: str = "") -> None:
        """Show another text, from its beginning or from the match at `at`."""
        self.subject, self.pieces, self.chars = subject, [], 0
        self.match, self.mark_row, self._shown = at, -1, at is None
        self._asked, self._to_end = None, False
        self._needle = re.compile(re.escape(tame(needle)), re.IGNORECASE) if needle else None
        self.set_line_count(1)
        self._to(0)
        self._ask((at or 0) // PAGE_CHARS * PAGE_CHARS)

    def take(self, offset: int, text: str, chars: int) -> None:
        """A page has come; one that does not join what is there takes its place."""
        self._asked = None
        self.chars = chars
        piece = Piece(offset, text, self._wrap(text))
        if self.pieces and offset == self.pieces[-1].end:
            self._join(piece)
        elif self.pieces and piece.end == self.pieces[0].offset:
            self.pieces.insert(0, piece)
            self._measure()
            self._to(self.scroll_offset.y + len(piece.rows))
        else:
            self.pieces = [piece]
            self._measure()
            self._to(0)
        if self._to_end:
            self._to_end = False
            self._to(self.max_scroll_y)
        self._mark()
        self.refresh()
        self._more()
        self.post_message(self.Moved())

    @property
    def following(self) -> int | None:
        """Where the text goes on behind what is there."""
        end = self.pieces[-1].end if self.pieces else 0
        return end if end < self.chars else None

    @property
    def share(self) -> str:
        """How far down the text the last visible row is."""
        if not self.pieces or not self.chars:
            return ""
        rows = sum(len(piece.rows) for piece in self.pieces)
        seen = min(rows, self.scroll_offset.y + self.size.height)
        if seen >= rows and self.following is None:
            return "end"
        first, end = self.pieces[0].offset, self.pieces[-1].end
        at = first + (end - first) * seen // max(1, rows)
        return f"{min(99, 100 * at // self.chars)}%"

    # ── rows ────────────────────────────────────────────────────────────────────────────────

    def _wrap(self, text: str) -> list[str]:
        return wrap(tame(text), self.line_width - 2)

    def _join(self, piece: Piece) -> None:
        """A page rarely begins with a line: its first words go on in the row before."""
        last = self.pieces[-1]
        if not last.text.endswith("\n") and last.rows:
            seam = self._wrap(last.rows[-1] + piece.text.partition("\n")[0])
            rest = piece.text.partition("\n")[2]
            last.rows[-1:] = seam[:1]
            piece.rows = seam[1:] + (self._wrap(rest) if "\n" in piece.text else [])
        elif last.rows and not last.rows[-1]:
            last.rows.pop()
        self.pieces.append(piece)
        self._measure()

    def _measure(self) -> None:
        self.set_line_count(max(1, sum(len(piece.rows) for piece in self.pieces)))

    def _row(self, y: int) -> str | None:
        for piece in self.pieces:
            if y < len(piece.rows):
                return piece.rows[y]
            y -= len(piece.rows)
        return None

    def draw(self, y: int) -> Strip:
        words = self._row(y)
        if words is None:
            waiting = " …" if y == 0 and not self.pieces else ""
            return spans([(waiting, self.ink("faint"))])
        bar = ("▌ " if y == self.mark_row else "  ", self.ink("key"))
        return spans([bar, *self._lit(words)])

    def _lit(self, words: str) -> list[Span]:
        pen = self.ink("text")
        if self._needle is None:
            return [(words, pen)]
        out: list[Span] = []
        at = 0
        for found in self._needle.finditer(words):
            out += [(words[at : found.start()], pen), (found[0], self.ink("key", "r"))]
            at = found.end()
        return [*out, (words[at:], pen)]

    def _mark(self) -> None:
        """Find the row of the match, and scroll to it once."""
        self.mark_row = -1
        if self.match is None or not self.size.width:
            return
        above = 0
        for piece in self.pieces:
            if piece.offset <= self.match < piece.end:
                inside = self._wrap(piece.text[: self.match - piece.offset + 1])
                self.mark_row = above + max(0, len(inside) - 1)
                break
            above += len(piece.rows)
        if self.mark_row >= 0 and not self._shown:
            self._shown = True
            self._to(max(0, self.mark_row - self.size.height // 3))

    def on_resize(self, event: Resize) -> None:
        """Rows of another width; what was at the top stays there, nearly."""
        if not self.pieces:
            return
        top = self.scroll_offset.y / max(1, self.virtual_size.height)
        for piece in self.pieces:
            piece.rows = self._wrap(piece.text)
        self._measure()
        self._to(round(top * self.virtual_size.height))
        self._mark()
        self._more()
        self.post_message(self.Moved())

    # ── moving ──────────────────────────────────────────────────────────────────────────────

    def _ask(self, offset: int) -> None:
        if self._asked != offset:
            self._asked = offset
            self.post_message(self.Needed(self.subject, offset))

    def _more(self) -> None:
        """Ask for what is nearly scrolled to, below and above."""
        if not self.pieces:
            return
        rows = self.virtual_size.height
        below = rows - self.scroll_offset.y - self.size.height
        if below < MARGIN_ROWS and self.following is not None:
            self._ask(self.following)
        elif self.scroll_offset.y < MARGIN_ROWS and self.pieces[0].offset:
            self._ask(max(0, self.pieces[0].offset - PAGE_CHARS))

    def _to(self, y: int) -> None:
        self.scroll_to(y=y, animate=False, force=True, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._more()
        self.post_message(self.Moved())

    def turn(self, rows: int) -> None:
        self._to(self.scroll_offset.y + rows)

    def edge(self, where: int) -> None:
        """To the beginning or the end of the whole text."""
        if where < 0:
            if self.pieces and self.pieces[0].offset:
                self.pieces = []
                self._ask(0)
            self._to(0)
        elif self.following is not None:
            self._to_end = True
            self._ask((self.chars - 1) // PAGE_CHARS * PAGE_CHARS)
        else:
            self._to(self.max_scroll_y)
