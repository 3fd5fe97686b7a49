"""View 8: the queue with the card of the selected request, the standing rules, and what was
decided before. Shows and moves; deciding is the application's, behind the arming rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize, ScreenResume
from textual.message import Message

from claw_tui.armed import Gatekeeper
from claw_tui.keymap import bindings
from claw_tui.screens.sections import ListedSections
from claw_tui.store.approval import Approval
from claw_tui.store.approvals import Card
from claw_tui.store.sanitize import line
from claw_tui.store.store import Pane
from claw_tui.store.words import countdown
from claw_tui.widgets.bars import Banner, HintBar, StatusBar, ToastBar
from claw_tui.widgets.card import ArmedLines, CardKeys
from claw_tui.widgets.cardpaint import (
    card_title,
    command_lines,
    foot_lines,
    part_lines,
    why_lines,
)
from claw_tui.widgets.cells import clip, spans, wrap
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import Lines, set_title
from claw_tui.widgets.queue import HistoryList, QueueList
from claw_tui.widgets.rowlist import RowList

QUEUE_LINES = 5
"""Lines of the queue beside a card on a small screen; more on a large one."""
COMMAND_LINES = 3
"""Lines a long command keeps at least, however long the list of its parts is."""
READING_LINES = 12
"""Lines of a long command for which the gaps, the reason and the queue give way."""
UNSEEN = "scroll to the end of the command first (pgdn)"

SECTIONS = ("queue", "rules", "history")


class HasKeeper(Protocol):
    keeper: Gatekeeper


class ApprovalsScreen(ListedSections):
    CSS_PATH = "approvals.tcss"
    BINDINGS = [*bindings("card"), *bindings("queue")]  # noqa: RUF012 - Textual's
    view = "8"
    mode = "CARD"

    @dataclass
    class Wanted(Message):
        """A key asked for something about `card`: allow, deny, reason, always or later; or to
        undo the rule whose id it is."""

        verb: str
        card: str

    def __init__(self) -> None:
        super().__init__()
        self.afresh()

    def afresh(self) -> None:
        """As it is when it is opened: the queue, unfiltered, the oldest request first."""
        self.selected = self.needle = ""
        self.details = False
        self.section = "queue"
        self._index = self._rule = self._past = 0

    @property
    def pane_name(self) -> str:
        return self.section

    def compose(self) -> ComposeResult:
        yield StatusBar()
        yield Banner()
        yield QueueList("queue")
        with Vertical(id="card"):
            yield Lines("why")
            yield ArmedLines("command")
            yield ArmedLines("parts")
            yield Lines("foot")
            yield CardKeys("keys")
        yield Lines("warning")
        yield HistoryList("history")
        yield RowList("rules", "nothing runs unasked: w on a card makes a rule or a grant")
        yield Lines("rule")
        said = ToastBar(id="said")
        said.said_only = True
        yield said
        yield HintBar()

    @property
    def keeper(self) -> Gatekeeper:
        return cast(HasKeeper, self.app).keeper

    # ── pulling ─────────────────────────────────────────────────────────────────────────────

    def pull(self, dirty: set[Pane]) -> bool:
        super().pull(dirty)
        if dirty and self.is_mounted and self.size.width:
            self._show()
        return False

    def card(self) -> Card | None:
        return host(self).store.queue.cards.get(self.selected)

    def _show(self) -> None:
        queue = self.section == "queue"
        self.query_one("#rules").display = self.section == "rules"
        for name in ("rule", "said"):
            self.query_one(f"#{name}").display = not queue
        if queue:
            self._show_queue()
            return
        for name in ("queue", "card", "warning"):
            self.query_one(f"#{name}").display = False
        if self.app.screen is self:
            self.keeper.select(None)  # no card on the screen, none to decide about
        self.query_one(HistoryList).display = self.section == "history"
        if self.section == "rules":
            self._show_rules()
        else:
            self._show_history()
        self.query_one(ToastBar).refresh()

    def _show_queue(self) -> None:
        store = host(self).store
        rows = store.queue.ordered(self.needle)
        self._keep_selection(rows)
        folded = len(store.queue.pending)
        room = self.size.height - 2 - (1 if self.query_one(Banner).display else 0)
        queue, history = self.query_one(QueueList), self.query_one(HistoryList)
        frame = self.query_one("#card", Vertical)
        listed = min(len(rows), QUEUE_LINES if room < 30 else 12)
        card = self.card()
        warned = self._warning()
        tight = card is not None and self._tight(card.head, room - warned - listed - 2)
        if tight:
            listed = min(listed, 2 if room >= 20 else 1)
        queue.display = bool(rows)
        queue.styles.height = listed + 2
        many = f"Approvals: {folded} requests" if folded > len(store.queue.cards) else "Approvals"
        how = " by agent and program" if store.queue.grouped else ""
        set_title(queue, many + how, f"/ {self.needle}" if self.needle else "")
        queue.show(rows, self._index)
        here = card is not None and self.app.screen is self
        self.keeper.select(card.subject if card and here else self.keeper.state.card)
        frame.display = card is not None
        used = warned + (listed + 2 if rows else 0)
        if card is not None:
            used += self._show_card(card, len(rows), room - used, tight)
        left = room - used
        history.display = left >= 3
        history.styles.height = max(3, left)
        set_title(history, "Decided", "" if rows else "nothing waits for you")
        history.show(store.queue.history)

    def _keep_selection(self, rows: list[Card]) -> None:
        place = host(self).store.queue.place(self.selected, self.needle)
        if place is not None:
            self._index = place
            return
        self._index = max(0, min(self._index, len(rows) - 1))
        self.selected = rows[self._index].id if rows else ""
        self.details = False

    def _tight(self, card: Approval, room: int) -> bool:
        """Whether `room` lines are too few for the card with its gaps, all of the reason and
        all of its parts."""
        ink, width = host(self).ink, self.size.width - 5
        fixed = len(why_lines(card, width, ink)) + len(foot_lines(card, width, ink)) + 5
        command = len(command_lines(card, width, ink))
        parts = len(part_lines(card, width, ink, details=False)) + 1
        return fixed + min(command, READING_LINES) + parts > room

    def _show_card(self, shown: Card, total: int, room: int, tight: bool) -> int:
        """Fill the card into at most `room` lines; returns the lines it takes."""
        ink, width, card = host(self).ink, self.size.width - 5, shown.head
        gap = 0 if tight else 1
        why = why_lines(card, width, ink, 1) if tight else why_lines(card, width, ink)
        foot = foot_lines(card, width, ink)
        command_rows = command_lines(card, width, ink)
        part_rows = part_lines(card, width, ink, details=self.details)
        fixed = len(why) + len(foot) + 1 + 2 + gap * (bool(why) + bool(foot))
        left = room - fixed
        if part_rows and not tight:
            part_rows.insert(0, spans([]))
        parts_height = min(len(part_rows), max(1, left - min(len(command_rows), COMMAND_LINES)))
        height = max(1, min(len(command_rows), left - parts_height))
        for name, rows in (("#why", why), ("#foot", foot)):
            lines = self.query_one(name, Lines)
            lines.display = bool(rows)  # without rows it would still take one, and its gap
            lines.show(rows)
        command, parts = self._halves()
        command.present(shown.subject, command_rows, height)
        parts.display = bool(part_rows)
        parts.present(shown.subject, part_rows, parts_height)
        if self.seen:
            host(self).store.queue.viewed.add(shown.id)
        keys = self.query_one(CardKeys)
        keys.card, keys.seen = shown, self.seen
        keys.refresh()
        frame = self.query_one("#card", Vertical)
        frame.styles.height = height + parts_height + fixed
        frame.set_class(card.dangerous, "-danger")
        frame.set_class(tight, "-tight")
        self._frame_words(shown, total)
        return height + parts_height + fixed

    def _halves(self) -> tuple[ArmedLines, ArmedLines]:
        return self.query_one("#command", ArmedLines), self.query_one("#parts", ArmedLines)

    @property
    def seen(self) -> bool:
        """Whether the whole command and all of its parts were on the screen once."""
        command, parts = self._halves()
        return command.seen and (parts.seen or not parts.lines)

    def _frame_words(self, shown: Card, total: int) -> None:
        frame, card = self.query_one("#card", Vertical), shown.head
        left = f" {countdown(card.left_ms(host(self).clock.now_ms()))} left"
        title = clip(
            line(card_title(card, self._index + 1, total, shown.count)),
            self.size.width - 9 - len(left),
        )
        gap = max(1, self.size.width - 7 - len(title) - len(left))
        frame.border_title = Content(f"{title} {'─' * gap}{left}")
        command, parts = self._halves()
        below = command.below + parts.below
        words = f" {below} more lines · pgdn " if below else ""
        if below and not self.seen:
            words = f" {below} more lines · {UNSEEN} "
        frame.border_subtitle = Content(words)

    def on_armed_lines_seen(self, message: ArmedLines.Seen) -> None:
        host(self).store.mark(Pane.APPROVALS)

    def _warning(self) -> int:
        """The engine's sentence about bypassing, in full, where decisions are made."""
        store, ink = host(self).store, host(self).ink
        lines = self.query_one("#warning", Lines)
        words = line(store.engine.bypass)
        lines.display = bool(words)
        if not words:
            return 0
        rows = wrap(f"⚠ {words}", self.size.width - 2)[:2]
        lines.show([spans([(f" {text}", ink("warn"))]) for text in rows])
        return len(rows)

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(host(self).store.mark, Pane.APPROVALS)

    def on_screen_resume(self, event: ScreenResume) -> None:
        self.keeper.disarm()
        if self.is_mounted and self.size == self.app.size:
            # The first frame is the whole page, not an old one and then a new one.
            self.pull({Pane.APPROVALS})
        else:
            self.refresh(layout=True)
            host(self).store.mark(Pane.APPROVALS)

    # ── keys ────────────────────────────────────────────────────────────────────────────────

    def action_section(self, step: int) -> None:
        self.section = SECTIONS[(SECTIONS.index(self.section) + step) % len(SECTIONS)]
        self.keeper.disarm()
        self._show()
        self.query_one(HintBar).refresh()

    def action_undo(self) -> None:
        rules = host(self).store.rules
        if self.section != "rules":
            host(self).refuse("u takes a rule back: tab to the rules")
        elif not rules:
            host(self).refuse("there is no rule or grant to take back")
        else:
            self.post_message(self.Wanted("undo", rules[self._rule].id))

    def action_move(self, step: int) -> None:
        if self.section == "rules":
            self._rule += step
            self._show()
            return
        if self.section == "history":
            self._past += step
            self._show()
            return
        rows = host(self).store.queue.ordered(self.needle)
        if rows:
            self._index = max(0, min(len(rows) - 1, self._index + step))
            self.selected = rows[self._index].id
            self.details = False
            self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        of_a_card = action in ("reason", "always", "details", "mark", "group")
        return self.section == "queue" or not of_a_card

    def action_scroll_card(self, step: int) -> None:
        if self.section != "queue":
            listed = self.query_one(HistoryList if self.section == "history" else RowList)
            self.action_move(step * max(1, listed.size.height - 1))
            return
        command, parts = self._halves()
        first = command.below > 0 if step > 0 else parts.scroll_offset.y == 0
        (command if first else parts).turn(step)
        host(self).store.mark(Pane.APPROVALS)

    def action_details(self) -> None:
        self.details = not self.details
        self._show()

    def action_mark(self) -> None:
        why = host(self).store.queue.mark(self.selected) if self.selected else "nothing waits"
        if why:
            host(self).refuse(why)
        self._show()

    def filter(self, needle: str) -> None:
        self.needle = needle
        self.keeper.disarm()
        host(self).store.mark(Pane.APPROVALS)

    def action_group(self) -> None:
        """By agent and program, or by age again; the same card stays selected."""
        queue = host(self).store.queue
        queue.group(not queue.grouped)
        self._show()

    def action_filter(self) -> None:
        self.post_message(self.Wanted("filter", self.selected))

    def action_allow(self) -> None:
        self._ask("allow")

    def action_deny(self) -> None:
        self._ask("deny")

    def action_reason(self) -> None:
        self._ask("reason")

    def action_always(self) -> None:
        card = self.card()
        if card is None:
            host(self).refuse("nothing waits")
            return
        item = card.head
        if item.always.patterns or item.offers:
            self.post_message(self.Wanted("always", card.id))
        else:
            why = item.always.refusal or item.no_grants
            reason = f"no always: {why}" if why else ""
            host(self).refuse(reason or "always is not offered for this request")

    def action_later(self) -> None:
        if self.details:
            self.action_details()
        else:
            self.post_message(self.Wanted("later", self.selected))

    def _ask(self, verb: str) -> None:
        """Only a key that found this very card armed gets through."""
        if self.section != "queue":
            host(self).refuse("no card is shown: tab to the queue")
            return
        if not self.selected:
            host(self).refuse("nothing waits for you")
            return
        if verb == "allow" and host(self).store.queue.marked:
            self.post_message(self.Wanted("batch", self.selected))
            return
        if verb == "allow" and not self.seen:
            host(self).refuse(UNSEEN)
            return
        card = self.card()
        if card is not None and self.keeper.take(card.subject):
            self.post_message(self.Wanted(verb, card.id))
        else:
            host(self).refuse(self.keeper.why_not())
