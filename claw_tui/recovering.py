"""What the operator does about runs that a restart cut short, and the pages that the command
line opens."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, cast

from claw_engine.errors import ClawError
from claw_tui.deciding import Deciding
from claw_tui.store.interrupted import Interrupted, steps_of, unknown
from claw_tui.store.sanitize import line
from claw_tui.store.words import short_run

if TYPE_CHECKING:
    from claw_tui.app import ClawApp
    from claw_tui.screens.interrupted import InterruptedPage
    from claw_tui.screens.lanes import LanesPage
    from claw_tui.screens.page import Page

READ_SESSIONS = 20
"""Conversations read to tell what was going on; those of more runs are read when opened."""


class Recovering(Deciding):
    async def open_session(self, key: str, *, typing: bool = True) -> None:
        """Show a session."""
        raise NotImplementedError

    def page_named(self, name: str) -> Page | None:
        """A page that is none of the nine views."""
        if name == "interrupted":
            from claw_tui.screens.interrupted import InterruptedPage  # lazily: start-up cost

            self.go(self._read_interrupted)
            return InterruptedPage()
        if name == "notices":
            from claw_tui.screens.notices import NoticesPage

            return NoticesPage()
        if name in ("6", "9"):
            from claw_tui import pages

            app = cast("ClawApp", self)
            return pages.logs(app) if name == "9" else pages.lanes(app)
        if name in ("2", "runs"):
            from claw_tui import tracepages

            return tracepages.page(cast("ClawApp", self), name)
        return None

    async def action_interrupted(self) -> None:
        await self.action_view("interrupted")

    async def action_notices(self) -> None:
        await self.action_view("notices")

    async def action_prompt(self) -> None:
        await self.action_view("2")

    async def action_lanes(self) -> None:
        await self.action_view("6")

    async def on_lanes_page_wanted(self, message: LanesPage.Wanted) -> None:
        from claw_tui import laneorders  # with the page: not before it is there

        await laneorders.do(cast("ClawApp", self), message)

    async def action_logs(self) -> None:
        await self.action_view("9")

    async def open_replay(self) -> None:
        """Show the run that the console was opened for, from its beginning to its end."""
        from claw_tui import tracepages

        await tracepages.first(cast("ClawApp", self))

    async def action_runs(self) -> None:
        await self.action_view("runs")

    async def _read_interrupted(self) -> None:
        """The conversations of the listed runs: they tell what was going on."""
        keys = dict.fromkeys(run.session for run in self.store.interrupted)
        for key in list(keys)[:READ_SESSIONS]:
            if not self.store.conversation(key).loaded:
                with contextlib.suppress(ClawError):
                    await self.link.load_history(key)

    async def on_interrupted_page_wanted(self, message: InterruptedPage.Wanted) -> None:
        run = message.run
        match message.verb:
            case "open":
                await self._show(run.session)
            case "discard":
                self.go(partial(self.settle, run, "discard"))
            case _:
                self.go(partial(self._resume, run))

    async def _resume(self, run: Interrupted) -> None:
        if not await self._known(run):
            return
        if unknown(steps_of(run, self.store.conversation(run.session).blocks)):
            self._ask_resume(run)
        else:
            await self.settle(run, "resume")

    def _ask_resume(self, run: Interrupted) -> None:
        """Resume only after a second look: a call of it may have happened."""
        from claw_tui.screens.ask import ArmedPage
        from claw_tui.screens.interrupted import resume_lines

        steps = steps_of(run, self.store.conversation(run.session).blocks)

        def done(yes: bool | None) -> None:
            self.keeper.select(None)
            if yes:
                self.go(partial(self.settle, run, "resume"))

        page = ArmedPage(
            f"resume:{run.run_id}",
            "Resume, with an unknown outcome?",
            lambda width: resume_lines(run, steps, width, self.ink),
        )
        self.push_screen(page, done)

    async def settle(self, run: Interrupted, action: str) -> None:
        """Resume or discard; a resumed run is shown as it goes on."""
        answer = await self.link.call("runs.resume", {"runId": run.run_id, "action": action})
        left = await self.link.call("runs.interrupted")
        if left is not None:
            self.store.set_interrupted(left)
        if answer is None:
            return
        name = f"run {short_run(run.run_id)}: {line(run.text)[:60]}"
        self.store.notice("info", f"{'resumed' if action == 'resume' else 'discarded'} {name}")
        if action == "resume":
            await self._show(run.session)

    async def _known(self, run: Interrupted) -> bool:
        """Read the conversation: it tells whether a call's outcome is unknown."""
        if not self.store.conversation(run.session).loaded:
            try:
                await self.link.load_history(run.session)
            except ClawError as error:
                self.store.notice("error", f"chat.history: {error.title}", hint=error.hint)
                return False
        return True

    async def _show(self, key: str) -> None:
        await self.open_session(key, typing=False)
        await self.action_view("1")
