"""View 9: the log followed at its end, read backwards, filtered; one record with its fields."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from claw_engine.client.base import ClientError
from claw_engine.protocol.frames import ErrorShape
from claw_tui.screens.ask import GreyPage
from claw_tui.screens.logs import LogsPage
from claw_tui.store import logs as store_logs
from tests.tui.fake_client import FakeClient
from tests.tui.fake_log import FakeLog
from tests.tui.support import LARGE, SMALL, Console, console
from tests.tui.test_pages import run_command
from tests.tui.test_story import say, story

SIZES = [SMALL, LARGE]


@pytest.fixture
def log(tmp_path: Path) -> FakeLog:
    return FakeLog(tmp_path)


@asynccontextmanager
async def logs(
    log: FakeLog, size: tuple[int, int] = SMALL
) -> AsyncIterator[tuple[Console, LogsPage]]:
    async with console(size, client=log.install(FakeClient())) as c:
        yield c, await opened(c)


async def opened(c: Console) -> LogsPage:
    await c.press("escape", "9")
    page = c.app.page
    assert isinstance(page, LogsPage)
    await done(c, page)
    return page


async def done(c: Console, page: LogsPage) -> str:
    """Nothing is being read any more, and it is painted."""
    await c.until(lambda: page.loaded and not page.reading, "read")
    await c.settled()
    return c.screen_text()


async def look(c: Console, page: LogsPage) -> str:
    """What the timer does once a second."""
    await c.until(lambda: not page.reading, "free")
    page.look()
    return await done(c, page)


async def type_filter(c: Console, page: LogsPage, words: str) -> str:
    await c.press("slash")
    await c.pilot.press(*(["ctrl+u"] + ["exclamation_mark" if w == "!" else w for w in words]))
    await c.press("enter")
    return await done(c, page)


def selected(text: str) -> str:
    return next(line for line in text.split("\n") if "▌" in line)


@pytest.mark.parametrize("size", SIZES)
async def test_the_end_stands_in_columns(log: FakeLog, size: tuple[int, int]) -> None:
    log.many(40)
    log.add("port 8443 is taken", level="error", logger="claw_engine.gateway")
    async with logs(log, size) as (c, page):
        text = c.screen_text()
        lines = [line for line in text.split("\n") if "request served" in line]
        assert len({line.index("request served") for line in lines}) == 1, "aligned"
        assert "port 8443 is taken" in selected(text) and " E " in selected(text)
        assert "claw-2026-11-30.log" in text and "following" in text
        assert page.window.at_end and not page.window.began


async def test_following_shows_what_comes_and_scrolling_up_stops_it(log: FakeLog) -> None:
    log.many(60)
    async with logs(log) as (c, page):
        log.add("the first new one")
        assert "the first new one" in selected(await look(c, page))
        await c.press("k")
        assert not page.following
        log.add("a second one", "a third one")
        text = await look(c, page)
        assert "the third one" not in text and "2 new below" in text
        assert "n=59" in selected(text), "what is read stays where it is"
        await c.press("G")
        text = await done(c, page)
        assert "a third one" in selected(text) and page.following and not page.new
        await c.press("f")
        assert not page.following
        await c.press("f")
        await done(c, page)
        assert page.following


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> int:
    """A smaller window: the same ways with fewer lines."""
    monkeypatch.setattr(store_logs, "WINDOW", 1500)
    return 1500


async def test_older_pages_come_on_demand_and_the_window_stays_bounded(
    log: FakeLog, window: int
) -> None:
    log.many(300, day=29, words="yesterday")
    log.many(2500)
    async with logs(log) as (c, page):
        assert not c.client.asked("logs.page"), "opening reads the end only"
        assert len(page.window.records) == 120
        for _ in range(40):
            await c.press("g")
            await done(c, page)
            assert len(page.window.records) <= window
            if page.window.began:
                break
        await c.press("g")
        assert "yesterday n=0" in selected(await done(c, page))
        assert not page.window.at_end, "what went out below is read again when it is wanted"
        messages = [record.message for record in page.window.records]
        assert messages[:300] == [f"yesterday n={n}" for n in range(300)]
        assert messages[300:] == [
            f"request served n={n}" for n in range(300, 300 + len(messages) - 300)
        ]
        await c.press("k")
        assert "the log begins here" in c.screen_text()
        for _ in range(100):
            page._select(page.index + 50)
            await c.until(lambda: not page.reading, "read")
            if page.window.at_end:
                break
        records = page.window.records
        numbers = [int(record.message.partition("n=")[2]) for record in records]
        assert numbers == list(range(2800 - len(records), 2800)), "none twice, none left out"


async def test_what_comes_while_the_window_is_full_is_only_counted(
    log: FakeLog, window: int
) -> None:
    log.many(2000)
    async with logs(log) as (c, page):
        while len(page.window.records) < window:
            await c.press("g")
            await done(c, page)
        await c.until(lambda: not page.reading)
        first = page.window.records[0]
        log.many(30)
        text = await look(c, page)
        assert page.window.records[0] is first and page.new == 30 and "30 new below" in text
        await c.press("G")
        assert "n=2029" in selected(await done(c, page))
        assert page.following and page.window.at_end and not page.new


async def test_a_filter_looks_back_through_the_file(log: FakeLog) -> None:
    log.add("the needle is here", level="info")
    log.many(2000)
    log.add("another Needle", level="warn")
    async with logs(log) as (c, page):
        text = await type_filter(c, page, "needle")
        assert [r.message for r in page.window.records] == ["the needle is here", "another Needle"]
        assert "/needle" in text and page.window.scanned == 2002
        log.add("no hay", "a third needle")
        assert "a third needle" in selected(await look(c, page))
        text = await type_filter(c, page, "!request")
        assert "request served" not in text and "no hay" in text
        text = await type_filter(c, page, "not in it")
        assert "none of 2,004 lines of the whole log" in text


async def test_levels(log: FakeLog) -> None:
    log.many(100)
    async with logs(log) as (c, page):
        wanted = [("info and worse", {"info", "warn", "error"}),
                  ("warn and worse", {"warn", "error"}), ("error and worse", {"error"}),
                  ("Log · claw-2026-11-30.log ─", {"debug", "info", "warn", "error"})]  # fmt: skip
        for words, levels in wanted:
            await c.press("l")
            assert words in await done(c, page)
            assert {r.level for r in page.window.records} == levels


async def test_one_record_with_its_fields_and_the_clipboard(log: FakeLog) -> None:
    log.many(20)
    log.add("run ended: runId=7f3a", level="warn", runId="7f3a", tokens=1200)
    log.add("it broke", level="error", error="Traceback:\n  File x\nValueError: [bold]no[/]")
    copied: list[str] = []
    async with logs(log) as (c, page):
        await c.press("enter")
        text = c.screen_text()
        assert "Traceback:" in text and "ValueError: [bold]no[/]" in text
        assert "2026-11-30" in text and not page.following
        await c.press("k")
        text = c.screen_text()
        assert "fields.runId" in text and "1200" in text
        c.app.copy_to_clipboard = copied.append  # type: ignore[method-assign]  # no terminal here
        await c.press("c")
        assert '"runId": "7f3a"' in copied[0]
        await c.press("escape")
        assert not page.opened and c.app.page is page
        await c.press("escape")
        assert c.app.screen is c.app.main


async def test_wide_hidden_and_foreign_lines(log: FakeLog) -> None:
    log.add("漢字" * 60, "x" * 300_000, "evil \u202egnp.exe \x1b[31mred \u200b", level="info")
    with (log.folder / "claw-2026-11-30.log").open("a") as file:
        file.write("no json at all\n")
        file.write('{"0":"{\\"sub\\":1}","1":"hello","_meta":{"logLevelName":"WARN",'
                   '"date":"2026-11-30T14:00:00.000Z","name":"gw"},"time":"x"}\n')  # fmt: skip
    async with logs(log) as (c, page):
        await c.press("g")
        text = await done(c, page)
        assert all(len(line) <= 80 for line in text.split("\n"))
        assert "⟪U+202E⟫" in text and "␛[31m" in text and "\x1b" not in text
        assert "no json at all" in text
        row = next(line for line in text.split("\n") if "hello" in line)
        assert " W " in row and " gw " in row
        await c.press("j", "enter")
        assert "no json" not in selected(c.screen_text())


async def test_a_gateway_that_tells_only_the_end(tmp_path: Path) -> None:
    log = FakeLog(tmp_path, paged=False)
    log.many(700)
    async with logs(log) as (c, page):
        await c.press("g", "k")
        assert "tells only the end" in c.screen_text()
        assert len(page.window.records) == 500
        log.many(2000)
        await c.press("G")
        assert "n=2699" in selected(await done(c, page))


async def test_a_gateway_without_a_log_says_so() -> None:
    async with console() as c:
        await c.press("escape", "9")
        assert isinstance(c.app.page, GreyPage)
        assert "this gateway does not tell it" in " ".join(c.screen_text().split())


async def test_a_burst_and_a_new_day(log: FakeLog) -> None:
    log.many(10)
    async with logs(log) as (c, page):
        log.many(4000)
        assert "n=4009" in selected(await look(c, page)), "the newest, older ones on demand"
        await c.press("g")
        await done(c, page)
        numbers = [int(r.message.partition("n=")[2]) for r in page.window.records]
        assert numbers == list(range(4010 - len(numbers), 4010))
        await c.press("G")
        await done(c, page)
        log.add("last of the day")
        log.add("first of the next", day=31)
        assert "first of the next" in selected(await look(c, page))
        messages = [record.message for record in page.window.records]
        assert messages[-2:] == ["last of the day", "first of the next"]


async def test_a_log_that_cannot_be_read_is_said_and_read_again(log: FakeLog) -> None:
    log.many(10)
    async with logs(log) as (c, page):
        good = c.client.answers["logs.tail"]
        words = "The log cannot be read: I/O error."
        c.client.answers["logs.tail"] = ClientError(ErrorShape("UNAVAILABLE", words))
        assert "I/O error" in await look(c, page)
        c.client.answers["logs.tail"] = good
        log.add("again")
        assert "again" in selected(await look(c, page))


async def test_closed_it_asks_nothing_and_open_once_a_second(
    log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.many(10)
    waits: list[float] = []
    real = LogsPage.set_timer

    def set_timer(self: LogsPage, delay: float, callback: Callable[[], object]) -> object:
        waits.append(delay)
        return real(self, 0.1, callback)

    monkeypatch.setattr(LogsPage, "set_timer", set_timer)
    async with logs(log) as (c, page):
        await c.until(lambda: len(c.client.asked("logs.tail")) > 2, "followed")
        assert set(waits) == {1.0}
        await c.press("k")
        await c.until(lambda: waits[-1] == 3.0, "slower")
        await c.press("1")
        await c.until(lambda: not page.is_attached, "gone")
        asked = len(c.client.asked("logs.tail"))
        for _ in range(20):  # two times the wait of an open one
            await c.pilot.pause(0.01)
        assert len(c.client.asked("logs.tail")) == asked


async def test_a_quiet_log_paints_nothing(log: FakeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.many(10)
    async with logs(log) as (c, page):
        shown: list[int] = []
        real = page.show
        monkeypatch.setattr(page, "show", lambda: (shown.append(1), real()))
        await look(c, page)
        assert not shown
        log.add("something")
        await look(c, page)
        assert shown


async def test_by_name(log: FakeLog) -> None:
    log.many(3)
    async with console(client=log.install(FakeClient())) as c:
        await run_command(c, "logs")
        await c.until(lambda: isinstance(c.app.page, LogsPage), "page")


@pytest.mark.parametrize("kind", ["local", "remote"])
async def test_on_a_real_engine(tmp_path: Path, kind: str) -> None:
    async with story(tmp_path, kind) as (c, _):
        await c.app.action_view("9")
        page = c.app.page
        assert isinstance(page, LogsPage)
        await c.until(lambda: any("engine ready" in r.message for r in page.window.records), "log")
        await c.app.action_type()
        await say(c, "hello there")
        talk = c.app.store.conversation()
        await c.until(lambda: talk.runs and talk.active_run() is None, "answered")
        await c.app.action_view("9")
        page = c.app.page
        assert isinstance(page, LogsPage)
        await c.until(lambda: page.loaded and not page.reading, "read")
        await c.pilot.press("g", "k")
        await c.until(lambda: page.window.began, "back to its beginning")
        assert page.problem == ""
