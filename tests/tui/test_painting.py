"""The painter's timer: a loop that comes too late may skip frames, never all of them."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from textual import _time
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from claw_tui.app import ClawApp
from claw_tui.widgets.lineview import LineView
from tests.tui.fake_client import FakeClient, record
from tests.tui.support import LARGE, SMALL, console


async def test_a_loop_that_is_always_late_paints_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = itertools.count(1.0, 60.0)  # Textual's timers find every moment long past

    class Late:
        sleep = staticmethod(_time.sleep)

        @staticmethod
        def get_time() -> float:
            return next(late)

    async with console(size=SMALL) as shown:
        monkeypatch.setattr("textual.timer._time", Late)
        shown.app.store.notice("warn", "seen after all")
        await shown.settled()
        assert "seen after all" in shown.screen_text()


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_first_screen_is_styled_once(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    styled: list[DOMNode] = []
    apply = Stylesheet.apply

    def count(self: Stylesheet, node: DOMNode, **options: bool) -> None:
        styled.append(node)
        apply(self, node, **options)

    monkeypatch.setattr(Stylesheet, "apply", count)
    async with console(size) as c:
        lists = [node for node in styled if isinstance(node, LineView)]
        assert len(lists) == len(set(lists)) > 4
        wide = size is LARGE
        assert c.app.main.has_class("-wide") is wide and c.app.main.has_class("-narrow") is not wide


async def test_a_page_in_the_background_is_styled_by_the_theme_that_came_meanwhile() -> None:
    client = FakeClient()
    client.answers["exec.approval.list"] = {"approvals": [record("id-1", "df -h")]}
    async with console(client=client) as c:
        page = await c.open_queue()
        dark = page.styles.background
        await c.press("1")
        await c.app.command("theme claw-light")
        await c.settled()
        await c.open_queue()
        await c.settled()
        assert page.styles.background != dark
        assert page.styles.background == c.app.main.styles.background


async def test_the_first_frame_starts_what_waited_for_it() -> None:
    settled = asyncio.Event()
    app = ClawApp(FakeClient(), on_settled=settled.set)
    assert not settled.is_set()
    async with app.run_test(size=SMALL):
        await asyncio.wait_for(settled.wait(), 10)


async def test_the_queue_is_made_while_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claw_tui.starting.SETTLE_SECONDS", 0.0)
    monkeypatch.setattr("claw_tui.starting.AHEAD_SECONDS", 0.0)
    async with console() as c:
        await c.until(lambda: c.app._queue is not None and c.app._queue.is_mounted, "made")
        assert c.app.screen is c.app.main
        c.client.emit("exec.approval.requested", record("id-1", "df -h"))
        await c.until(lambda: c.app._queue and c.app._queue._laid_out == c.app.size, "laid out")
        assert c.app.screen is c.app.main and c.app.keeper.state.card is None
        page = await c.open_queue()
        assert page is c.app._queue and "df -h" in c.screen_text()
