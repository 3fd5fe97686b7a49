"""Makes the pages that read the trace store: view 2, past runs, the replay of one. Imported when
the first of them opens."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from claw_tui import editing
from claw_tui.screens.page import Page
from claw_tui.screens.prompt import PromptScreen
from claw_tui.screens.replay import ReplayPage
from claw_tui.screens.runs import RunsPage
from claw_tui.store.requests import PartInfo
from claw_tui.store.wire import Json, obj, text

if TYPE_CHECKING:
    from claw_tui.app import ClawApp

NEEDED = {"2": "trace.call", "runs": "trace.list"}
"""The method without which a page has nothing to show."""


def page(app: ClawApp, name: str) -> Page | None:
    """The page of that name; None where the gateway cannot serve it."""
    methods = app.store.engine.methods
    if methods and NEEDED[name] not in methods:
        return None
    return RunsPage(partial(_ask, app), partial(replay, app)) if name == "runs" else prompt(app)


def prompt(app: ClawApp, call_id: str = "") -> PromptScreen:
    """View 2, of the newest call of the session or of a certain one."""

    async def edit(part: PartInfo) -> str:
        return await editing.edit_part(app, part, app.editor or editing.in_terminal)

    return PromptScreen(partial(_ask, app), edit, call_id)


async def replay(app: ClawApp, run_id: str) -> None:
    """Open a past run over the page that lists them."""

    async def show_prompt(call_id: str) -> None:
        await app.push_screen(prompt(app, call_id))

    await app.push_screen(ReplayPage(partial(_ask, app), run_id, show_prompt))


async def first(app: ClawApp) -> None:
    """Open the run of a file before anything else."""
    raw = obj((await _ask(app, "trace.run", {"runId": app.replay})).get("run"))
    app.store.select(text(raw, "sessionKey"))
    await replay(app, app.replay)


async def _ask(app: ClawApp, method: str, params: Mapping[str, object]) -> Json:
    return await app.link.client.call(method, params)
