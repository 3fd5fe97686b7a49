"""Pictures of view 2, past runs and a replay. Update with --snapshot-update after looking."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from claw_tui.app import ClawApp
from claw_tui.screens.replay import ReplayPage
from claw_tui.screens.runs import RunsPage
from tests.tui.fake_client import FakeClient, FakeClock
from tests.tui.fake_trace import CALLS, EDITED, RUN, FakeTrace, Recorded
from tests.tui.support import LARGE, SMALL, Console, four_sessions
from tests.tui.test_pages import run_command
from tests.tui.test_prompt_view import opened, read

Snap = Callable[..., bool]
Story = Callable[[Console], Awaitable[None]]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


async def parts(c: Console) -> None:
    await opened(c)


async def part(c: Console) -> None:
    page = await opened(c)
    await c.press("g", "j", "j", "j", "j", "enter")
    await read(c, page)
    await c.press("j")


async def compare(c: Console) -> None:
    page = await opened(c)
    await c.press("equals_sign")
    await c.until(lambda: page.calls, "listed")
    await c.press("enter")
    await c.until(lambda: page.section == "compare" and page.lines and page.built, "compared")
    await c.press("j")


async def found(c: Console) -> None:
    page = await opened(c)
    await c.press("slash")
    await c.pilot.press(*"backup")
    await c.press("enter")
    await c.until(lambda: page.section == "matches", "found")
    await c.settled()


async def calls(c: Console) -> None:
    page = await opened(c)
    await c.press("tab", "tab")
    await c.until(lambda: len(page.calls) == 4, "listed")
    await c.settled()


async def runs(c: Console) -> None:
    await run_command(c, "runs")
    await c.until(lambda: isinstance(c.app.page, RunsPage) and c.app.page.runs, "runs")
    await c.settled()


async def replay(c: Console) -> None:
    await runs(c)
    await c.press("enter")
    await c.until(lambda: isinstance(c.app.page, ReplayPage) and c.app.page.replay.at_end, "run")
    await c.press("left", "left", "left", "left", "left", "plus")


STATES: list[tuple[str, Story, FakeTrace]] = [
    ("parts", parts, FakeTrace()),
    ("broken", parts, FakeTrace(*CALLS, Recorded(RUN, 3, EDITED, at=9_000, cached=13_110))),
    ("part", part, FakeTrace()),
    ("compare", compare, FakeTrace(*CALLS, Recorded(RUN, 3, EDITED, at=9_000))),
    ("found", found, FakeTrace()),
    ("calls", calls, FakeTrace(*CALLS, Recorded(RUN, 3, EDITED, at=9_000, measured=False))),
    ("empty", parts, FakeTrace()),
    ("off", parts, FakeTrace(enabled=False)),
    ("runs", runs, FakeTrace()),
    ("replay", replay, FakeTrace()),
]


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80", "120"])
@pytest.mark.parametrize(("name", "play", "trace"), STATES, ids=[state[0] for state in STATES])
def test_picture(
    snap_compare: Snap, name: str, play: Story, trace: FakeTrace, size: tuple[int, int]
) -> None:
    if name in ("empty", "off"):
        trace.calls.clear()
    client, clock = trace.install(four_sessions(FakeClient())), FakeClock()
    app = ClawApp(client, clock=clock)

    async def before(pilot: Pilot[str]) -> None:
        c = Console(app, client, clock, pilot)
        await c.until(lambda: app.store.conversation().loaded)
        await play(c)

    assert snap_compare(app, terminal_size=size, run_before=before)
