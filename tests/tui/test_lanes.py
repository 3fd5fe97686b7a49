"""View 6: what runs and waits, lanes made wider, messages moved, and dropped after a question."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from claw_tui.screens.ask import ArmedPage, GreyPage
from claw_tui.screens.lanes import LanesPage
from claw_tui.store.lanes import Lane, LaneRun, Lanes
from claw_tui.store.words import age
from tests.tui.fake_client import MAIN, TELEGRAM, FakeClient
from tests.tui.fake_lanes import FakeLanes
from tests.tui.support import LARGE, SMALL, Console, console
from tests.tui.test_pages import run_command
from tests.tui.test_story import say, story


@asynccontextmanager
async def lanes(
    fake: FakeLanes, size: tuple[int, int] = SMALL
) -> AsyncIterator[tuple[Console, LanesPage]]:
    client = fake.install(FakeClient())
    async with console(size, client=client) as c:
        fake.tell(client)
        await c.settled()
        yield c, await opened(c)


async def opened(c: Console) -> LanesPage:
    await c.press("escape", "6")
    page = c.app.page
    assert isinstance(page, LanesPage)
    await c.until(lambda: c.app.store.lanes.runs, "told")
    await c.settled()
    return page


async def at(c: Console, page: LanesPage, run_id: str) -> str:
    await c.press("g")
    for _ in range(len(page.items())):
        item = page.chosen()
        if isinstance(item, LaneRun) and item.id == run_id:
            return c.screen_text()
        await c.press("j")
    raise AssertionError(f"{run_id} is not listed")


def selected(text: str) -> str:
    return next(line for line in text.split("\n") if "▌" in line)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_what_runs_waits_and_is_parked(size: tuple[int, int]) -> None:
    async with lanes(FakeLanes(), size) as (c, page):
        text = c.screen_text()
        rows = [line for line in text.split("\n") if " main  " in line]
        assert "1/4" in rows[0] and "queued 3" in rows[0] and "parked 1" in rows[0]
        runs = text.partition("what runs and waits")[2]
        order = [runs.index(words) for words in ("running", "queued 1", "queued 2", "parked")]
        assert order == sorted(order)
        assert "what's eating my disk?" in text and "and then the [b]photos[/]" in text
        assert "⟪U+202E⟫" in text and "1 m" in text and "3 m" in text
        await at(c, page, "q2")
        text = c.screen_text()
        assert MAIN in text and "behind r1" in text and "behind q1" in text
        await c.press("j")
        for row in text.split("\n"):
            assert len(row) <= size[0]


async def test_a_lane_gets_wider_narrower_and_back() -> None:
    fake = FakeLanes()
    async with lanes(fake) as (c, _):
        await c.press("plus")
        await c.until(lambda: c.app.store.lanes.lanes["main"].width == 5, "wider")
        await c.pilot.press("plus", "minus", "plus", "plus")  # none of them is lost
        await c.until(lambda: c.app.store.lanes.lanes["main"].width == 7, "in turn")
        await c.press("0")
        await c.until(lambda: c.app.store.lanes.lanes["main"].width == 4, "configured")
        await c.press("j", "minus")
        await c.settled()
        assert "the narrowest is 1" in c.screen_text()
        asked = [(p["lane"], p["width"]) for p in c.client.asked("lanes.configure")]
        assert [width for _, width in asked] == [5, 6, 5, 6, 7, None]
        assert {name for name, _ in asked} == {"main"}
        await c.press("d")
        assert "select a message that waits" in c.screen_text()


async def test_another_place_and_the_cursor_goes_with_it() -> None:
    fake = FakeLanes()
    async with lanes(fake) as (c, page):
        await at(c, page, "q2")
        await c.press("K")
        await c.until(lambda: fake.waiting == ["q2", "q1", "q3"], "earlier")
        await c.settled()
        assert "evil" in selected(c.screen_text()) and "queued 1" in selected(c.screen_text())
        await c.press("K")
        assert "the next one already" in c.screen_text()
        await c.press("J", "J")
        await c.until(lambda: fake.waiting == ["q1", "q3", "q2"], "later")
        await c.settled()
        await c.press("J")
        assert "nothing waits after it" in c.screen_text()
        assert len(c.client.asked("lanes.move")) == 3


async def test_a_message_is_dropped_only_after_a_second_look() -> None:
    fake = FakeLanes()
    async with lanes(fake) as (c, page):
        await at(c, page, "q3")
        await c.press("d")
        assert isinstance(c.app.screen, ArmedPage)
        await c.pilot.press("y")  # not armed yet
        assert "Its sender is told" in c.screen_text() and "the last of them" in c.screen_text()
        await c.press("escape")
        assert fake.waiting == ["q1", "q2", "q3"]
        await c.press("d")
        await c.armed()
        await c.press("y")
        await c.until(lambda: fake.waiting == ["q1", "q2"], "dropped")
        await c.settled()
        assert "dropped: the last of them" in c.screen_text()
        await at(c, page, "r1")
        await c.press("d")
        assert "going on already" in c.screen_text()


async def test_a_row_opens_its_session_and_all_pauses() -> None:
    async with lanes(FakeLanes()) as (c, page):
        await c.press("P")
        assert "PAUSED" in c.screen_text() and c.client.asked("lanes.pause")
        await at(c, page, "r2")
        await c.press("enter")
        await c.until(lambda: c.app.screen is c.app.main, "console")
        assert c.app.store.selected == TELEGRAM


async def test_nothing_runs_and_no_lanes() -> None:
    fake = FakeLanes()
    client = fake.install(FakeClient())
    client.answers["lanes.status"] = {"paused": False, "lanes": [], "runs": []}
    async with console(client=client) as c:
        await run_command(c, "lanes")
        await c.until(lambda: isinstance(c.app.page, LanesPage), "page")
        await c.settled()
        assert "nothing runs, nothing waits" in c.screen_text()
        page = c.app.page
        assert isinstance(page, LanesPage) and page._clock is not None
        assert not page._clock._active.is_set(), "no clock while nothing waits"
    client = FakeClient()
    del client.answers["lanes.pause"]
    async with console(client=client) as c:
        await c.press("escape", "6")
        assert isinstance(c.app.page, GreyPage)


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (59, "59 s"), (60, "1 m"),
                                                (3599, "59 m"), (7500, "2 h 05 m")])  # fmt: skip
def test_ages(seconds: int, words: str) -> None:
    assert age(seconds * 1000) == words


def test_foreign_numbers_of_runs_are_no_runs() -> None:
    known = Lanes()
    known.apply({"runs": {"active": 1}, "lanes": [{"lane": "main", "width": "x"}, 3]})
    assert known.runs == [] and known.lanes == {"main": known.lanes["main"]}
    assert isinstance(known.lanes["main"], Lane)


@pytest.mark.parametrize("kind", ["local", "remote"])
async def test_on_a_real_engine(tmp_path: Path, kind: str) -> None:
    async with story(tmp_path, kind) as (c, client):
        await say(c, "run: uname")
        await c.until(lambda: c.app.store.queue.pending, "a request")
        for words in ("think: one", "think: two"):
            await say(c, words)
            await asyncio.sleep(0)
        await c.until(lambda: len(c.app.store.conversation().queued) == 2, "two wait")
        await c.pilot.press("escape", "6")
        page = c.app.page
        assert isinstance(page, LanesPage)
        await c.until(lambda: c.app.store.lanes.queued == 2 and len(page.items()) >= 8, "listed")
        ordered = c.app.store.lanes.ordered()
        assert [run.group for run in ordered] == ["queued", "queued", "parked"]
        first, second = ordered[:2]
        await c.pilot.press("plus")
        await c.until(lambda: c.app.store.lanes.lanes["main"].width == 5, "wider")
        await c.pilot.press("minus")
        await c.until(lambda: c.app.store.lanes.lanes["main"].width == 4, "narrower")
        await c.pilot.press("G", "k")
        await c.until(lambda: page.chosen() == second, "the last that waits")
        await c.pilot.press("K")
        await c.until(lambda: c.app.store.lanes.ordered()[0].id == second.id, "moved")
        await c.pilot.press("d")
        await c.until(lambda: c.app.keeper.state.written is not None, "asked")
        c.clock.advance(0.6)
        await c.pilot.press("y")
        await c.until(lambda: len(c.app.store.lanes.runs) == 2, "dropped")
        assert c.app.store.lanes.ordered()[0].id == first.id
        assert (await client.call("agent.wait", {"runId": second.id}))["status"] != "timeout"
