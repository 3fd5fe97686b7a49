"""The conversation pane: blocks painted once into strips, the open one as it grows. Pulls
from the store within a time budget; what does not fit is left for the next tick."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from time import perf_counter

from msgspec import Struct
from msgspec.structs import replace
from rich.style import Style
from textual.events import Blur, Focus, MouseScrollDown, MouseScrollUp, Resize
from textual.message import Message
from textual.scrollbar import ScrollDown, ScrollTo, ScrollUp
from textual.strip import Strip

from claw_tui.keymap import bindings
from claw_tui.store.blocks import Block, BlockKind, Growing, ToolStatus
from claw_tui.store.conversation import Conversation
from claw_tui.widgets.blockpaint import Look, Markdowner, paint
from claw_tui.widgets.cells import spans
from claw_tui.widgets.flow import Flow
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import LineView

BUDGET_SECONDS = 0.008
"""Time one tick may spend on Markdown (design: painting budget)."""


class Painted(Struct):
    key: tuple[object, ...]
    lines: list[Strip]
    final: bool
    """Whether nothing better is to come: Markdown is done, or the block needs none."""


class OpenText(Struct):
    """The growing rows of an open block and how much of its text they hold."""

    flow: Flow
    taken: int = 0

    def rows(self, body: Growing) -> list[str]:
        fresh = body.total - self.taken
        if fresh:
            tail: list[str] = []
            for chunk in reversed(body.chunks):
                if fresh <= 0:
                    break
                tail.append(chunk if len(chunk) <= fresh else chunk[-fresh:])
                fresh -= len(chunk)
            for chunk in reversed(tail):
                self.flow.feed(chunk)
            self.taken = body.total
        return self.flow.rows


class ConversationView(LineView):
    BINDINGS = bindings("list", "talk")

    @dataclass
    class Below(Message):
        """So many lines are below the visible ones; 0 while the end is followed."""

        lines: int

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name)
        self.shown: tuple[str, int] = ("", -1)
        self.cursor: int | None = None
        self.following = True
        """Whether newer lines are scrolled to. Only the operator's own scrolling changes it:
        a resize, another pane and another screen leave it as it was."""
        self.below = 0
        self.expanded: dict[str, bool] = {}
        self.pages: dict[str, int] = {}
        self._painted: dict[str, Painted] = {}
        self._growing: dict[str, OpenText] = {}
        self._offsets: list[int] = [0]
        self._lines: list[list[Strip]] = []
        self._markdown: Markdowner | None = None

    # ── pulling ─────────────────────────────────────────────────────────────────────────────

    @property
    def talk(self) -> Conversation:
        return host(self).store.conversation()

    def now_ms(self) -> int:
        """The time that countdowns are told by."""
        return host(self).clock.now_ms()

    def pull(self) -> bool:
        """Bring the lines up to date with the store; True when work is left for later."""
        if not self.size.width:
            return False
        talk = self.talk
        if self.shown != (talk.key, talk.generation):
            self.following = self.following or self.shown[0] != talk.key
            self._forget(keep_choices=self.shown[0] == talk.key)
            self.shown = (talk.key, talk.generation)
        anchor = self._anchor()
        left = self._paint_all(talk)
        self._layout(talk)
        if self.following:
            self._to(self.max_scroll_y)
        elif anchor is not None and anchor[0] < len(self._offsets):
            y = self._offsets[anchor[0]] + anchor[1]
            if y != self.scroll_offset.y:
                self._to(y)
        self._say_below()
        self.refresh()
        return left

    def follow(self) -> None:
        """To the end, and stay there."""
        self.following = True
        self._to(self.max_scroll_y)
        self._say_below()

    def forget_paint(self) -> None:
        """The theme or the width changed: everything is painted again."""
        self._painted.clear()
        self._growing.clear()
        self._markdown = None

    def _forget(self, *, keep_choices: bool) -> None:
        self._painted.clear()
        self._growing.clear()
        self.cursor = None
        if not keep_choices:
            self.expanded.clear()
            self.pages.clear()

    def _anchor(self) -> tuple[int, int] | None:
        if not self._lines:
            return None
        top = self.scroll_offset.y
        index = max(0, bisect_right(self._offsets, top) - 1)
        return index, top - self._offsets[index]

    def _paint_all(self, talk: Conversation) -> bool:
        deadline = perf_counter() + BUDGET_SECONDS
        width = self.line_width - 1
        now = self.now_ms()
        left = False
        lines: list[list[Strip]] = []
        first = talk.blocks[0] if talk.blocks else None
        for block in reversed(talk.blocks):
            look = Look(width, self.ink, now, gap=block is not first)
            painted = self._paint_block(block, look, perf_counter() < deadline)
            left = left or not painted.final
            lines.append(painted.lines)
        lines.reverse()
        self._lines = lines
        return left

    def _paint_block(self, block: Block, look: Look, in_budget: bool) -> Painted:
        width, now = look.width, look.now_ms
        wait = now // 1000 if block.tool and block.tool.status is ToolStatus.WAITING else 0
        key = (block.version, width, self.expanded.get(block.id), self.pages.get(block.id, 0), wait)
        cached = self._painted.get(block.id)
        if cached is not None and cached.key == key and (cached.final or not in_budget):
            return cached
        look = replace(look, expanded=self.expanded.get(block.id), page=self.pages.get(block.id, 0))
        final = True
        if block.kind is BlockKind.TEXT:
            if block.open:
                look = replace(look, rows=self._rows(block, width))
            elif in_budget:
                self._growing.pop(block.id, None)
                look = replace(look, markdown=self._painter())
            else:
                final = False
        painted = Painted(key, paint(block, look), final)
        self._painted[block.id] = painted
        return painted

    def _rows(self, block: Block, width: int) -> list[str]:
        inner = max(2, width - 14)
        growing = self._growing.get(block.id)
        if growing is None or growing.flow.width != inner:
            growing = self._growing[block.id] = OpenText(Flow(inner))
        return growing.rows(block.body)

    def _painter(self) -> Markdowner:
        if self._markdown is None:
            from claw_tui.widgets.markdown import MarkdownPainter  # 60 ms: only when needed

            self._markdown = MarkdownPainter(self.ink)
        return self._markdown

    def _layout(self, talk: Conversation) -> None:
        self._lines.append(self._tail(talk))
        offsets, total = [], 0
        for lines in self._lines:
            offsets.append(total)
            total += len(lines)
        self._offsets = offsets
        self.set_line_count(total)

    def _tail(self, talk: Conversation) -> list[Strip]:
        """What is no block: a word of welcome in an empty session."""
        ink = self.ink
        if talk.blocks or talk.queued:
            return []
        engine = host(self).store.engine
        words = [("", "text"), ("Nothing was said here yet.", "text"), ("", "text")]
        if engine.recorded:
            words[1:] = [("Nothing that was said is in this file.", "text")]
        elif not engine.is_ai:
            words += [
                ("The rehearsal model answers: it is not an AI and needs no key. Try", "muted"),
                ("", "text"),
                ("  run: du -sh *", "key"),
                ("  think: is this a test?", "key"),
                ("  tools: uptime || df -h", "key"),
            ]
        else:
            words.append(("Type a message and press enter.", "muted"))
        return [spans([("  ", Style.null()), (text, ink(pen))]) for text, pen in words]

    # ── painting ────────────────────────────────────────────────────────────────────────────

    def draw(self, y: int) -> Strip:
        if not self._lines or y >= self._offsets[-1] + len(self._lines[-1]):
            return Strip.blank(0)
        index = max(0, bisect_right(self._offsets, y) - 1)
        while index and y - self._offsets[index] >= len(self._lines[index]):
            index -= 1
        strip = self._lines[index][y - self._offsets[index]]
        chosen = self.has_focus and index == self.cursor
        bar = spans([("▌" if chosen else " ", self.ink("key"))])
        return Strip.join([bar, strip])

    # ── moving ──────────────────────────────────────────────────────────────────────────────

    def on_focus(self, event: Focus) -> None:
        if self.cursor is None and self.talk.blocks:
            self.cursor = len(self.talk.blocks) - 1
        self.refresh()

    def on_blur(self, event: Blur) -> None:
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._after_resize)

    def _after_resize(self) -> None:
        if self.pull():
            host(self).store.wake()

    def _to(self, y: int) -> None:
        self.scroll_to(y=y, animate=False, force=True, immediate=True)

    def _by_hand(self, y: float) -> None:
        """The operator scrolls to line `y`: the end is followed from now on if it is there."""
        self._to(round(y))
        self._note_place()

    def _note_place(self) -> None:
        self.following = self.scroll_offset.y >= self.max_scroll_y
        self._say_below()

    def _say_below(self) -> None:
        below = 0 if self.following else self.max_scroll_y - self.scroll_offset.y
        if below != self.below:
            self.below = below
            self.post_message(self.Below(below))

    # Textual's own handlers scroll later, when nobody can tell whose scrolling it was.

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        event.stop().prevent_default()
        self._by_hand(self.scroll_offset.y - self.app.scroll_sensitivity_y)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop().prevent_default()
        self._by_hand(self.scroll_offset.y + self.app.scroll_sensitivity_y)

    def on_scroll_to(self, message: ScrollTo) -> None:
        message.stop().prevent_default()
        if message.y is not None:
            self._by_hand(message.y)

    def on_scroll_up(self, message: ScrollUp) -> None:
        message.stop().prevent_default()
        self._by_hand(self.scroll_offset.y - self.size.height)

    def on_scroll_down(self, message: ScrollDown) -> None:
        message.stop().prevent_default()
        self._by_hand(self.scroll_offset.y + self.size.height)

    def _show_cursor(self) -> None:
        if self.cursor is None or self.cursor >= len(self._offsets):
            return
        top = self._offsets[self.cursor]
        if self.cursor == len(self.talk.blocks) - 1:
            self.follow()
        else:
            self.scroll_into(top, top + len(self._lines[self.cursor]), at_once=True)
            self._note_place()
        self.refresh()

    def action_move(self, step: int) -> None:
        last = len(self.talk.blocks) - 1
        if last < 0:
            return
        at = last if self.cursor is None else self.cursor
        self.cursor = max(0, min(last, at + step))
        self._show_cursor()

    def action_edge(self, where: int) -> None:
        if self.talk.blocks:
            self.cursor = 0 if where < 0 else len(self.talk.blocks) - 1
            self._show_cursor()

    def action_page(self, step: int) -> None:
        y = self.scroll_offset.y + step * max(1, self.size.height - 2)
        self._by_hand(y)
        index = max(0, bisect_right(self._offsets, max(0, min(y, self.max_scroll_y))) - 1)
        self.cursor = min(index, max(0, len(self.talk.blocks) - 1))
        self.refresh()

    def chosen(self) -> Block | None:
        blocks = self.talk.blocks
        if self.cursor is None or not 0 <= self.cursor < len(blocks):
            return None
        return blocks[self.cursor]

    def action_open(self) -> None:
        block = self.chosen()
        if block is None or block.kind not in (BlockKind.REASONING, BlockKind.TOOL):
            host(self).refuse("only reasoning and tool calls open")
            return
        default = False if block.kind is BlockKind.REASONING else None
        now = self.expanded.get(block.id, default)
        self.expanded[block.id] = not now if now is not None else True
        self._repull()

    def action_leaf(self, step: int) -> None:
        block = self.chosen()
        if block is None or not self.expanded.get(block.id):
            host(self).refuse("open a tool output first: enter")
            return
        self.pages[block.id] = max(0, self.pages.get(block.id, 0) + step)
        self._repull()

    def _repull(self) -> None:
        cursor = self.cursor
        if self.pull():
            host(self).store.wake()
        self.cursor = cursor
        self._show_cursor()

    def action_filter(self) -> None:
        host(self).refuse("only the session list has a filter yet")
