"""The base of a full-size view: status above, hints below, and a pull from the store."""

from __future__ import annotations

from textual.screen import Screen

from claw_tui.store.store import Pane
from claw_tui.widgets.bars import Banner, HintBar, StatusBar


class Page(Screen[None], inherit_bindings=False):
    """Subclasses compose StatusBar, Banner, their body and HintBar, and pull their panes."""

    AUTO_FOCUS = ""
    view = "1"
    mode = "NAV"
    """What the hint line takes as the mode; views with a text field override it."""

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
