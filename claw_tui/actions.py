"""What the operator's commands do: calls to the engine and moves between views. The
application mixes this in; keys, palette and command line all end here."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from claw_tui import themes
from claw_tui.recovering import Recovering
from claw_tui.screens.page import Page
from claw_tui.store import cmdline
from claw_tui.store.blocks import BlockKind, summarize_args
from claw_tui.store.modes import SURE
from claw_tui.store.store import Link, Pane
from claw_tui.store.wire import flag, texts
from claw_tui.widgets.composer import Composer
from claw_tui.widgets.sessions import SessionList

if TYPE_CHECKING:
    from textual.strip import Strip

    from claw_tui.screens.approvals import ApprovalsScreen
    from claw_tui.screens.main import MainScreen

TWICE_SECONDS = 2.0
"""Within this time a second press of X or ctrl+c counts as the second."""


class Actions(Recovering):
    main: MainScreen
    _last_x = float("-inf")
    _last_ctrl_c = float("-inf")
    _mouse_on = True
    _queue: ApprovalsScreen | None = None

    # ── views ───────────────────────────────────────────────────────────────────────────────

    @property
    def page(self) -> Page:
        """The full-size view on top, whatever small page lies over it."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, Page):
                return screen
        return self.main

    async def action_view(self, view: str) -> None:
        """Show one of the nine views, or one of the pages that the command line opens; disarms
        whatever was armed."""
        view = str(view)
        if self.page.view == view:
            return
        self.keeper.disarm()
        while isinstance(self.screen, Page) and self.screen is not self.main:
            await self.pop_screen()
        if view == "1":
            self.main.focus_pane()
        elif view == "8":
            await self._push_approvals()
        elif (page := self.page_named(view)) is not None:
            await self.push_screen(page)
        else:
            from claw_tui.screens.ask import GreyPage

            await self.push_screen(GreyPage(view))
        self.store.wake()

    async def _push_approvals(self) -> None:
        queue = await self.ready_queue()
        queue.afresh()
        await self.push_screen(queue)

    async def expect_queue(self) -> None:
        """Requests have come: be ready to show them."""
        queue = await self.ready_queue()
        queue.lay_out()

    async def ready_queue(self) -> ApprovalsScreen:
        """View 8, its widgets made once: making them costs more than showing them. Done when
        nothing else is to do after the start, or when the first request arrives, so that the key
        that opens it only has to show it."""
        if self._queue is None:
            from claw_tui.screens.approvals import ApprovalsScreen  # lazily: start-up cost

            self._queue = ApprovalsScreen()
            self.install_screen(self._queue, "approvals")
            self._load_screen_css(self._queue)
            _, mounted = self._get_screen(self._queue)
            await mounted
        return self._queue

    async def action_approvals(self) -> None:
        if self.page is self.screen or self.screen is self.main:
            await self.action_view("8")

    async def action_type(self) -> None:
        if self.store.engine.recorded:
            self.refuse("a recorded run can only be read")
            return
        await self.action_view("1")
        self.main.type()

    def action_mode(self) -> None:
        """The permission mode: choose, and confirm; `full` twice."""
        from claw_tui.screens.ask import ArmedPage
        from claw_tui.screens.choose import ChoicePage
        from claw_tui.widgets.modepaint import mode_choices, sure_lines

        if self.store.engine.methods and "permission.set" not in self.store.engine.methods:
            self.refuse("this gateway has no permission modes")
            return
        now = self.store.engine.permission
        choices, index = mode_choices(now)

        def done(yes: bool | None) -> None:
            name = page.chosen
            if not yes:
                return
            if name == now and name != "full":
                self.refuse(f"the mode is {name} already")
            elif name == "full":
                self.push_screen(ArmedPage("mode:sure", SURE[0], sure), sure_done)
            else:
                self.go(lambda: self.set_mode(name))

        def sure(width: int) -> list[Strip]:
            return sure_lines(width, self.ink)

        def sure_done(yes: bool | None) -> None:
            if yes:
                self.go(lambda: self.set_mode("full"))

        page = ChoicePage("mode", "Permission mode", choices, index=index)
        self.push_screen(page, done)

    async def set_mode(self, name: str) -> None:
        answer = await self.link.call("permission.set", {"mode": name})
        if answer is not None:
            self.store.set_permission(answer)

    def action_keys(self) -> None:
        from claw_tui.screens.help import HelpPage

        self.push_screen(HelpPage())

    def action_palette(self) -> None:
        self.action_command_palette()

    def action_command_palette(self) -> None:
        from claw_tui.palette import ClawPalette  # lazily: only when the palette opens

        if not any(isinstance(screen, ClawPalette) for screen in self.screen_stack):
            self.push_screen(ClawPalette(id="--command-palette"))

    def action_redraw(self) -> None:
        """Forget what the terminal is thought to show and paint all of it."""
        self.screen.refresh(layout=True)
        self._display(self.screen, self.screen._compositor.render_update(full=True))

    # ── stopping ────────────────────────────────────────────────────────────────────────────

    async def action_ladder(self) -> None:
        """ctrl+c: a selection is copied; a run of this session is stopped; else twice quits."""
        focused = self.focused
        chosen = focused.selected_text if isinstance(focused, Composer) else ""
        chosen = chosen or self.screen.get_selected_text() or ""
        now = self.clock.monotonic()
        if chosen:
            self.copy_to_clipboard(chosen)
            self.store.notice("info", "copied")
        elif self.store.conversation().unfinished():
            await self.action_stop()
        elif now - self._last_ctrl_c <= TWICE_SECONDS:
            self._last_ctrl_c = float("-inf")
            self.action_ask_quit()
        else:
            self._last_ctrl_c = now
            self.refuse("nothing runs here; ctrl+c again within 2 s to leave")

    async def action_stop(self) -> None:
        key = self.store.selected
        talk = self.store.conversation()
        if talk.active_run() is None and not talk.queued:
            self.refuse("no run is going on in this session")
            return
        answer = await self.link.call("chat.abort", {"sessionKey": key})
        if answer is not None:
            stopped = flag(answer, "aborted", True)
            self.store.notice("info", "stopping the run" if stopped else "it had already ended")

    async def action_stop_all(self) -> None:
        now = self.clock.monotonic()
        if now - self._last_x > TWICE_SECONDS:
            self._last_x = now
            self.refuse("X again within 2 s stops every run and pauses")
            return
        self._last_x = float("-inf")
        answer = await self.link.call("runs.stopAll", {})
        if answer is not None:
            self.store.notice(
                "warn", f"stopped {len(texts(answer, 'runIds'))} runs; PAUSED", hint="P resumes"
            )

    async def action_pause(self) -> None:
        paused = self.store.lanes.paused
        if await self.link.call("lanes.resume" if paused else "lanes.pause", {}) is not None:
            self.store.lanes.apply({"paused": not paused})
            self.store.notice("info", "resumed" if paused else "paused: no new run starts")
            self.store.mark(*Pane)

    def action_ask_quit(self) -> None:
        from claw_tui.screens.ask import QuitPage

        if isinstance(self.screen, QuitPage):
            return
        alive = []
        for number, words in (
            (self.store.lanes.active, "running"),
            (self.store.lanes.queued, "queued"),
            (len(self.store.queue.pending), "waiting for you"),
        ):
            if number:
                alive.append(f"{number} {words}")
        self.push_screen(QuitPage(self.store.engine.mode, alive), self._quit)

    def _quit(self, what: str | None) -> None:
        if what:
            self.exit(what)

    # ── sessions and messages ───────────────────────────────────────────────────────────────

    async def open_session(self, key: str, *, typing: bool = True) -> None:
        self.store.select(key)
        if typing:
            await self.action_type()
        if self.store.link is Link.CONNECTED and not self.store.conversation(key).loaded:
            await self.link.load_history(key)

    async def on_session_list_opened(self, message: SessionList.Opened) -> None:
        await self.open_session(message.key)

    def on_composer_submitted(self, message: Composer.Submitted) -> None:
        self.main.conversation.follow()
        self.go(lambda: self.send(message.text))

    async def send(self, text: str) -> None:
        """Hand a message to the engine; what could not be sent goes back into the composer."""
        key = self.store.selected
        answer = await self.link.call(
            "chat.send",
            {
                "sessionKey": key,
                "message": text,
                "idempotencyKey": str(uuid4()),
            },
        )
        if answer is not None and "aborted" in answer:  # the words meant "stop"
            self.store.notice("info", _stopped(len(texts(answer, "runIds"))))
        if answer is None and not self.main.composer.text:
            self.main.composer.text = text
            self.main.composer.move_cursor(self.main.composer.document.end)

    # ── prompts ─────────────────────────────────────────────────────────────────────────────

    def action_filter(self) -> None:
        """The session list's filter, from the list itself."""
        sessions = self.main.query_one(SessionList)

        def take(needle: str) -> None:
            sessions.needle = needle
            sessions.pull()

        self.prompt_filter(sessions.needle, take)

    def action_command(self) -> None:
        from claw_tui.screens.ask import Prompt

        def done(text: str | None) -> None:
            if text is not None:
                self.go(lambda: self.command(text))

        names = list(self.store.sessions.rows)
        self.push_screen(
            Prompt(
                "Command",
                hint="tab completes · enter · esc back",
                complete=lambda raw: cmdline.complete(raw, names, self.theme_names()),
            ),
            done,
        )

    async def command(self, raw: str) -> None:
        """Run one command line."""
        parsed = cmdline.parse(raw)
        if parsed.verb is None:
            self.refuse(parsed.problem)
            return
        match parsed.verb.name:
            case "pause" | "resume":
                if self.store.lanes.paused is (parsed.verb.name == "pause"):
                    self.refuse("paused already" if self.store.lanes.paused else "not paused")
                else:
                    await self.action_pause()
            case "stopall":
                self._last_x = self.clock.monotonic()
                await self.action_stop_all()
            case "session":
                await self.open_session(self._session_key(parsed.argument))
            case "new":
                await self.open_session(f"agent:main:{parsed.argument.replace(' ', '-')}")
            case "theme":
                self._set_theme(parsed.argument)
            case "quit":
                self.action_ask_quit()
            case "help":
                self.action_keys()
            case name:
                await self.run_action(name)

    def _session_key(self, name: str) -> str:
        rows = self.store.sessions.rows
        if name in rows:
            return name
        matches = [key for key in rows if key.endswith(f":{name}")]
        return matches[0] if matches else name

    def _set_theme(self, name: str) -> None:
        """Read the theme files again; with a name, change to that theme."""
        problems = self.load_themes()
        if not name:
            name = self.theme
            if not problems:
                self.store.notice("info", f"theme files read again; {name} is on")
        if name in self.available_themes:
            if self.theme == name:  # its file may have changed: leave and come back
                self.theme = "textual-dark"
            self.theme = name
        else:
            known = [t for t in self.available_themes if t.startswith("claw-")]
            self.refuse(f"no theme {name}; ours: {', '.join(sorted(known))}")

    # ── small things ────────────────────────────────────────────────────────────────────────

    def action_copy(self) -> None:
        block = self.main.conversation.chosen()
        if block is None:
            self.refuse("select something first: j k in the conversation")
            return
        text = block.text
        if block.kind is BlockKind.TOOL and block.tool is not None:
            text = summarize_args(block.tool.args) + (f"\n{text}" if text else "")
        self.copy_to_clipboard(text)
        self.store.notice("info", f"copied {len(text)} characters")

    def action_mouse(self) -> None:
        """Hand the mouse to the terminal for its own selection, or take it back."""
        name = "_disable_mouse_support" if self._mouse_on else "_enable_mouse_support"
        switch = getattr(self._driver, name, None)
        if switch is None:
            self.refuse("this terminal has no mouse to hand over")
            return
        switch()
        self._mouse_on = not self._mouse_on
        self.store.notice(
            "info", "mouse: ours" if self._mouse_on else "mouse: the terminal's", hint="M switches"
        )

    def theme_names(self) -> list[str]:
        """Those in use and those that have a file."""
        return sorted({*self.available_themes, *themes.names(themes.theme_dirs())})

    def load_themes(self, name: str = "") -> list[str]:
        """Register what the theme files hold, or the file of that name; a broken file is a toast,
        nothing else. Returns what is wrong."""
        found, problems = themes.load_all(themes.theme_dirs(), name)
        for theme in found:
            self.register_theme(theme)
        for problem in problems:
            self.store.notice("error", problem, hint="the theme before stays")
        return problems


def _stopped(count: int) -> str:
    if not count:
        return "nothing was going on in this session"
    return "stopping the run" if count == 1 else f"stopping {count} runs"
