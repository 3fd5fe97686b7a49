"""View 2: the request part by part, one part's text, calls compared, words found, files edited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw_tui.app import ClawApp
from claw_tui.screens.ask import GreyPage
from claw_tui.screens.prompt import PromptScreen
from claw_tui.widgets.pagedtext import PAGE_CHARS
from tests.tui.fake_client import MAIN, FakeClient, Script
from tests.tui.fake_trace import CALLS, EDITED, FIRST, MEMORY, RUN, FakeTrace, Recorded, unknown
from tests.tui.support import LARGE, SMALL, Console, console

SIZES = [SMALL, LARGE]
THIRD = Recorded(RUN, 3, EDITED, at=9_000)


@asynccontextmanager
async def prompt(
    size: tuple[int, int] = SMALL, trace: FakeTrace | None = None
) -> AsyncIterator[tuple[Console, PromptScreen]]:
    client = (trace or FakeTrace()).install(FakeClient())
    async with console(size, client=client) as c:
        yield c, await opened(c)


async def opened(c: Console) -> PromptScreen:
    await c.press("escape", "2")
    page = c.app.page
    assert isinstance(page, PromptScreen)
    await c.until(lambda: page.loaded, "answered")
    await c.settled()
    return page


async def at(c: Console, page: PromptScreen, section: str) -> str:
    await c.until(lambda: page.section == section, section)
    await c.settled()
    return c.screen_text()


async def read(c: Console, page: PromptScreen) -> str:
    """The text of the opened part is on the screen."""
    await c.until(lambda: page.section == "text" and page.text.pieces, "text")
    await c.settled()
    return c.screen_text()


async def ask_for(c: Console, words: str) -> None:
    await c.press("slash")
    await c.pilot.press(*words)
    await c.press("enter")


@pytest.mark.parametrize("size", SIZES)
async def test_the_last_request_stands_part_by_part(size: tuple[int, int]) -> None:
    async with prompt(size) as (c, page):
        text = c.screen_text()
        for words in ("call 2 of run 7f3a", "44,955 tokens (measured)", "cached 15,310",
                      "tool round", "$0.0132", "grew by 29,629", "result feishu_doc did it",
                      "Tooling", "AGENTS.md", "MEMORY.md", "envelope"):  # fmt: skip
            assert words in text, words
        names = [text.index(name) for name in ("Tooling", "Safety", "AGENTS.md", "MEMORY.md")]
        assert names == sorted(names), "wire order"
        bar = next(line for line in text.split("\n") if "░░░░░" in line)
        assert bar.count("░") > size[0] * 0.6, "two thirds of it is one result"
        culprit = next(line for line in text.split("\n") if "▌" in line)
        assert "feishu_doc" in culprit and "29,629" in culprit, "selected, and says so"
        assert page.following and "live" in text


@pytest.mark.parametrize("size", SIZES)
async def test_a_part_opens_page_by_page(size: tuple[int, int]) -> None:
    async with prompt(size) as (c, page):
        await c.press("enter")
        assert "row 0: the gross revenue" in await read(c, page)
        offsets = [call["offset"] for call in c.client.asked("trace.part")]
        assert offsets[0] == 0 and len(offsets) <= 2, "only what is nearly seen"
        for _ in range(40):
            await c.press("pagedown")
        await c.until(lambda: len(page.text.pieces) > 2, "more pages came")
        rows = [row for piece in page.text.pieces for row in piece.rows]
        assert rows == [f"row {n}: the gross revenue of 2026" for n in range(len(rows) - 1)] + [
            rows[-1]
        ], "no line was broken where pages meet"
        await c.press("G")
        await c.until(lambda: page.text.following is None, "the last page")
        await c.settled()
        assert "row 3999" in c.screen_text() and "end" in c.screen_text()
        await c.press("g")
        await c.until(lambda: page.text.pieces and page.text.pieces[0].offset == 0, "first page")
        await c.settled()
        assert "row 0:" in c.screen_text()
        await c.press("escape")
        assert page.section == "parts"


async def test_h_and_l_go_through_the_parts_and_what_is_hidden_is_said() -> None:
    async with prompt() as (c, page):
        await c.press("k", "k", "k", "enter")
        text = await read(c, page)
        assert "file MEMORY.md" in text and "redacted: secrets are hidden" in text
        await c.press("h")
        await c.until(lambda: page.text.subject.endswith("file:AGENTS.md") and page.text.pieces)
        await c.settled()
        assert "# Rules" in c.screen_text() and "redacted" not in c.screen_text()
        await c.press("h", "h", "h", "h")
        assert "no part before it" in c.screen_text()
        await c.press("escape")
        row = next(line for line in c.screen_text().split("\n") if "MEMORY.md" in line)
        assert "redacted" in row


async def test_the_envelope_has_no_text_and_a_section_no_file() -> None:
    async with prompt() as (c, page):
        await c.press("G", "enter")
        assert "no text" in c.screen_text() and page.section == "parts"
        await c.press("g", "e")
        assert "no file behind it: section Tooling" in c.screen_text()
        assert not c.client.asked("trace.part")


@pytest.mark.parametrize("size", SIZES)
async def test_two_calls_are_compared_with_lines_only_where_something_changed(
    size: tuple[int, int],
) -> None:
    async with prompt(size, FakeTrace(*CALLS, THIRD)) as (c, page):
        await c.press("equals_sign")
        text = await at(c, page, "pick")
        await c.until(lambda: page.calls, "listed")
        await c.settled()
        assert "Compare call 3 of run 7f3a" in text and "22b1" in c.screen_text()
        await c.press("enter")
        await c.until(lambda: page.section == "compare" and page.built and page.lines, "compared")
        await c.settled()
        assert c.client.asked("trace.compare")[0]["a"] == f"{RUN}/call-2", "older is a"
        text = c.screen_text()
        assert "3 parts the same" in text and "1 changed" in text
        assert "the first difference: file AGENTS.md" in text
        assert "+ Answer in one line." in text and "+38" in text and "⋯ 3 lines" in text
        await c.press("equals_sign")
        await c.until(lambda: page.built and len(page.lines) > 10, "unfolded")
        await c.settled()
        assert "Safety" in c.screen_text()
        await c.press("j", "j", "j", "enter")
        assert "AGENTS.md" in await read(c, page)
        assert c.client.asked("trace.part")[-1]["callId"] == THIRD.id
        await c.press("escape", "escape")
        assert page.section == "parts"


async def test_calls_before_and_after_and_back_to_the_newest() -> None:
    async with prompt() as (c, page):
        await c.press("left_square_bracket")
        await c.until(lambda: page.request and page.request.call.id == CALLS[1].id, "older")
        await c.settled()
        assert "older · f newest" in c.screen_text()
        await c.press("left_square_bracket")
        await c.until(lambda: page.request and page.request.call.id == CALLS[0].id, "oldest")
        await c.press("left_square_bracket")
        assert "first recorded call" in c.screen_text()
        for call in CALLS[1:]:
            await c.press("right_square_bracket")
            await c.until(lambda call=call: page.request and page.request.call.id == call.id)
        await c.press("right_square_bracket")
        await c.until(lambda: page.following, "at the end it follows again")
        await c.settled()
        assert "newest call" in c.screen_text()


async def test_the_calls_of_the_run_and_of_the_session_are_lists() -> None:
    async with prompt() as (c, page):
        await c.press("tab")
        await c.until(lambda: page.section == "calls" and page.calls, "listed")
        await c.settled()
        assert c.client.asked("trace.calls")[-1]["runId"] == RUN
        assert "22b1" not in c.screen_text() and "+29,629" in c.screen_text()
        await c.press("tab")
        await c.until(lambda: len(page.calls) == 3, "all of the session")
        await c.settled()
        assert c.client.asked("trace.calls")[-1]["sessionKey"] == MAIN
        await c.press("G", "enter")
        await c.until(lambda: page.request and page.request.call.id == CALLS[0].id, "opened")
        assert page.section == "parts" and not page.following


async def test_a_long_list_of_calls_is_read_as_it_is_scrolled_to() -> None:
    many = [Recorded(f"r{n:03}", 1, FIRST, at=n * 1000) for n in range(250)]
    async with prompt(SMALL, FakeTrace(*many)) as (c, page):
        await c.press("tab", "tab")
        await c.until(lambda: len(page.calls) == 100, "a page")
        await c.press("G")
        await c.until(lambda: len(page.calls) == 200, "another")


@pytest.mark.parametrize("size", SIZES)
async def test_words_are_found_in_the_request(size: tuple[int, int]) -> None:
    async with prompt(size) as (c, page):
        await ask_for(c, "row 3990:")
        text = await at(c, page, "matches")
        assert "1 found" in text and "result feishu_doc" in text
        await c.press("enter")
        await c.until(lambda: page.text.mark_row >= 0, "scrolled to it")
        await c.settled()
        line = next(line for line in c.screen_text().split("\n") if "row 3990:" in line)
        assert "▌" in line
        first = c.client.asked("trace.part")[0]
        assert isinstance(first["offset"], int) and first["offset"] % PAGE_CHARS == 0
        assert first["offset"] > 0, "the pages before it are not read"
        await c.press("l")
        assert "the last match" in c.screen_text()
        await c.press("escape", "escape")
        await ask_for(c, "nowhere at all")
        await c.until(lambda: "is nowhere" in c.screen_text(), "said")
        assert page.section == "parts"


async def test_a_new_call_is_shown_when_it_comes_but_not_over_what_is_read() -> None:
    trace = FakeTrace(*CALLS[:2])
    async with prompt(SMALL, trace) as (c, page):
        s = Script("7f3a9c20-0000")
        trace.calls.append(CALLS[2])
        c.client.trace(*s.opening("more"))
        await c.until(lambda: page.request and page.request.call.id == CALLS[2].id, "followed")
        await c.press("enter")
        await read(c, page)
        trace.calls.append(THIRD)
        c.client.trace(s("call.ended", callId="c1", stopReason="stop", usage=None))
        await c.settled()
        assert page.section == "text" and page.request and page.request.call.id == CALLS[2].id
        await c.press("escape")
        await c.until(lambda: page.request and page.request.call.id == THIRD.id, "then shown")
        await c.settled()
        assert "cache broke at file AGENTS.md" in c.screen_text()
        row = next(line for line in c.screen_text().split("\n") if "▌" in line)
        assert "AGENTS.md" in row


async def test_nothing_recorded_yet_and_recording_off_are_told_apart() -> None:
    trace = FakeTrace()
    trace.calls.clear()
    async with prompt(SMALL, trace) as (c, page):
        assert "Nothing was sent to a model in this session yet" in c.screen_text()
        await c.press("enter", "e", "equals_sign", "slash", "tab", "c", "left_square_bracket")
        assert page.section == "parts"
        trace.enabled = False
        await c.press("f")
        await c.until(lambda: "are not recorded" in c.screen_text(), "off")
        assert "claw config set claw.trace.enabled true" in c.screen_text()


async def test_recording_that_was_switched_off_still_shows_what_there_is() -> None:
    async with prompt(SMALL, FakeTrace(enabled=False)) as (c, _):
        await c.until(lambda: "recording is off" in c.screen_text(), "said")
        assert "feishu_doc" in c.screen_text()


async def test_recording_that_stopped_by_itself_gives_its_reason() -> None:
    trace = FakeTrace(enabled=False)
    trace.stopped = "database or disk is full"
    async with prompt(SMALL, trace) as (c, _):
        await c.until(lambda: "recording stopped: database or disk is full" in c.screen_text(), "")
        assert "claw.trace.enabled" not in c.screen_text()
        trace.calls.clear()
        await c.press("f")
        await c.until(lambda: "Requests are not recorded: database or disk" in c.screen_text(), "")
        await c.until(lambda: "claw.trace.enabled is on" in c.screen_text(), "the setting")


async def test_a_gateway_without_the_methods_has_a_grey_view() -> None:
    async with console() as c:
        await c.press("escape", "2")
        assert isinstance(c.app.page, GreyPage)
        assert "this gateway does not" in c.screen_text()
        await c.press("1")
        assert c.app.screen is c.app.main


async def test_a_refused_call_is_said_and_nothing_else_happens() -> None:
    async with prompt() as (c, page):
        c.client.answers["trace.compare"] = unknown("that call was thrown away")
        await c.press("equals_sign")
        await c.until(lambda: page.calls, "listed")
        await c.press("enter")
        await c.until(lambda: "thrown away" in c.screen_text(), "said")
        assert page.section == "pick"


async def test_a_part_is_copied_whole() -> None:
    async with prompt() as (c, _):
        await c.press("k", "k", "k", "c")
        await c.until(lambda: c.app.clipboard, "copied")
        assert c.app.clipboard == MEMORY.text
        await c.until(lambda: "copied" in c.screen_text(), "said")


async def test_an_edited_file_says_what_the_next_run_will_show(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text("old\n")
    part = replace(FIRST[3], source=str(file))
    trace = FakeTrace(Recorded(RUN, 1, (*FIRST[:3], part, *FIRST[4:])))

    async def editor(app: ClawApp, path: Path) -> None:
        path.write_text(path.read_text() + "Be kind to the disks.\n" * 7)

    async with prompt(SMALL, trace) as (c, page):
        c.app.editor = editor
        await c.press("j", "j", "j", "e")
        await c.until(lambda: page.note, "edited")
        await c.settled()
        assert "AGENTS.md: +154 characters, about +40 tokens in the next run" in c.screen_text()
        c.app.local = False
        await c.press("e")
        await c.until(lambda: "on another computer" in c.screen_text(), "refused")
        assert file.read_text().count("kind") == 7


async def test_the_command_line_and_the_palette_know_it() -> None:
    async with console(client=FakeTrace().install(FakeClient())) as c:
        await c.press("escape", "colon")
        await c.pilot.press(*"prompt")
        await c.press("enter")
        await c.until(lambda: isinstance(c.app.page, PromptScreen), "opened")
        await c.press("question_mark")
        assert "Prompt (view 2)" in c.screen_text() or c.app.screen.is_modal


async def test_a_resize_keeps_everything_readable() -> None:
    async with prompt(LARGE) as (c, page):
        await c.press("enter")
        await read(c, page)
        await c.pilot.resize_terminal(*SMALL)
        await c.settled()
        assert "row 0: the gross revenue" in c.screen_text() and page.section == "text"
        await c.press("escape")
        assert "grew by 29,629" in c.screen_text()


async def test_what_is_typed_in_one_go_after_a_prompts_key_is_its_text() -> None:
    """Over a slow line `:runs` and enter come at once: none of it is lost or a command."""
    async with prompt() as (c, page):
        for key in ("slash", *"edit", "enter"):
            c.app.simulate_key(key)
        await c.until(lambda: c.client.asked("trace.search"), "searched")
        assert c.client.asked("trace.search")[0]["text"] == "edit" and not page.note
        await c.until(lambda: c.app.screen is page, "closed")
        for key in ("colon", *"runs", "enter"):
            c.app.simulate_key(key)
        await c.until(lambda: c.app.page.view == "runs", "opened")
