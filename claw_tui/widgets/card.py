"""The approval card's parts: why above, the command in a scroll of its own, where and with
what below, the keys last. Drawing the command is what tells the arming rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

from rich.style import Style
from textual.message import Message
from textual.strip import Strip

from claw_tui.armed import Gatekeeper
from claw_tui.store.approvals import Card
from claw_tui.widgets.bars import Bar
from claw_tui.widgets.cells import Span, spans
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import Lines


class HasKeeper(Protocol):
    keeper: Gatekeeper


class ArmedLines(Lines):
    """Lines a key decides about: says so to the arming rule when they are drawn, and remembers
    whether the last of them was on the screen at least once."""

    DEFAULT_CSS = "ArmedLines { height: 1fr; }"

    @dataclass
    class Seen(Message):
        """The last line about `subject` was drawn for the first time."""

        subject: str

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.subject = ""
        self._seen: set[str] = set()

    @property
    def seen(self) -> bool:
        return self.subject in self._seen

    def present(self, subject: str, lines: list[Strip], height: int) -> None:
        """Show `lines` about `subject` in at most `height` rows."""
        fresh = subject != self.subject
        self.subject, self.lines = subject, lines
        self.set_line_count(len(lines))
        self.styles.height = max(1, min(len(lines), height))
        if fresh:
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.refresh()

    def draw(self, y: int) -> Strip:
        keeper = cast(HasKeeper, self.app).keeper
        if y >= len(self.lines) - 1 and not self.seen:
            self._seen.add(self.subject)
            if self.scroll_offset.y:
                keeper.disarm()  # the wait begins with the frame that shows the end
            self.post_message(self.Seen(self.subject))
        keeper.drawn(self.subject)
        return super().draw(y)

    def turn(self, step: int) -> None:
        self.scroll_to(
            y=self.scroll_offset.y + step * (self.size.height - (self.size.height > 4)),
            animate=False,
            force=True,
            immediate=True,
        )

    @property
    def below(self) -> int:
        """Lines below the visible ones, as the height was asked for."""
        height = self.styles.height
        rows = int(height.value) if height is not None else self.size.height
        return max(0, len(self.lines) - round(self.scroll_target_y) - rows)


class CardKeys(Bar):
    """The keys of the card; bright once they would be obeyed."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.card: Card | None = None
        self.seen = False
        """Whether all of the card was on the screen; before that `y` is not obeyed."""

    def draw(self, width: int) -> Strip:
        ink, card = host(self).ink, self.card
        if card is None:
            return spans([])
        armed = cast(HasKeeper, self.app).keeper.armed()
        wide = width >= 92
        many = card.count if card.count > 1 else 0
        keys = [
            ("y", ("once all" if wide else "all") + f" {many}" if many else "once", True),
            ("n", f"deny {many}" if many else "deny", True),
            ("r", "deny with reason" if wide else "reason", True),
        ]
        if card.picture.always.patterns or card.picture.offers:
            keys.append(("w", "always…", False))
        keys.append(("enter", "more" if many and not wide else "details", False))
        keys += [("space", "mark", False), ("esc", "later", False)]
        parts: list[Span] = [(" ", Style.null())]
        for key, label, decides in keys:
            lit = (armed and (self.seen or key != "y")) or not decides
            parts.append((key, ink("key", "b") if lit else ink("faint")))
            parts.append(
                (f" {label}" + ("   " if wide else "  "), ink("text") if lit else ink("faint"))
            )
        if not armed:
            parts.append(("◌", ink("faint")))
        return spans(parts)
