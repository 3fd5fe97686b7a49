"""Floods of input: keys into the palette, a paste without end."""

from __future__ import annotations

import random

from textual.command import CommandInput
from textual.events import Key, Paste
from textual.widgets import Input

from claw_tui.palette import LONGEST, ClawPalette
from claw_tui.screens.ask import Prompt
from claw_tui.widgets.composer import LONGEST_PASTE, TOO_LONG
from tests.tui.support import console


async def test_five_thousand_keys_into_the_palette_fill_its_field_and_no_more() -> None:
    chance = random.Random(5)
    async with console() as c:
        await c.press("ctrl+p")
        assert isinstance(c.app.screen, ClawPalette)
        for _ in range(5000):
            char = chr(chance.randrange(33, 127))
            c.app.post_message(Key(char, char))
        field = c.app.screen.query_one(CommandInput)
        await c.until(lambda: len(field.value) == LONGEST)
        await c.until(c.app._message_queue.empty)
        await c.pilot.pause()
        await c.press("escape")
        await c.until(lambda: c.app.screen is c.app.main)


async def test_the_palette_still_finds() -> None:
    async with console() as c:
        await c.press("ctrl+p", *"claw-light")
        await c.until(lambda: "theme claw-light" in c.screen_text())


async def test_leaving_does_not_wait_for_keys_that_were_typed_before() -> None:
    async with console() as c:
        for _ in range(5000):
            c.app.post_message(Key("x", "x"))
        c.app.exit("stop")
        await c.until(lambda: not c.app.is_running or c.app._message_queue.empty())
        assert len(c.app.main.composer.text) < 5000


async def test_a_paste_without_end_is_refused_in_a_sentence_and_a_long_one_is_taken_whole() -> None:
    async with console() as c:
        composer = c.app.main.composer
        composer.post_message(Paste("x" * (LONGEST_PASTE + 1)))
        await c.settled()
        assert composer.text == "" and TOO_LONG in c.screen_text()
        for text in ("words and words " * 3200, "line\n" * 10_000, "x" * 50_000):
            composer.text = ""
            await composer._on_paste(Paste(text))
            assert composer.text == text


async def test_a_prompt_takes_only_so_much() -> None:
    async with console() as c:
        await c.press("escape", ":")
        assert isinstance(c.app.screen, Prompt)
        c.app.post_message(Paste("y" * 100_000))
        await c.settled()
        assert len(c.app.screen.query_one(Input).value) <= 2000
