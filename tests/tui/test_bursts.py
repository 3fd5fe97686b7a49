"""Keys that come in one go, as a fast typist, a paste by a multiplexer or a script sends them."""

from __future__ import annotations

import asyncio

import pytest
from textual.events import Key

from tests.tui.support import SMALL, Console, console


def burst(c: Console, keys: str | list[str]) -> None:
    """All keys at once, as the terminal's driver hands them over."""
    for key in keys:
        char = key if len(key) == 1 else "\r" if key == "enter" else None
        event = Key(NAMES.get(key, key), char)
        event.set_sender(c.app)
        c.app.post_message(event)


NAMES = {" ": "space", ":": "colon", "?": "question_mark", "-": "minus", "/": "slash"}


@pytest.mark.parametrize("after", ["?", ":", "8", "9", "6"])
async def test_no_page_falls_over_while_the_console_is_taken_apart(after: str) -> None:
    async with console(SMALL) as c:
        await c.press("escape")
        burst(c, ["q", "h", *after])
        await c.until(lambda: c.app._exit, "left")
    assert c.app.return_value == "headless"


@pytest.mark.parametrize("keys", ["?q", "?q?q", "8282", "q?"])
async def test_no_page_falls_over_that_is_closed_before_it_stands(keys: str) -> None:
    async with console(SMALL) as c:
        await c.press("escape")
        burst(c, keys)
        await c.settled()
        assert c.app.is_running and not c.app._exit


@pytest.mark.parametrize("apart", [0, 1, 2, 4, 7, 12])
async def test_an_enter_does_not_overtake_the_command_before_it(apart: int) -> None:
    """`apart`: turns of the loop between the text and the enter."""
    async with console(SMALL) as c:
        await c.press("escape")
        assert c.app.theme != "claw-light"
        burst(c, ":theme claw-light")
        for _ in range(apart):
            await asyncio.sleep(0)
        burst(c, ["enter"])
        await c.until(lambda: c.app.theme == "claw-light" or c.app.store.notices, "obeyed")
        assert c.app.theme == "claw-light"


async def test_keys_in_one_go_edit_and_leave_a_prompt_as_slow_ones_do() -> None:
    async with console(SMALL) as c:
        await c.press("escape")
        burst(c, [*":themes", "backspace", *" claw-light", "escape", *":theme claw-light", "enter"])
        await c.until(lambda: c.app.theme == "claw-light", "the second, without the first")
        await c.settled()
        assert c.app.screen is c.app.main
