"""A past run as the conversation shows a live one, with its calls; and its replay along a time
bar. Opens at its end: everything that happened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.strip import Strip
from textual.timer import Timer

from claw_engine.errors import ClawError
from claw_tui.keymap import bindings
from claw_tui.screens.page import Page, run_alone
from claw_tui.screens.promptcalls import SLICE_SECONDS, Ask
from claw_tui.store.blocks import Block
from claw_tui.store.conversation import Conversation
from claw_tui.store.replay import PastRun, Replay, replay_from
from claw_tui.store.sanitize import line
from claw_tui.store.store import Pane
from claw_tui.store.words import day, short_run
from claw_tui.widgets.bars import Banner, Bar, HintBar, StatusBar, ToastBar
from claw_tui.widgets.callpaint import time_bar
from claw_tui.widgets.conversation import ConversationView
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import set_title

TICK_SECONDS = 0.1
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


class PastView(ConversationView, inherit_bindings=False):
    """The conversation's pane on a past run."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list")

    def __init__(self, name: str, replay: Replay) -> None:
        super().__init__(name)
        self.replay = replay

    @property
    def talk(self) -> Conversation:
        return self.replay.talk

    def now_ms(self) -> int:
        return self.replay.wall_ms

    def action_filter(self) -> None:
        host(self).refuse("p opens the prompt of a call; / searches there")


class TimeBar(Bar):
    """Where the replay is."""

    page: ReplayPage | None = None

    def draw(self, width: int) -> Strip:
        page = self.page
        if page is None or not page.replay.events:
            return Strip.blank(width)
        replay = page.replay
        return time_bar(
            replay.at_ms, replay.whole_ms, (replay.done, len(replay.events)),
            playing=page.playing, speed=page.speed, width=width, ink=host(self).ink,
            real_ms=replay.run.duration_ms,
        )  # fmt: skip


class ReplayPage(Page):
    CSS_PATH = "replay.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings("past")
    view = "replay"

    def __init__(
        self, ask: Ask, run_id: str, show_prompt: Callable[[str], Awaitable[None]] | None
    ) -> None:
        super().__init__()
        self._ask, self._run_id, self._show_prompt = ask, run_id, show_prompt
        self.replay = Replay(PastRun(run_id))
        self.speed = 1.0
        self._timer: Timer | None = None
        self._goal: int | None = None
        """The step that is being gone to."""

    @property
    def pane_name(self) -> str:
        return "replay"

    @property
    def playing(self) -> bool:
        return self._timer is not None

    @property
    def past(self) -> PastView:
        return self.query_one(PastView)

    def compose(self) -> ComposeResult:
        yield StatusBar()
        yield Banner()
        yield PastView("past", self.replay)
        bar = TimeBar()
        bar.page = self
        yield bar
        said = ToastBar()
        said.said_only = True
        yield said
        yield HintBar()

    def on_mount(self) -> None:
        self.past.focus()
        run_alone(self, "read", self._read)

    async def _read(self) -> None:
        try:
            self.replay = replay_from(await self._ask("trace.run", {"runId": self._run_id}))
        except ClawError as error:
            host(self).store.notice("error", error.title, hint=error.hint)
            return
        self.past.replay = self.replay
        await self._to(len(self.replay.events))

    async def _to(self, step: int) -> None:
        """To a step, in slices: a long run has thousands of events."""
        stop = perf_counter() + SLICE_SECONDS
        for _ in self.replay.steps_to(step):
            if perf_counter() > stop:
                await asyncio.sleep(0)
                stop = perf_counter() + SLICE_SECONDS
        self._goal = None
        self.show()

    # ── showing ─────────────────────────────────────────────────────────────────────────────

    def pull(self, dirty: set[Pane]) -> bool:
        super().pull(dirty)
        self.query_one(ToastBar).refresh()
        return self.show()

    def show(self) -> bool:
        run = self.replay.run
        model = f" · {line(run.model)}" if run.model else ""
        when = f"{day(run.started_ms)}{model}"
        set_title(self.past, f"run {short_run(run.id)} · {run.status} · {when}", self._below())
        self.query_one(TimeBar).refresh()
        left = self.past.pull()
        if left:
            host(self).store.wake()
        return left

    def _below(self) -> str:
        return f"↓ {self.past.below} more" if self.past.below else ""

    def on_conversation_view_below(self, message: ConversationView.Below) -> None:
        message.stop()
        self.past.border_subtitle = self._below() or None

    def repaint(self) -> None:
        self.past.forget_paint()

    # ── keys ────────────────────────────────────────────────────────────────────────────────

    def action_play(self) -> None:
        if self.playing:
            self._stop()
        elif not self.replay.events:
            host(self).refuse("this run has no recorded steps")
        else:
            if self.replay.at_end:
                self.replay.to(0)
                self.past.follow()
            self._timer = self.set_interval(TICK_SECONDS, self._tick)
        self.show()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _tick(self) -> None:
        self.replay.advance(round(TICK_SECONDS * 1000 * self.speed))
        if self.replay.at_end:
            self._stop()
        self.show()

    def action_step(self, step: int) -> None:
        self._stop()
        to = (self.replay.done if self._goal is None else self._goal) + step
        if not 0 <= to <= len(self.replay.events):
            host(self).refuse("this is its beginning" if step < 0 else "this is its end")
            return
        self._goal = to
        run_alone(self, "step", partial(self._to, to))

    def action_speed(self, step: int) -> None:
        place = SPEEDS.index(self.speed) + step
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, place))]
        self.show()

    def action_leaf(self, step: int) -> None:
        self.past.action_leaf(step)

    async def action_prompt(self) -> None:
        call = self._call_at(self.past.chosen())
        if self._show_prompt is None or call is None:
            host(self).refuse("select a call or something of it: j k")
        else:
            self._stop()
            await self._show_prompt(call)

    def _call_at(self, chosen: Block | None) -> str | None:
        """The call that is selected, or the last one before what is."""
        found = None
        for block in self.replay.talk.blocks:
            if block.call is not None:
                found = block.call.id
            if block is chosen:
                return found
        return found

    async def action_back(self) -> None:
        await self.app.pop_screen()
