"""`:runs` and the replay of one: what a past run looks like, step by step and at any speed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from claw_tui.screens.ask import GreyPage
from claw_tui.screens.prompt import PromptScreen
from claw_tui.screens.replay import ReplayPage
from claw_tui.screens.runs import RunsPage
from tests.tui.fake_client import FakeClient
from tests.tui.fake_trace import CALLS, FakeTrace, unknown
from tests.tui.support import LARGE, SMALL, Console, console
from tests.tui.test_pages import run_command


async def listed(c: Console) -> RunsPage:
    await run_command(c, "runs")
    page = c.app.page
    assert isinstance(page, RunsPage)
    await c.until(lambda: page.empty != "…", "answered")
    await c.settled()
    return page


@asynccontextmanager
async def replaying(size: tuple[int, int] = SMALL) -> AsyncIterator[tuple[Console, ReplayPage]]:
    async with console(size, client=FakeTrace().install(FakeClient())) as c:
        await listed(c)
        await c.press("enter")
        page = c.app.page
        assert isinstance(page, ReplayPage)
        await c.until(lambda: page.replay.events and page.replay.at_end, "all of it")
        await c.settled()
        yield c, page


async def step(c: Console, page: ReplayPage, *keys: str, done: int) -> str:
    await c.press(*keys)
    await c.until(lambda: page.replay.done == done, f"step {done}")
    await c.settled()
    return c.screen_text()


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_past_runs_are_listed_and_open_like_live_ones(size: tuple[int, int]) -> None:
    async with console(size, client=FakeTrace().install(FakeClient())) as c:
        await listed(c)
        text = c.screen_text()
        for words in ("what's in the [b]report[/]?", "2 calls", "7f3a", "22b1", "done · stop",
                      "60,281 tokens in, 360 out (measured), cached 50%"):  # fmt: skip
            assert words in text, words
        await c.press("enter")
        page = c.app.page
        assert isinstance(page, ReplayPage)
        await c.until(lambda: page.replay.at_end and page.replay.events, "opened")
        await c.settled()
        text = c.screen_text()
        order = ["what's eating my disk?", "run 7f3a", "call 1 turn", "think", "du -sh ~/*",
                 "rm -rf /volume1/backup/old", "call 2 tool round", "I keep it."]  # fmt: skip
        places = [text.index(words) for words in order[:1] + order[2:]]
        assert places == sorted(places) and order[1] in text
        assert "denied: keep it" in text and "step 25/25" in text and "took 1 m" in text
        await c.press("escape")
        assert isinstance(c.app.page, RunsPage)
        await c.press("escape")
        assert c.app.screen is c.app.main


async def test_steps_go_both_ways_and_end_where_the_run_does() -> None:
    async with replaying() as (c, page):
        whole = len(page.replay.events)
        await c.press("right")
        assert "this is its end" in c.screen_text()
        text = await step(c, page, "left", "left", done=whole - 2)
        assert "I keep it." in text and "first token 0.2 s" not in text
        text = await step(c, page, *["left"] * (whole - 4), done=2)
        assert "what's eating my disk?" in text and "think" not in text
        assert "waits" not in text
        await step(c, page, "left", "left", done=0)
        await c.press("left")
        assert "this is its beginning" in c.screen_text()
        text = await step(c, page, *["right"] * 5, done=5)
        assert "I'll look at the largest folders" in text


async def test_it_plays_by_itself_stops_and_starts_again_from_the_end() -> None:
    async with replaying() as (c, page):
        await c.press("plus", "plus", "plus", "plus", "plus", "plus")
        assert page.speed == 16 and "×16" in c.screen_text()
        await c.press("space")
        assert page.playing
        await c.until(lambda: page.replay.at_end and not page.playing, "played to the end")
        await c.press(*["minus"] * 8)
        assert page.speed == 0.25
        await c.press("space")
        await c.until(lambda: 0 < page.replay.done < 20, "from the beginning")
        await c.press("space")
        assert not page.playing
        await c.settled()
        assert "step 25/25" not in c.screen_text()


async def test_the_prompt_of_a_call_opens_over_the_run_and_goes_back_to_it() -> None:
    async with replaying() as (c, page):
        for call in page.replay.talk.calls.values():
            assert call.call is not None
            call.call.id = CALLS[1].id
        await c.press("k", "p")
        prompt = c.app.page
        assert isinstance(prompt, PromptScreen)
        await c.until(lambda: prompt.loaded and prompt.request, "loaded")
        assert prompt.request and prompt.request.call.id == CALLS[1].id and not prompt.following
        await c.press("escape")
        assert c.app.page is page


async def test_outputs_of_a_past_run_open() -> None:
    async with replaying() as (c, page):
        await c.press("g", *["j"] * 4, "enter")
        chosen = page.past.chosen()
        assert chosen is not None and chosen.tool is not None and page.past.expanded[chosen.id]
        await c.press("slash")
        assert "p opens the prompt" in c.screen_text()


async def test_no_runs_recording_off_and_a_run_that_is_gone() -> None:
    trace = FakeTrace()
    client = trace.install(FakeClient())
    async with console(client=client) as c:
        client.answers["trace.run"] = unknown("No run is there any more.")
        await listed(c)
        await c.press("enter")
        await c.until(lambda: "No run is there any more." in c.screen_text(), "said")
        await c.press("space")
        assert "no recorded steps" in c.screen_text()
        await c.press("escape", "escape")
        trace.calls.clear()
        await listed(c)
        assert "no run of this session is recorded" in c.screen_text()
        await c.press("enter", "escape")
        trace.enabled = False
        await listed(c)
        assert "claw config set claw.trace.enabled true" in c.screen_text()


async def test_a_gateway_without_a_trace_says_so() -> None:
    async with console() as c:
        await run_command(c, "runs")
        await c.until(lambda: isinstance(c.app.page, GreyPage), "grey")
        await c.press("escape")
        assert c.app.screen is c.app.main
