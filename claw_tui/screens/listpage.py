"""A page with a list above and the whole of the selected row below it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.events import Resize, ScreenResume
from textual.strip import Strip

from claw_tui.keymap import bindings
from claw_tui.screens.page import Page
from claw_tui.store.store import Pane
from claw_tui.widgets.bars import Banner, HintBar, StatusBar, ToastBar
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import Lines, set_title
from claw_tui.widgets.rowlist import Row, RowList

LISTED = 6
"""Rows of the list beside the details on a small screen; more on a large one."""


class ListPage(Page):
    """Subclasses have `rows` and `detail`, and their keys."""

    CSS_PATH = "lists.tcss"
    BINDINGS = bindings("rows")
    heading = ""
    empty = ""
    about = "Details"

    def __init__(self) -> None:
        super().__init__()
        self.index = 0

    @property
    def pane_name(self) -> str:
        return self.view

    def rows(self) -> Sequence[Row]:
        """One row a thing."""
        raise NotImplementedError

    def detail(self, width: int) -> list[Strip]:
        """Everything about the selected thing, in lines of at most `width` cells."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield StatusBar()
        yield Banner()
        yield RowList("rows", self.empty)
        yield Lines("detail")
        said = ToastBar()
        said.said_only = True
        yield said
        yield HintBar()

    def pull(self, dirty: set[Pane]) -> bool:
        super().pull(dirty)
        if self.is_mounted and self.size.width:
            self.show()
        self.query_one(ToastBar).refresh()
        return False

    def show(self) -> None:
        rows = self.rows()
        self.index = max(0, min(self.index, len(rows) - 1))
        listed, detail = self.query_one(RowList), self.query_one("#detail", Lines)
        limit = LISTED if self.size.height < 30 else 2 * LISTED
        listed.styles.height = max(1, min(len(rows), limit)) + 2
        set_title(listed, self.heading, str(len(rows)) if rows else "")
        listed.show(rows, self.index)
        detail.display = bool(rows)
        if rows:
            set_title(detail, self.about)
            detail.show(self.detail(max(20, self.size.width - 5)))
            detail.styles.height = "1fr"

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.show)

    def on_screen_resume(self, event: ScreenResume) -> None:
        host(self).store.mark(Pane.RUNS)

    # ── keys ────────────────────────────────────────────────────────────────────────────────

    def action_move(self, step: int) -> None:
        self._select(self.index + step)

    def action_edge(self, where: int) -> None:
        self._select(0 if where < 0 else len(self.rows()))

    def _select(self, index: int) -> None:
        self.index = index
        self.query_one("#detail", Lines).scroll_to(y=0, animate=False, force=True, immediate=True)
        self.show()

    def action_scroll(self, step: int) -> None:
        detail = self.query_one("#detail", Lines)
        y = detail.scroll_offset.y + step * max(1, detail.size.height - 1)
        detail.scroll_to(y=y, animate=False, force=True, immediate=True)

    async def action_open(self) -> None:
        raise NotImplementedError

    async def action_back(self) -> None:
        await self.app.run_action("app.view('1')")
