"""The two lists of view 8 beside the queue: what runs unasked, and what was decided; each with all
of the selected row below it. Shows only."""

from __future__ import annotations

from textual.strip import Strip

from claw_tui.screens.page import Page
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import Lines, set_title
from claw_tui.widgets.queue import HistoryList
from claw_tui.widgets.rowlist import RowList
from claw_tui.widgets.rules import decision_lines, rule_lines, rule_rows


class ListedSections(Page):
    """Expects a RowList, a HistoryList and the Lines `#rule` among its widgets."""

    def __init__(self) -> None:
        super().__init__()
        self._rule = 0
        self._past = 0

    def _show_history(self) -> None:
        past, ink = host(self).store.queue.history, host(self).ink
        self._past = max(0, min(self._past, len(past) - 1))
        history = self.query_one(HistoryList)
        history.styles.height = "1fr"
        set_title(history, "Decided", str(len(past)) if past else "")
        history.show(past, self._past)
        chosen = decision_lines(past[self._past], self.size.width - 6, ink) if past else []
        self._show_detail("This decision", chosen)

    def _show_rules(self) -> None:
        rules, ink = host(self).store.rules, host(self).ink
        self._rule = max(0, min(self._rule, len(rules) - 1))
        listed = self.query_one(RowList)
        set_title(listed, "Rules and grants: what runs unasked", str(len(rules)) if rules else "")
        listed.show(rule_rows(rules, self.size.width - 4, ink), self._rule)
        chosen = rules[self._rule] if rules else None
        lines = rule_lines(chosen, self.size.width - 6, ink) if chosen else []
        self._show_detail("This grant" if chosen and chosen.grant else "This rule", lines)

    def _show_detail(self, title: str, lines: list[Strip]) -> None:
        detail = self.query_one("#rule", Lines)
        detail.display = bool(lines)
        if lines:
            set_title(detail, title)
            detail.show(lines)
            detail.styles.height = min(len(lines), self.size.height // 2) + 2
