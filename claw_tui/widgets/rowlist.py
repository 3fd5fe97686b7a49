"""A list of one-line rows with a cursor; the page that shows it has the keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from msgspec import Struct
from rich.style import Style
from textual.strip import Strip

from claw_tui.widgets.cells import Span, row, spans
from claw_tui.widgets.lineview import LineView


class Row(Struct, frozen=True):
    left: Sequence[Span]
    right: Sequence[Span] = ()


class LazyRows(Sequence[Row]):
    """Rows that are made when they are drawn: a list of any length opens at once."""

    def __init__(self, length: int, make: Callable[[int], Row]) -> None:
        self._length = length
        self._make = make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        if isinstance(at, slice):
            return [self._make(place) for place in range(*at.indices(self._length))]
        if not -self._length <= at < self._length:
            raise IndexError(at)
        return self._make(at % self._length)


class RowList(LineView, can_focus=False):
    def __init__(self, name: str | None = None, empty: str = "") -> None:
        super().__init__(id=name)
        self.rows: Sequence[Row] = ()
        self.cursor = 0
        self.empty = empty

    def show(self, rows: Sequence[Row], cursor: int) -> None:
        self.rows, self.cursor = rows, cursor
        self.set_line_count(max(1, len(rows)))
        self.scroll_into(cursor, cursor + 1)
        self.refresh()

    def draw(self, y: int) -> Strip:
        if y >= len(self.rows):
            return spans(
                [(f" {self.empty}" if y == 0 and not self.rows else "", self.ink("faint"))]
            )
        item = self.rows[y]
        bar: Span = ("▌" if y == self.cursor else " ", self.ink("key"))
        return row(self.line_width, [bar, *item.left], [*item.right, (" ", Style.null())])
