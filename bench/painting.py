"""What painting costs the console, in CPU time of this process.

    python -m bench.painting

A console on a scripted engine at 120x40: a streamed token from the event to the screen; a token in
the store alone; a long paste; a key into the palette.
"""

from __future__ import annotations

import asyncio
import random
import sys
from time import process_time

from textual.command import CommandInput
from textual.events import Key, Paste

from bench.figures import Figure, show
from claw_tui.palette import LONGEST
from claw_tui.store.store import Store
from tests.tui.fake_client import Script
from tests.tui.support import LARGE, Console, console

TOKENS = 5_000
ROUNDS = 5


async def figures() -> list[Figure]:
    async with console(LARGE) as c:
        streamed = [await _stream(c) for _ in range(ROUNDS)]
        pastes = [await _paste(c, text) for text in ("words " * 8_000, "line\n" * 10_000)]
        keys = [await _keys(c)]
    return [
        Figure("a streamed token, event to screen, CPU", "ms", streamed, 2.0),
        Figure("a token into the store, CPU", "ms", [_stored() for _ in range(ROUNDS)], 0.05),
        Figure("a paste of 50,000 characters, CPU", "ms", pastes, 300),
        Figure("a key into the palette, CPU", "ms", keys, 3.0),
    ]


async def _stream(c: Console) -> float:
    s = Script()
    c.client.trace(*s.opening("long"))
    await c.settled()
    began = process_time()
    for n in range(100):
        c.client.trace(*[s("text", callId="c1", delta=f"t{n * 50 + i} ") for i in range(50)])
        await c.pilot.pause(0.01)
    await c.settled()
    return (process_time() - began) * 1000 / TOKENS


def _stored() -> float:
    store, s = Store(), Script()
    for event in s.opening("long"):
        store.apply("trace", event)
    events = [s("text", callId="c1", delta="word ") for _ in range(20_000)]
    began = process_time()
    for event in events:
        store.apply("trace", event)
    return (process_time() - began) * 1000 / len(events)


async def _paste(c: Console, text: str) -> float:
    composer = c.app.main.composer
    composer.text = ""
    began = process_time()
    await composer._on_paste(Paste(text))
    used = (process_time() - began) * 1000
    composer.text = ""
    return used


async def _keys(c: Console) -> float:
    chance, many = random.Random(5), 2_000
    await c.press("ctrl+p")
    began = process_time()
    for _ in range(many):
        char = chr(chance.randrange(33, 127))
        c.app.post_message(Key(char, char))
    field = c.app.screen.query_one(CommandInput)
    await c.until(lambda: len(field.value) == LONGEST)
    await c.until(c.app._message_queue.empty)
    await c.pilot.pause()
    return (process_time() - began) * 1000 / many


def main() -> int:
    return show(asyncio.run(figures()))


if __name__ == "__main__":
    sys.exit(main())
