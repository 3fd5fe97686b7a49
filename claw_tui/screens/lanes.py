"""View 6: the lanes, what runs in them, waits and is parked. Shows and moves; what a key asks for
is a message to the application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from claw_tui.keymap import bindings
from claw_tui.screens.listpage import ListPage
from claw_tui.store.lanes import Lane, LaneRun
from claw_tui.widgets.bars import HintBar
from claw_tui.widgets.host import host
from claw_tui.widgets.lanepaint import lane_lines, lane_row, parting_row, run_lines, run_row
from claw_tui.widgets.lineview import Lines, set_title
from claw_tui.widgets.rowlist import LazyRows, Row, RowList

DETAIL = 7
"""Rows kept for the details on a small screen; more on a large one."""

Item = Lane | LaneRun | None
"""None: the line between lanes and runs."""


class LanesPage(ListPage):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("rows"), *bindings("lanes")]
    view = "6"

    @dataclass
    class Wanted(Message):
        """A key asked for something about `subject`: width and place by `step`, drop, open."""

        verb: str
        subject: Lane | LaneRun
        step: int = 0

    def __init__(self) -> None:
        super().__init__()
        self._clock: Timer | None = None
        self._kept = ""
        """The run under the cursor: rows move while it stays selected."""

    @property
    def pane_name(self) -> str:
        item = self.chosen()
        if isinstance(item, LaneRun):
            return "lanes queued" if item.group == "queued" else "lanes run"
        return "lanes"

    def on_mount(self) -> None:
        # How long things wait is told by the second, but only while something does.
        self._clock = self.set_interval(1.0, self.show, pause=True)

    # ── showing ─────────────────────────────────────────────────────────────────────────────

    def items(self) -> list[Item]:
        lanes = host(self).store.lanes
        return [*lanes.lanes.values(), None, *lanes.ordered()]

    def chosen(self) -> Item:
        items = self.items()
        return items[self.index] if self.index < len(items) else None

    def show(self) -> None:
        if not self.size.width or not self.query(RowList):
            return
        lanes, items = host(self).store.lanes, self.items()
        self._stay(items)
        listed, detail = self.query_one(RowList), self.query_one("#detail", Lines)
        low = DETAIL if self.size.height < 30 else 2 * DETAIL
        most = self.size.height - low - 5
        listed.styles.height = max(3, min(len(items), most)) + 2
        runs = len(lanes.runs)
        many = f"{runs} run{'s' if runs != 1 else ''}" if runs else ""
        set_title(listed, "Lanes", "PAUSED" if lanes.paused else many)
        listed.show(self.rows(), self.index)
        set_title(detail, "This run" if isinstance(items[self.index], LaneRun) else "This lane")
        detail.show(self.detail(max(20, self.size.width - 5)))
        detail.styles.height = "1fr"
        if self._clock is not None:
            if lanes.runs:
                self._clock.resume()
            else:
                self._clock.pause()
        self.query_one(HintBar).refresh()

    def _stay(self, items: Sequence[Item]) -> None:
        """Keep to the selected run wherever its row has gone."""
        for place, item in enumerate(items):
            if isinstance(item, LaneRun) and item.id == self._kept:
                self.index = place
        self.index = max(0, min(self.index, len(items) - 1))
        if items[self.index] is None:
            self.index = max(0, self.index - 1)
        item = items[self.index]
        self._kept = item.id if isinstance(item, LaneRun) else ""

    def rows(self) -> Sequence[Row]:
        items = self.items()
        return LazyRows(len(items), lambda at: self._row(items[at]))

    def _row(self, item: Item) -> Row:
        ink, width, lanes = host(self).ink, self.size.width - 3, host(self).store.lanes
        if item is None:
            return parting_row(len(lanes.runs), ink)
        if isinstance(item, Lane):
            return lane_row(item, width, ink)
        now = host(self).clock.now_ms()
        return run_row(item, self._asked(item), lanes.place(item), now, width, ink)

    def detail(self, width: int) -> list[Strip]:
        ink, lanes, item = host(self).ink, host(self).store.lanes, self.chosen()
        if isinstance(item, Lane):
            return lane_lines(item, width, ink, paused=lanes.paused)
        if item is None:
            return []
        known = {run.id: run for run in lanes.runs}
        ahead = {
            run_id: self._asked(known[run_id]) if run_id in known else "" for run_id in item.behind
        }
        return run_lines(item, self._asked(item), ahead, width, ink)

    def _asked(self, run: LaneRun) -> str:
        talk = host(self).store.conversations.get(run.session)
        return talk.asked(run.id) if talk is not None else ""

    # ── keys ────────────────────────────────────────────────────────────────────────────────

    def action_move(self, step: int) -> None:
        items = self.items()
        place = self.index + step
        if 0 <= place < len(items) and items[place] is None:
            place += step
        if 0 <= place < len(items):
            self._select(place)

    def action_edge(self, where: int) -> None:
        self._select(0 if where < 0 else len(self.items()) - 1)

    def _select(self, index: int) -> None:
        self._kept = ""
        super()._select(index)

    def action_width(self, step: int) -> None:
        item = self.chosen()
        if isinstance(item, Lane):
            self.post_message(self.Wanted("width", item, step))
        else:
            host(self).refuse("select a lane first: the width is a lane's")

    def action_place(self, step: int) -> None:
        self._ask("place", step)

    def action_drop(self) -> None:
        self._ask("drop")

    def _ask(self, verb: str, step: int = 0) -> None:
        item = self.chosen()
        if isinstance(item, LaneRun) and item.group == "queued":
            self.post_message(self.Wanted(verb, item, step))
        elif isinstance(item, LaneRun):
            host(self).refuse("it is going on already; s in its session stops it")
        else:
            host(self).refuse("select a message that waits first")

    async def action_open(self) -> None:
        item = self.chosen()
        if isinstance(item, LaneRun):
            self.post_message(self.Wanted("open", item))
        else:
            host(self).refuse("this is all of it")
