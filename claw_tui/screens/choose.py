"""A page with choices that `y` takes: what may run from now on, and the permission mode. Moving
to another choice starts the arming wait again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from rich.style import Style
from textual.binding import BindingType
from textual.strip import Strip

from claw_tui.keymap import bindings
from claw_tui.screens.ask import ArmedPage
from claw_tui.widgets.card import ArmedLines, HasKeeper
from claw_tui.widgets.cells import Span
from claw_tui.widgets.choicepaint import Choice, choice_lines
from claw_tui.widgets.host import host


class ChoicePage(ArmedPage):
    """Dismissed with True when `chosen` is to be done."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("ask"), *bindings("choose")]

    def __init__(
        self, topic: str, title: str, choices: Sequence[Choice], *, head: str = "", index: int = 0
    ) -> None:
        self._topic = topic
        self._head = head
        self._choices = choices
        self._index = index
        super().__init__(self._subject(), title, self._lines)

    @property
    def chosen(self) -> str:
        """The name of the choice under the cursor."""
        return self._choices[self._index].name

    @property
    def extra_keys(self) -> Sequence[Span]:
        ink = host(self).ink
        if len(self._choices) < 2:
            return ()
        return (("   j k", ink("key", "b")), (" choose", ink("text")))

    def action_choose(self, step: int) -> None:
        self._index = max(0, min(len(self._choices) - 1, self._index + step))
        self.subject = self._subject()
        cast(HasKeeper, self.app).keeper.select(self.subject)
        self.query_one("#lines", ArmedLines).scroll_to(y=0, animate=False, immediate=True)
        self.show()

    def _subject(self) -> str:
        return f"{self._topic}:{self._choices[self._index].name}"

    def _lines(self, width: int) -> list[Strip]:
        lines = choice_lines(self._head, self._choices, self._index, width, host(self).ink)
        return [strip.adjust_cell_length(width, Style.null()) for strip in lines]
