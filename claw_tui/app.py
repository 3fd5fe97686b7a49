"""The application: one store, one link to the engine, one painter's timer. Keys and views are
in `actions.py` and `screens/`; this file only ties frames, keys and time together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, ClassVar

from textual._context import active_message_pump
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.events import Event, Key, Paste, Resize
from textual.filter import Monochrome, NoColor
from textual.timer import Timer

from claw_engine.client.base import Client
from claw_tui.armed import Gatekeeper
from claw_tui.keymap import Facts, bindings, view_bindings
from claw_tui.link import LinkTask
from claw_tui.screens.main import MainScreen
from claw_tui.screens.page import Page
from claw_tui.starting import Starting
from claw_tui.store.notices import Notice
from claw_tui.store.store import Pane, Store
from claw_tui.widgets.host import UiClock
from claw_tui.widgets.ink import Ink

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.command import Provider
    from textual.screen import Screen

    from claw_tui.editing import Editor
    from claw_tui.screens.ask import Prompt

PULL_SECONDS = 0.05
"""The store is pulled at most this often (20 Hz; design: painting budget)."""
TOAST_SECONDS = 5.0
"""How long a word in passing stays on the toast line."""
SMALLEST = (60, 16)


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def _palette_provider() -> type[Provider]:
    from claw_tui.palette import ClawCommands  # lazily: only when the palette opens

    return ClawCommands


class ClawApp(Starting):
    """The console of one engine. `run` returns "headless", "stop" or None."""

    TITLE = "claw-tui"
    CSS_PATH = "screens/main.tcss"  # the first screen brings no style sheet of its own
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    COMMANDS = {_palette_provider}  # noqa: RUF012 - Textual's
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("any", "nav"), *view_bindings()]

    def __init__(
        self,
        client: Client,
        *,
        theme: str = "",
        clock: UiClock | None = None,
        mouse_motion: bool = False,
        ascii_only: bool = False,
        on_settled: Callable[[], None] = lambda: None,
        local: bool = True,
        replay: str = "",
    ) -> None:
        self.clock = clock or SystemClock()
        self.store = Store()
        self.local = local
        """Whether the engine's files are on this computer."""
        self.replay = replay
        """The recorded run that the console was opened for."""
        self.away = False
        """Whether an editor has the terminal."""
        self.editor: Editor | None = None
        """What edits a file instead of $EDITOR in this terminal."""
        self.refusal = ""
        self.on_settled = on_settled
        self.ink = Ink({}, dark=True, ansi=False)
        self._pull_timer: asyncio.TimerHandle | None = None
        self._last_pull = float("-inf")
        self._ticker: Timer | None = None
        self._toast: Notice | None = None
        self._toast_timer: Timer | None = None
        self._armed_timer: Timer | None = None
        self._jobs: set[asyncio.Task[None]] = set()
        super().__init__(mouse_motion=mouse_motion)
        if ascii_only:
            from claw_tui.widgets.plainglyphs import PlainGlyphs  # few terminals lack UTF-8

            self._filters.append(PlainGlyphs())
        self.keeper = Gatekeeper(self.gate, self.clock, self._arming_changed)
        self.store.queue.armed = self.keeper.armed_for
        self.link = LinkTask(client, self.store, on_reset=self._link_reset)
        self.main = MainScreen()
        self._too_small: Screen[None] | None = None
        self.begin_with(theme)

    # ── life ────────────────────────────────────────────────────────────────────────────────

    def get_default_screen(self) -> Screen[None]:
        self.main.fit(self.size.width)
        return self.main

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        return ()

    def on_mount(self) -> None:
        # Textual set an eager factory on Python 3.12+; the engine shares this loop and wants none.
        asyncio.get_running_loop().set_task_factory(None)
        self.animation_level = "none"
        self.theme_changed_signal.subscribe(self, lambda theme: self._theme_changed())
        self._theme_changed()
        self._ticker = self.set_interval(1.0, self._tick, pause=True)
        self.store.wake = self._wake
        self.store.mark(*Pane)
        self.go(self.link.run)
        if self.replay:
            self.go(self.open_replay)

    async def on_unmount(self) -> None:
        self.store.wake = lambda: None
        if self._pull_timer is not None:
            self._pull_timer.cancel()
        await self.link.close()
        for job in list(self._jobs):
            job.cancel()

    def go(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        task = asyncio.create_task(_run(work))
        self._jobs.add(task)
        task.add_done_callback(self._job_done)

    def _job_done(self, task: asyncio.Task[None]) -> None:
        self._jobs.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, Exception):
                self._handle_exception(error)
            else:
                raise error

    def _handle_exception(self, error: Exception) -> None:
        """A page that is taken apart before it stood has no widgets to fill: that is no fault.
        Keys that come in one go close what they have just opened, or leave the console."""
        if isinstance(error, NoMatches):
            node = active_message_pump.get(None)
            if self._exit or (isinstance(node, DOMNode) and not node.is_attached):
                return
        super()._handle_exception(error)

    # ── painting ────────────────────────────────────────────────────────────────────────────

    def _wake(self) -> None:
        """Something is dirty: look at it at the next tick, at most 20 times a second.

        The loop's own timer: Textual's drops a single shot whose moment has passed before its
        task gets to look, and with that one lost the screen would stand still for ever.
        """
        if self._pull_timer is None and self.is_running:
            wait = max(0.0, self._last_pull + PULL_SECONDS - time.monotonic())
            loop = asyncio.get_running_loop()
            self._pull_timer = loop.call_later(wait, self.call_next, self._pull_store)

    def _pull_store(self) -> None:
        self._pull_timer = None
        self._last_pull = time.monotonic()
        if not self.is_running:  # leaving: the pages are being taken apart
            return
        if self.store.bells:
            self.store.bells = 0
            self.bell()
            self.call_later(self.expect_queue)
        self._time_toast()
        dirty = self.store.take_dirty()
        for screen in self.screen_stack:
            if isinstance(screen, Page) and screen.is_mounted and screen.pull(dirty):
                self._wake()
        if self._ticker is not None:
            if self.store.busy():
                self._ticker.resume()
            else:
                self._ticker.pause()

    def _time_toast(self) -> None:
        newest = self.store.notices[-1] if self.store.notices else None
        if newest is self._toast:
            return
        self._toast = newest
        if self._toast_timer is not None:
            self._toast_timer.stop()
            self._toast_timer = None
        if newest is not None and newest.passing:
            self._toast_timer = self.set_timer(TOAST_SECONDS, self.store.dismiss)

    def _tick(self) -> None:
        """Once a second, only while something on the screen counts seconds."""
        if self.store.expire(self.clock.now_ms()):
            self.keeper.disarm()
        if self.store.busy():
            self.store.mark(Pane.STATUS, Pane.APPROVALS, Pane.CONVERSATION)

    def _theme_changed(self) -> None:
        theme = self.current_theme
        if theme.ansi:  # NO_COLOR under an ANSI theme: no colour codes at all, not grey ones
            self._filters[:] = [
                NoColor() if isinstance(old, Monochrome) else old for old in self._filters
            ]
        self.ink = Ink(
            {**self.theme_variables, **theme.variables}, dark=theme.dark, ansi=theme.ansi
        )
        for screen in self.screen_stack:
            if isinstance(screen, Page) and screen.is_mounted:
                screen.repaint()
        self.store.mark(*Pane)

    # ── keys and the arming rule ────────────────────────────────────────────────────────────

    async def on_event(self, event: Event) -> None:
        if event.is_forwarded:  # a key bubbles back here after a widget has seen it
            take = getattr(self.screen, "take_early", None)
            if take is not None and isinstance(event, Key) and take(event):
                return
        elif self._exit and isinstance(event, Key | Paste):
            return  # leaving: keys that were typed before it are not worked through first
        elif isinstance(event, Key):
            self.keeper.key()
            if self.refusal:
                self.refuse("")
            hold = getattr(self.screen, "hold", None)
            if hold is not None and hold(event):
                return
        elif isinstance(event, Paste):
            self.keeper.paste()
        await super().on_event(event)

    def on_prompt_caught_up(self, message: Prompt.CaughtUp) -> None:
        message.prompt.catch_up()

    def refuse(self, why: str) -> None:
        """Say why a key did nothing; stays until the next key."""
        self.refusal = why
        self.store.mark(Pane.STATUS)

    def facts(self) -> Facts:
        page, store = self.page, self.store
        draft = page is self.main and self.main.is_mounted and bool(self.main.composer.text)
        return Facts(
            page.mode,
            store.conversation().active_run() is not None,
            len(store.queue.pending),
            store.lanes.paused,
            page.pane_name,
            draft,
            store.engine.recorded,
        )

    def _arming_changed(self, ready_in: float) -> None:
        """Show whether the keys are live: now, and again when the quiet time is over."""
        if self._armed_timer is not None:
            self._armed_timer.stop()
            self._armed_timer = None
        if 0 < ready_in < 60:
            self._armed_timer = self.set_timer(ready_in + 0.01, self._show_armed)

    def _show_armed(self) -> None:
        if not self._screen_stack:  # the timer outlived the last screen: we are leaving
            return
        from claw_tui.screens.ask import ArmedPage  # lazily: not before there is a card
        from claw_tui.widgets.card import CardKeys

        if isinstance(self.screen, ArmedPage):
            self.screen.show()
        for keys in self.screen.query(CardKeys):
            keys.refresh()

    def _link_reset(self) -> None:
        self.keeper.disarm()
        self.store.mark(*Pane)

    def on_resize(self, event: Resize) -> None:
        self.keeper.disarm()
        small = event.size.width < SMALLEST[0] or event.size.height < SMALLEST[1]
        covered = self._too_small is not None and self.screen is self._too_small
        if small and not covered:
            from claw_tui.screens.ask import TooSmall  # most terminals are large enough

            self._too_small = TooSmall()
            self.push_screen(self._too_small)
        elif not small and covered:
            self._too_small = None
            self.pop_screen()
        self.store.mark(*Pane)


async def _run(work: Callable[[], Coroutine[object, object, None]]) -> None:
    await work()
