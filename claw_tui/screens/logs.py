"""View 9: the engine's log. Follows its end, goes back page by page, keeps what a filter or a level
asks for, opens one record. Shows and moves; `logreader.py` asks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar

from msgspec.structs import replace
from textual.binding import BindingType
from textual.strip import Strip

from claw_tui.keymap import bindings
from claw_tui.screens.logreader import NEAR, LogReader
from claw_tui.screens.page import Page
from claw_tui.store.logs import Record
from claw_tui.store.store import Pane
from claw_tui.widgets.bars import HintBar, ToastBar
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import Lines, set_title
from claw_tui.widgets.logpaint import local, log_row, record_lines
from claw_tui.widgets.rowlist import LazyRows, Row, RowList

LISTED = 7
"""Rows of the list above an opened record on a small screen; more on a large one."""
COPY_CHARS = 200_000
"""A terminal's clipboard takes little more."""


class LogsPage(LogReader):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("rows"), *bindings("logs")]
    view = "9"
    about = "One record"
    opened = False
    _painted: tuple[object, ...] = ()
    """What the list was painted of."""

    @property
    def pane_name(self) -> str:
        return "log record" if self.opened else "logs"

    def on_mount(self) -> None:
        self.query_one(RowList).styles.height = "1fr"  # before anything is laid out by them
        self.query_one("#detail", Lines).display = False
        self.afresh()

    # ── showing ─────────────────────────────────────────────────────────────────────────────

    def pull(self, dirty: set[Pane]) -> bool:
        """The bars; nothing else here comes from the store."""
        Page.pull(self, dirty)
        self.query_one(ToastBar).refresh()
        self.show()
        return False

    def show(self) -> None:
        if not self.size.width or not self.query(RowList):  # not there yet, or going
            return
        now = (*self.shown(), self.size, self.opened, host(self).ink, self._place())
        if now == self._painted:
            return
        self._painted = now
        records, listed = self.window.records, self.query_one(RowList)
        detail = self.query_one("#detail", Lines)
        self.index = max(0, min(self.index, len(records) - 1))
        self.opened = self.opened and bool(records)
        many = LISTED if self.size.height < 30 else 2 * LISTED
        listed.styles.height = many + 2 if self.opened else "1fr"
        listed.empty = self._why_empty()
        set_title(listed, self._title(), self._place())
        listed.show(self.rows(), self.index)
        if self.following:
            listed.scroll_to(y=len(records), animate=False, force=True, immediate=True)
        if detail.display is not self.opened:  # the list gets another height by it
            self.call_after_refresh(self._keep_in_sight)
        detail.display = self.opened
        if self.opened:
            set_title(detail, self.about)
            detail.show(self.detail(max(20, self.size.width - 5)))
            detail.styles.height = "1fr"
        self.query_one(HintBar).refresh()

    def _keep_in_sight(self) -> None:
        self.query_one(RowList).scroll_into(self.index, self.index + 1)

    def rows(self) -> Sequence[Row]:
        records, width, ink = self.window.records, self.size.width - 3, host(self).ink
        return LazyRows(len(records), lambda at: log_row(records[at], width, ink))

    def detail(self, width: int) -> list[Strip]:
        return record_lines(self.window.records[self.index], width, host(self).ink)

    def _title(self) -> str:
        name = PurePath(self.window.bottom[0]).name
        sieve = self.window.sieve.words
        return " · ".join(part for part in ("Log", name, sieve) if part)

    def _place(self) -> str:
        """At the lower edge: whether it follows, how much is new, what is read."""
        if self.problem:
            return self.problem
        if self.reading and not self.following:
            return "reading…"
        seen = f"{len(self.window.records):,} of {self.window.scanned:,} lines · "
        some = seen if self.window.sieve.words else ""
        if self.following:
            return f"{some}following"
        if self.new:
            return f"{some}{self.new:,} new below · G"
        if not self.window.at_end:
            return f"{some}more below · G"
        return f"{some}not following · f"

    def _why_empty(self) -> str:
        if self.problem:
            return self.problem
        if not self.loaded or (self.reading and not self.window.scanned):
            return "…"
        if not self.window.sieve.words:
            return "nothing was logged yet"
        more = "; k looks further back" if self.older_there else ""
        whole = " of the whole log" if self.window.began else ""
        return f"none of {self.window.scanned:,} lines{whole}{more}"

    # ── keys ────────────────────────────────────────────────────────────────────────────────

    def chosen(self) -> Record | None:
        records = self.window.records
        return records[self.index] if self.index < len(records) else None

    def action_move(self, step: int) -> None:
        self._select(self.index + step)

    def action_edge(self, where: int) -> None:
        if where > 0:
            self.follow(True)
        else:
            self._select(0)

    def action_scroll(self, step: int) -> None:
        if self.opened:
            super().action_scroll(step)
        else:
            page = max(1, self.query_one(RowList).size.height - 1)
            self._select(self.index + step * page)

    def _select(self, index: int) -> None:
        last = max(0, len(self.window.records) - 1)
        if index < last or not self.window.at_end:
            self.following = False
        if index < 0 and not self.older_there:
            host(self).refuse(self._no_older())
        up, self.index = index < self.index, max(0, min(index, last))
        if self.index >= last and self.window.at_end:
            self.new = 0
        if up and self.index < NEAR:
            self.read_older()
        elif not up and self.index > last - NEAR:
            self.read_newer()
        self.query_one("#detail", Lines).scroll_to(y=0, animate=False, force=True, immediate=True)
        self.show()

    def _no_older(self) -> str:
        if self.window.began:
            return "the log begins here"
        return "this gateway tells only the end of its log"

    async def action_open(self) -> None:
        if self.chosen() is None:
            host(self).refuse("there is no record to open")
        elif self.opened:
            host(self).refuse("this is all of it; esc closes")
        else:
            self.opened, self.following = True, False
            self.show()

    async def action_back(self) -> None:
        if self.opened:
            self.opened = False
            self.show()
        else:
            await super().action_back()

    def action_follow(self) -> None:
        self.follow(not self.following)

    def action_level(self) -> None:
        self.afresh(self.window.sieve.next_level())
        self.show()

    def action_filter(self) -> None:
        from claw_tui.screens.ask import Prompt  # lazily: start-up cost

        def done(typed: str | None) -> None:
            if typed is not None:
                self.afresh(replace(self.window.sieve, needle=typed.strip()))
                self.show()

        hint = "! inverts · empty: all · esc back"
        self.app.push_screen(Prompt("Filter the log", self.window.sieve.needle, hint), done)

    def action_copy_record(self) -> None:
        record = self.chosen()
        if record is None:
            host(self).refuse("there is no record to copy")
            return
        words = record.raw[:COPY_CHARS]
        self.app.copy_to_clipboard(words)
        at = local(record.at)
        of = f" of {at:%H:%M:%S}" if at else ""
        host(self).store.notice("info", f"copied the record{of}, {len(words):,} characters")
