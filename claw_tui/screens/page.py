"""The base of a full-size view: status above, hints below, and a pull from the store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from textual.events import ScreenResume
from textual.geometry import Size
from textual.screen import Screen

from claw_tui.store.store import Pane
from claw_tui.widgets.bars import Banner, HintBar, StatusBar
from claw_tui.widgets.host import host

if TYPE_CHECKING:
    from textual.worker import Worker


class Page(Screen[None], inherit_bindings=False):
    """Subclasses compose StatusBar, Banner, their body and HintBar, and pull their panes."""

    AUTO_FOCUS = ""
    view = "1"
    mode = "NAV"
    """What the hint line takes as the mode; views with a text field override it."""
    _styled: tuple[int, int] = (-1, -1)
    """The rules its widgets were styled by."""

    _laid_out = Size(0, 0)

    def on_mount(self) -> None:
        self._styled = host(self).rules_serial

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Textual styles every widget of a screen that comes to the front: not when they were
        styled by the same rules already."""
        serial = host(self).rules_serial
        if serial == self._styled:
            event.refresh_styles = False
        self._styled = serial

    def lay_out(self) -> None:
        """Take its sizes before it is opened, so that opening it only paints. Textual lays out
        what comes to the front, by these private means, pinned by version. The widgets of a new
        page get their sizes by the first pass, and what follows from them by the next."""
        size = self.app.size
        if not self.is_mounted or self.app.screen is self or self._laid_out == size:
            return
        self._laid_out = size
        self._refresh_layout(size)
        self.pull(set(Pane))
        self._refresh_layout(size)
        self._layout_required = False

    @property
    def pane_name(self) -> str:
        return ""

    def pull(self, dirty: set[Pane]) -> bool:
        """Take what changed; True when work is left for the next tick."""
        for banner in self.query(Banner):
            banner.sync()
        for bar in self.query(StatusBar):
            bar.refresh()
        for hint in self.query(HintBar):
            hint.refresh()
        return False

    def repaint(self) -> None:
        """The theme changed: cached strips are worth nothing."""


def run_alone(page: Page, group: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
    """Do `work` while the page goes on; what the group is still at is given up for it."""
    worker: Worker[None] = page.run_worker(work, exclusive=True, group=group)
    del worker  # Textual keeps it, and ends it with the page
