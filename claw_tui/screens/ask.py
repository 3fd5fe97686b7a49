"""Small pages over a view: a decision that needs a second look, a one-line prompt, the quit
question, all keys, a view without an engine, a terminal that is too small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, cast

from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Resize
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Input

from claw_tui.keymap import GREY, VIEWS, bindings
from claw_tui.screens.page import Page
from claw_tui.store.sanitize import line
from claw_tui.store.store import RECORDED
from claw_tui.widgets.bars import Banner, HintBar, StatusBar
from claw_tui.widgets.card import ArmedLines, HasKeeper
from claw_tui.widgets.cells import Span, clip, spans, wrap
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import Lines, set_title

LONGEST = 2000
"""Characters a one-line prompt takes."""

Painter = Callable[[int], list[Strip]]


class ArmedPage(ModalScreen[bool]):
    """Shows lines about a subject and takes `y` once they were seen (the arming rule)."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings("ask")
    AUTO_FOCUS = ""

    def __init__(self, subject: str, title: str, painter: Painter) -> None:
        super().__init__()
        self.subject = subject
        self._title_words = title
        self._painter = painter

    @property
    def extra_keys(self) -> Sequence[Span]:
        """More keys than `y` and `esc`, for the last line."""
        return ()

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield ArmedLines("lines")
            yield Lines("ask-keys")

    def on_mount(self) -> None:
        set_title(self.query_one("#box"), self._title_words)
        keeper = cast(HasKeeper, self.app).keeper
        keeper.select(self.subject)
        self.call_after_refresh(self.show)

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.show)

    def show(self) -> None:
        ink = host(self).ink
        shown = self.query_one("#lines", ArmedLines)
        lines = self._painter(shown.line_width)
        shown.present(self.subject, lines, max(3, self.size.height - 8))
        armed = cast(HasKeeper, self.app).keeper.armed() and shown.seen
        below = f" {shown.below} more lines · pgdn " if shown.below else ""
        set_title(self.query_one("#box"), self._title_words, below)
        pen = ink("key", "b") if armed else ink("faint")
        self.query_one("#ask-keys", Lines).show(
            [
                spans(
                    [
                        (" y", pen),
                        (" yes, do it   ", ink("text" if armed else "faint")),
                        ("esc", ink("key", "b")),
                        (" back", ink("text")),
                        *self.extra_keys,
                    ]
                )
            ]
        )

    def on_armed_lines_seen(self, message: ArmedLines.Seen) -> None:
        self.show()

    def action_yes(self) -> None:
        if not self.query_one("#lines", ArmedLines).seen:
            host(self).refuse("scroll to the end first (pgdn)")
            return
        keeper = cast(HasKeeper, self.app).keeper
        if keeper.take(self.subject):
            self.dismiss(True)
        else:
            host(self).refuse(keeper.why_not())
            self.show()

    def action_no(self) -> None:
        self.dismiss(False)

    def action_scroll(self, step: int) -> None:
        self.query_one("#lines", ArmedLines).turn(step)
        self.show()


class Prompt(ModalScreen[str | None]):
    """One line of text: a reason, a filter, a command. Nothing typed here is a key."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "back", show=False),
        Binding("tab", "complete", "complete", show=False),
    ]

    class CaughtUp(Message):
        """Goes the way of a key that was given to the page below, after the last of them."""

        def __init__(self, prompt: Prompt) -> None:
            super().__init__()
            self.prompt = prompt

    def __init__(
        self,
        label: str,
        value: str = "",
        hint: str = "",
        *,
        complete: Callable[[str], list[str]] | None = None,
        needed: str = "",
    ) -> None:
        super().__init__()
        self._label, self._value, self._hint = label, value, hint
        self._complete = complete
        self._needed = needed
        """Said when nothing was typed; empty when that is fine."""
        self._early: list[Key] | None = []
        """Keys for this prompt that came before it was there; None once it is."""
        self._held: list[Key] | None = []
        """Keys that came while older ones were on their way back from the page below; None once
        they are all here."""

    def compose(self) -> ComposeResult:
        with Vertical(id="prompt"):
            yield Lines("candidates")
            with Vertical(id="line"):
                yield Input(
                    self._value, id="input", compact=True, select_on_focus=False, max_length=LONGEST
                )

    def on_mount(self) -> None:
        box = self.query_one("#prompt")
        set_title(box, self._label, self._hint or "enter · esc back")
        field = self.query_one(Input)
        field.cursor_blink = False
        field.focus()
        early, self._early = self._early or [], None
        for key in early:
            self.take_early(key)
        self._candidates(field.value)
        stack = self.app.screen_stack
        below = stack[stack.index(self) - 1] if self in stack else self
        if not (below.focused or below).post_message(self.CaughtUp(self)):
            self.catch_up()

    def hold(self, key: Key) -> bool:
        """Whether this key waits for older ones: an enter must not overtake its text."""
        if self._held is None:
            return False
        self._held.append(key)
        return True

    def catch_up(self) -> None:
        """All older keys are here: those that were held follow."""
        held, self._held = self._held or [], None
        for key in held:
            self.query_one(Input)._forward_event(key)

    def take_early(self, key: Key) -> bool:
        """Take a key that went to the page below, typed in one go with the one that opened this
        prompt. Whatever the field itself has seen does not come here."""
        if not key.is_printable and key.key != "enter":
            return False
        if self._early is not None:
            self._early.append(key)
        elif key.key == "enter":
            self.call_later(self.query_one(Input).action_submit)
        else:
            self.query_one(Input).insert_text_at_cursor(key.character or "")
        return True

    def on_input_changed(self, event: Input.Changed) -> None:
        self._candidates(event.value)

    def _candidates(self, value: str) -> None:
        lines = self.query_one("#candidates", Lines)
        found = self._complete(value)[:5] if self._complete else []
        lines.display = bool(found)
        ink = host(self).ink
        lines.show(
            [spans([("  ", Style.null()), (clip(line(text), 60), ink("muted"))]) for text in found]
        )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if self._needed and not event.value.strip():
            set_title(self.query_one("#prompt"), self._label, self._needed)
            return
        self.dismiss(event.value)

    def action_complete(self) -> None:
        field = self.query_one(Input)
        found = self._complete(field.value) if self._complete else []
        if found:
            field.value = found[0] + ("" if " " in found[0] else " ")
            field.cursor_position = len(field.value)

    def action_cancel(self) -> None:
        self.dismiss(None)


class QuitPage(ModalScreen[str | None]):
    """What becomes of the engine: h keeps it running without a screen, s stops it."""

    CSS_PATH = "ask.tcss"
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "choose('')", "cancel", id="quit.cancel", show=False),
        Binding("h,enter", "choose('headless')", "leave running", id="quit.headless", show=False),
        Binding("s", "choose('stop')", "stop the engine", id="quit.stop", show=False),
    ]

    def __init__(self, mode: str, alive: list[str]) -> None:
        super().__init__()
        self._mode = mode
        self._alive = alive

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Lines("lines")

    def on_mount(self) -> None:
        set_title(self.query_one("#box"), "Leave the console?")
        ink = host(self).ink
        words = (
            f"Still going: {', '.join(self._alive)}."
            if self._alive
            else "Nothing is running or waiting."
        )
        keys = [
            ("h", "leave the engine running, without a screen"),
            ("s", "stop the engine: runs are stopped, everything is on disk"),
            ("esc", "stay here"),
        ]
        if self._mode == RECORDED:
            words, keys = "A recorded run: nothing goes on.", [("h", "leave"), keys[-1]]
        elif self._mode != "embedded":
            keys[0] = ("h", "leave; the engine is another process and goes on")
        out = [spans([])]
        out += [spans([(f" {text}", ink("text"))]) for text in wrap(words, 60)]
        out.append(spans([]))
        out += [
            spans([(f"  {key:>3}", ink("key", "b")), (f"  {label}", ink("muted"))])
            for key, label in keys
        ]
        self.query_one("#lines", Lines).show([*out, spans([])])

    def action_choose(self, what: str) -> None:
        if what != "stop" or self._mode != RECORDED:
            self.dismiss(what or None)


class GreyPage(Page):
    """A view whose engine is not there yet: says what it will show, and why not now."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.view('1')", "back", show=False)]

    def __init__(self, view: str) -> None:
        super().__init__()
        self.view = view

    def compose(self) -> ComposeResult:
        yield StatusBar()
        yield Banner()
        yield Lines("grey")
        yield HintBar()

    def on_mount(self) -> None:
        ink = host(self).ink
        number = self.view if self.view.isdigit() else ":"
        name, words = GREY.get(self.view) or next(v[1:] for v in VIEWS if v[0] == self.view)
        sentence = f"{words[0].upper()}{words[1:]}."
        self.query_one("#grey", Lines).show(
            [
                spans([]),
                spans([(f"  {number} ", ink("faint")), (name, ink("muted", "b"))]),
                spans([]),
                *(spans([(f"    {t}", ink("faint"))]) for t in wrap(sentence, 68)),
                spans([]),
                spans(
                    [
                        ("    ", ink("faint")),
                        ("1", ink("key")),
                        (" console   ", ink("faint")),
                        ("8", ink("key")),
                        (" approvals", ink("faint")),
                    ]
                ),
            ]
        )


class TooSmall(ModalScreen[None]):
    """Below 60x16 nothing can be shown honestly, approvals least of all."""

    CSS_PATH = "ask.tcss"
    AUTO_FOCUS = ""

    def compose(self) -> ComposeResult:
        yield Lines("small")

    def on_mount(self) -> None:
        self.show()

    def on_resize(self, event: Resize) -> None:
        self.show()

    def show(self) -> None:
        ink, waiting = host(self).ink, len(host(self).store.queue.pending)
        words = [
            "This terminal is too small:",
            f"{self.app.size.width}x{self.app.size.height}, 60x16 is needed.",
            f"{waiting} approvals wait." if waiting else "",
            "ctrl+c leaves.",
        ]
        width = max(2, self.app.size.width - 2)
        self.query_one("#small", Lines).show(
            [spans([(f" {text}", ink("warn"))]) for part in words for text in wrap(part, width)]
        )

    def on_key(self, event: Key) -> None:
        event.stop()


def plain(text: str) -> Content:
    """Outside text for a Textual widget: never markup."""
    return Content(line(text))
