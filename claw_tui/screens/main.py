"""View 1: sessions, the conversation, the rail. One pane at 80 columns, three from 100 on."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from claw_tui.keymap import bindings
from claw_tui.screens.page import Page
from claw_tui.store.sessions import short_key
from claw_tui.store.store import Pane
from claw_tui.widgets.bars import Banner, HintBar, ModeBar, StatusBar, TitleBar, ToastBar
from claw_tui.widgets.composer import Composer
from claw_tui.widgets.conversation import ConversationView
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import LineView, set_title
from claw_tui.widgets.rail import LanesRail, WaitingRail
from claw_tui.widgets.sessions import SessionList
from claw_tui.widgets.waiting import WaitingStrip

PANES = ("sessions", "conversation", "rail")
WIDE_COLUMNS = 100
NARROW, WIDE = "-narrow", "-wide"


class MainScreen(Page):
    HORIZONTAL_BREAKPOINTS = [(0, NARROW), (WIDE_COLUMNS, WIDE)]  # noqa: RUF012 - Textual's
    BINDINGS = bindings("type", "pane")

    def __init__(self) -> None:
        # What will hold when it is mounted: each class set later styles the whole tree again.
        super().__init__(classes="-show-conversation -typing")
        self.pane = "conversation"
        self.zoomed = False
        self._stale: set[Pane] = set(Pane)
        self._started = False
        """Whether the composer has had the keys; before that the first frame says TYPE too."""

    def fit(self, columns: int) -> None:
        """Before it is mounted: Textual would see at its first resize only, and style and lay
        out everything again."""
        self.add_class(WIDE if columns >= WIDE_COLUMNS else NARROW, update=False)

    def compose(self) -> ComposeResult:
        yield StatusBar()
        yield Banner()
        yield TitleBar()
        with Horizontal(id="body"):
            yield SessionList("sessions")
            yield ConversationView("conversation")
            with Vertical(id="rail"):
                yield LanesRail("lanes")
                yield WaitingRail("waiting")
        yield ToastBar()
        yield WaitingStrip("queued")
        with Horizontal(id="compose"):
            yield ModeBar()
            yield Composer("composer")
        yield HintBar()

    def on_mount(self) -> None:
        self._show_pane()
        self.composer.focus()

    @property
    def composer(self) -> Composer:
        return self.query_one("#composer", Composer)

    @property
    def conversation(self) -> ConversationView:
        return self.query_one("#conversation", ConversationView)

    @property
    def mode(self) -> str:  # type: ignore[override]  # a constant in pages without a text field
        return "TYPE" if self.composer.has_focus or not self._started else "NAV"

    @property
    def pane_name(self) -> str:
        return self.pane

    # ── pulling ─────────────────────────────────────────────────────────────────────────────

    def pull(self, dirty: set[Pane]) -> bool:
        super().pull(dirty)
        self._stale |= dirty
        store = host(self).store
        left = False
        panes: tuple[tuple[Pane, str], ...] = (
            (Pane.SESSIONS, "#sessions"),
            (Pane.CONVERSATION, "#conversation"),
            (Pane.LANES, "#lanes"),
            (Pane.APPROVALS, "#waiting"),
        )
        for pane, selector in panes:
            widget = self.query_one(selector, LineView)
            if pane not in self._stale or not self._shown(widget):
                continue
            self._stale.discard(pane)
            pull = getattr(widget, "pull", None)
            if pull is not None and pull():
                left = True
                self._stale.add(pane)
        self.query_one(WaitingStrip).pull()
        if Pane.STATUS in dirty:
            key = store.selected
            self._conversation_title()
            self.composer.address(short_key(key))
        for bar in (TitleBar, ToastBar, ModeBar):
            self.query_one(bar).refresh()
        return left

    def _conversation_title(self) -> None:
        below = self.conversation.below
        sign = f"↓ {below} more" if below else ""
        set_title(self.conversation, host(self).store.selected, sign)
        title = self.query_one(TitleBar)  # the narrow layout has no border to say it in
        title.below = sign
        title.refresh()

    def on_conversation_view_below(self, message: ConversationView.Below) -> None:
        self._conversation_title()

    @staticmethod
    def _shown(widget: Widget) -> bool:
        return all(node.display for node in widget.ancestors_with_self if isinstance(node, Widget))

    def repaint(self) -> None:
        self.conversation.forget_paint()
        self._stale = set(Pane)

    # ── panes ───────────────────────────────────────────────────────────────────────────────

    def _show_pane(self) -> None:
        for name in PANES:
            self.set_class(self.pane == name, f"-show-{name}")
        self.set_class(self.zoomed, "-zoomed")
        title = self.query_one(TitleBar)
        title.pane, title.index = self.pane, PANES.index(self.pane) + 1
        title.refresh()
        self.call_after_refresh(host(self).store.mark, *Pane)

    def focus_pane(self) -> None:
        target = {"sessions": "#sessions", "conversation": "#conversation", "rail": "#waiting"}
        self.query_one(target[self.pane]).focus()

    def action_pane(self, step: int) -> None:
        self.pane = PANES[(PANES.index(self.pane) + step) % len(PANES)]
        self._show_pane()
        self.focus_pane()

    def action_nav(self) -> None:
        self.focus_pane()

    def action_zoom(self) -> None:
        self.zoomed = not self.zoomed
        self._show_pane()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "pane":
            return self.mode == "NAV"
        if action == "nav":
            return self.mode == "TYPE"
        return True

    def type(self) -> None:
        """NAV → TYPE: the conversation comes to the front and the composer has the keys."""
        if self.pane != "conversation":
            self.pane = "conversation"
            self._show_pane()
        self.composer.focus()

    def on_descendant_focus(self) -> None:
        self._started = True
        for bar in (ModeBar, HintBar, ToastBar):
            self.query_one(bar).refresh()
        self.set_class(self.mode == "TYPE", "-typing")

    def on_text_area_changed(self) -> None:
        self.query_one(HintBar).refresh()
