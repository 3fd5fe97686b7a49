"""Pictures of the views Logs and Lanes. Update with --snapshot-update after looking."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from claw_tui.app import ClawApp
from claw_tui.screens.lanes import LanesPage
from tests.tui.fake_client import FakeClient, FakeClock, lane
from tests.tui.fake_lanes import FakeLanes
from tests.tui.fake_log import FakeLog
from tests.tui.support import LARGE, SMALL, Console, four_sessions
from tests.tui.test_lanes import at
from tests.tui.test_lanes import opened as lanes_opened
from tests.tui.test_logs import done, opened, type_filter

Snap = Callable[..., bool]
Story = Callable[[Console], Awaitable[None]]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


async def logs(c: Console) -> None:
    await opened(c)


async def back(c: Console) -> None:
    page = await opened(c)
    await c.press("k", "k", "k")
    page.new = 12
    page.show()


async def record(c: Console) -> None:
    page = await opened(c)
    await c.press("k", "k", "enter")
    await done(c, page)


async def found(c: Console) -> None:
    page = await opened(c)
    await type_filter(c, page, "backup")


async def nothing_found(c: Console) -> None:
    page = await opened(c)
    await type_filter(c, page, "unheard")


async def lanes(c: Console) -> None:
    FakeLanes().tell(c.client)
    for load in (0, 1, 3, 6, 4, 2, 5):
        c.client.emit("lanes", {"lanes": [lane("main", 4, min(load, 4), max(0, load - 4))]})
    await c.settled()
    await lanes_opened(c)


async def lanes_queued(c: Console) -> None:
    await lanes(c)
    page = c.app.page
    assert isinstance(page, LanesPage)
    await at(c, page, "q3")


async def lanes_drop(c: Console) -> None:
    await lanes_queued(c)
    await c.press("d")
    await c.armed()
    c.app._show_armed()
    await c.settled()


STATES: list[tuple[str, Story]] = [
    ("logs", logs),
    ("logs-back", back),
    ("logs-record", record),
    ("logs-found", found),
    ("logs-none", nothing_found),
    ("lanes", lanes),
    ("lanes-queued", lanes_queued),
    ("lanes-drop", lanes_drop),
]


def log_of_a_day(folder: Path) -> FakeLog:
    log = FakeLog(folder)
    log.add("engine ready: mode=embedded", "listening: port=18789 bind=loopback")
    log.many(60)
    log.add("session agent:main:telegram:direct:42 opened", logger="claw_engine.sessions.store")
    log.add("run started: runId=7f3a model=rehearsal/stage", logger="claw_engine.runs",
            runId="7f3a", model="rehearsal/stage", waitMs=12)  # fmt: skip
    log.add("漢字 in a file name: /volume1/写真/2026-11.jpg", level="debug", logger="claw.tools")
    log.add("evil \u202egpj.exe and \x1b[31mcolour", level="warn", logger="claw_engine.tools.read")
    log.add("the backup could not be read", level="error", logger="claw_engine.tools.exec",
            error="Traceback (most recent call last):\n  File \"exec.py\", line 12, in run\n"
            "PermissionError: /volume1/backup/old")  # fmt: skip
    log.add("run ended: runId=7f3a status=done tokens=19400", logger="claw_engine.runs")
    log.add("a line that is far longer than the screen is wide: " + "and so on " * 30)
    return log


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80", "120"])
@pytest.mark.parametrize(("name", "play"), STATES, ids=[state[0] for state in STATES])
def test_picture(
    snap_compare: Snap, tmp_path: Path, name: str, play: Story, size: tuple[int, int]
) -> None:
    client, clock = log_of_a_day(tmp_path).install(four_sessions(FakeClient())), FakeClock()
    if name.startswith("lanes"):
        FakeLanes().install(client)
    app = ClawApp(client, clock=clock)

    async def before(pilot: Pilot[str]) -> None:
        c = Console(app, client, clock, pilot)
        await c.until(lambda: app.store.conversation().loaded)
        await play(c)

    assert snap_compare(app, terminal_size=size, run_before=before)
