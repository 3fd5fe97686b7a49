"""Makes the pages that ask the engine for more than the store has. Imported when the first of them
opens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from claw_tui.screens.page import Page
from claw_tui.store.wire import Json

if TYPE_CHECKING:
    from claw_tui.app import ClawApp


def logs(app: ClawApp) -> Page | None:
    """View 9; None where the gateway does not tell its log."""
    from claw_tui.screens.logs import LogsPage  # each page by itself: opening one loads one

    methods = app.store.engine.methods
    if methods and "logs.tail" not in methods:
        return None

    async def ask(method: str, params: Mapping[str, object]) -> Json:
        return await app.link.client.call(method, params)

    return LogsPage(ask, paged=not methods or "logs.page" in methods)


def lanes(app: ClawApp) -> Page | None:
    """View 6; None where the gateway has no lanes."""
    from claw_tui import laneorders
    from claw_tui.screens.lanes import LanesPage

    methods = app.store.engine.methods
    if methods and "lanes.status" not in methods:
        return None
    app.go(lambda: laneorders.read(app))
    return LanesPage()
