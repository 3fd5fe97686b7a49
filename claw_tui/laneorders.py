"""What the operator does about lanes and waiting messages. Imported with view 6."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from textual.strip import Strip

from claw_tui.screens.ask import ArmedPage
from claw_tui.store.lanes import Lane, LaneRun
from claw_tui.store.sanitize import line, tame
from claw_tui.store.store import Pane
from claw_tui.store.words import short_run
from claw_tui.widgets.cells import spans, wrap
from claw_tui.widgets.ink import Ink

if TYPE_CHECKING:
    from claw_tui.app import ClawApp
    from claw_tui.screens.lanes import LanesPage

WIDEST = 1000
"""The engine's own bound (lanes.configure)."""

_turns: WeakKeyDictionary[ClawApp, asyncio.Lock] = WeakKeyDictionary()
"""One order after the other: a second press counts from where the first has led."""


async def read(app: ClawApp) -> None:
    """The lanes and their runs as they are now; afterwards events tell."""
    found = await app.link.call("lanes.status")
    if found is not None:
        app.store.lanes.apply(found)
        app.store.mark(Pane.LANES, Pane.STATUS)


async def do(app: ClawApp, message: LanesPage.Wanted) -> None:
    subject = message.subject
    match message.verb:
        case "width" if isinstance(subject, Lane):
            app.go(partial(_width, app, subject.name, message.step))
        case "place" if isinstance(subject, LaneRun):
            app.go(partial(_move, app, subject.id, message.step))
        case "drop" if isinstance(subject, LaneRun):
            _ask_drop(app, subject)
        case "open" if isinstance(subject, LaneRun):
            await app.open_session(subject.session, typing=False)
            await app.action_view("1")
        case _:
            pass


def _turn(app: ClawApp) -> asyncio.Lock:
    return _turns.setdefault(app, asyncio.Lock())


async def _width(app: ClawApp, name: str, step: int) -> None:
    async with _turn(app):
        lane = app.store.lanes.lanes.get(name)
        if lane is None:
            return
        width = lane.width + step if step else None
        if width is not None and width < 1:
            app.refuse("the narrowest is 1; P pauses everything")
        elif width is not None and width > WIDEST:
            app.refuse(f"the widest is {WIDEST}")
        else:
            await _order(app, "lanes.configure", {"lane": name, "width": width})


async def _move(app: ClawApp, run_id: str, step: int) -> None:
    async with _turn(app):
        lanes = app.store.lanes
        run = next((run for run in lanes.runs if run.id == run_id), None)
        if run is None or run.group != "queued":
            app.refuse("it waits no more")
            return
        place = lanes.place(run) + step
        if place < 0:
            app.refuse("it is the next one already")
        elif step > 0 and not any(run_id in other.behind for other in lanes.runs):
            app.refuse("nothing waits after it")
        else:
            await _order(app, "lanes.move", {"runId": run_id, "position": place})


def drop_lines(run: LaneRun, words: str, width: int, ink: Ink) -> list[Strip]:
    """What the page says that asks before a message is dropped."""
    asked = tame(words) or f"run {short_run(run.id)}"
    out = [spans([(f" {part}", ink("user"))]) for part in wrap(asked, width - 2)]
    out += [spans([]), spans([(f" {line(run.session)} · lane {line(run.lane)}", ink("muted"))])]
    told = "It will not be answered. Its sender is told that it was dropped."
    return [
        *out,
        spans([]),
        *(spans([(f" {part}", ink("warn"))]) for part in wrap(told, width - 2)),
    ]


def _ask_drop(app: ClawApp, run: LaneRun) -> None:
    words = asked(app, run)

    def done(yes: bool | None) -> None:
        app.keeper.select(None)
        if yes:
            app.go(partial(_drop, app, run, words))

    title = "Drop this message?"
    page = ArmedPage(f"drop:{run.id}", title, lambda width: drop_lines(run, words, width, app.ink))
    app.push_screen(page, done)


async def _drop(app: ClawApp, run: LaneRun, words: str) -> None:
    if await _order(app, "lanes.drop", {"runId": run.id}):
        name = line(words)[:60] or f"run {short_run(run.id)}"
        app.store.notice("info", f"dropped: {name}", hint="its sender is told")


async def _order(app: ClawApp, method: str, params: Mapping[str, object]) -> bool:
    """An order and how things stand after it; whether it was carried out."""
    done = await app.link.call(method, params)
    await read(app)
    return done is not None


def asked(app: ClawApp, run: LaneRun) -> str:
    talk = app.store.conversations.get(run.session)
    return talk.asked(run.id) if talk is not None else ""
