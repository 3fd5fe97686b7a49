"""All keys, straight from the table that also makes the bindings."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.strip import Strip

from claw_tui.keymap import VIEWS
from claw_tui.keytable import KEYS
from claw_tui.store.cmdline import VERBS
from claw_tui.store.sanitize import line
from claw_tui.widgets.cells import spans, wrap
from claw_tui.widgets.host import host
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.lineview import Lines, set_title

GROUPS = (
    ("Everywhere", ("any",)),
    ("Writing (TYPE)", ("type",)),
    ("Commands (NAV)", ("nav", "pane")),
    ("Lists and conversation", ("list", "talk")),
    ("Approvals", ("card", "queue")),
    ("Prompt (view 2)", ("prompt",)),
    ("Past runs and their replay", ("past",)),
    ("Lanes (view 6)", ("lanes",)),
    ("Logs (view 9)", ("logs",)),
    ("Interrupted runs, notices, pages with a list", ("runs", "rows")),
)


def help_lines(width: int, ink: Ink, bypass: str) -> list[Strip]:
    out: list[Strip] = []
    for title, wheres in GROUPS:
        out += [spans([]), spans([(f" {title}", ink("claw", "b"))])]
        for key in KEYS:
            if key.where in wheres:
                out += _entry(key.shown, key.help, width, ink)
    out += [spans([]), spans([(" Views (NAV)", ink("claw", "b"))])]
    for number, name, words in VIEWS:
        out += _entry(number, f"{name}{': ' + words if words else ''}", width, ink)
    out += [spans([]), spans([(" Command line (:)", ink("claw", "b"))])]
    for verb in VERBS:
        name = f"{verb.name} {verb.argument}".strip()
        out += _entry(name, verb.summary + (f" ({verb.key})" if verb.key else ""), width, ink)
    if bypass:
        out += [
            spans([]),
            *(spans([(f" {text}", ink("warn"))]) for text in wrap(f"⚠ {line(bypass)}", width - 2)),
        ]
    return out


def _entry(key: str, words: str, width: int, ink: Ink) -> list[Strip]:
    rows = wrap(words, max(20, width - 18))
    return [
        spans([(f"  {key if i == 0 else '':<14}", ink("key", "b")), (text, ink("text"))])
        for i, text in enumerate(rows)
    ]


class HelpPage(ModalScreen[None]):
    CSS_PATH = "ask.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "close", "close", show=False),
        Binding("j,down", "turn(1)", "down", show=False),
        Binding("k,up", "turn(-1)", "up", show=False),
        Binding("pagedown,space", "turn(15)", "page", show=False),
        Binding("pageup", "turn(-15)", "page", show=False),
    ]

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Lines("help")

    def on_mount(self) -> None:
        set_title(self.query_one("#box"), "All keys", "j k scroll · esc closes")
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        lines = self.query_one("#help", Lines)
        store = host(self).store
        lines.show(help_lines(lines.size.width, host(self).ink, store.engine.bypass))
        lines.styles.height = "1fr"

    def action_turn(self, step: int) -> None:
        self.query_one("#help", Lines).scroll_relative(y=step, animate=False)

    def action_close(self) -> None:
        self.dismiss(None)
