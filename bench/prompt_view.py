"""What view 2 costs the console, in CPU time of this process.

    python -m bench.prompt_view [PARTS]       (600 unless told: a request of 200,000 tokens)

A console on a scripted engine whose answers are made beforehand, so only the console is measured.
Opening: from the key `2` until all is on the screen; the first one loads the view's modules. Then a
move in the list, a long part opened, two calls compared. `hold`: the longest that the loop was
held in one piece while comparing, in CPU time. The promise (issue "See the prompt"): 150 ms for
opening, 20 ms for any one piece.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from bench.figures import Figure, show
from claw_tui.screens.prompt import PromptScreen
from tests.tui.fake_client import FakeClient
from tests.tui.fake_trace import RUN, SAFETY, FakePart, FakeTrace, Recorded
from tests.tui.support import LARGE, SMALL, Console, console

PARTS = 600
TOKENS = 200_000
RUNS = 5
OPEN_MS, HOLD_MS = 150.0, 20.0


def large(parts: int, changed: bool) -> tuple[FakePart, ...]:
    """A request of 200,000 tokens: talk and results, each 20th part changed."""
    each = TOKENS // parts
    made = [SAFETY]
    for n in range(parts - 1):
        kind = ("user", "assistant", "tool_call", "tool_result")[n % 4]
        words = f"part {n}: " + "what was said and done in this place, at length. " * (each // 11)
        if changed and n % 20 == 0:
            words += "\nand one line more"
        made.append(FakePart(f"e{n}:0", kind, kind, f"e{n}", words, each))
    return tuple(made)


def answers(parts: int) -> FakeClient:
    """Ready answers: making them is the engine's work."""
    two = [Recorded(RUN, 1, large(parts, False)), Recorded(RUN, 2, large(parts, True), at=5000)]
    trace = FakeTrace(*two)
    client = trace.install(FakeClient())
    client.answers["trace.call"] = dict(trace.call({}))
    pairs = dict(trace.compare({"a": two[0].id, "b": two[1].id}))
    rows = pairs["parts"]
    assert isinstance(rows, list)
    filler = "a longer line of a text that differs, as they are found in workspace files " * 3
    for row in rows:
        if row["state"] == "changed":
            row["lines"] = [{"op": sign, "text": filler} for sign in " -+ " * 6][:26]
    client.answers["trace.compare"] = pairs
    return client


async def measured(size: tuple[int, int], parts: int) -> dict[str, list[float]]:
    """CPU ms by what was done."""
    found: dict[str, list[float]] = {"first": [], "open": [], "move": [], "part": [],
                                     "compare": [], "hold": []}  # fmt: skip
    async with console(size, client=answers(parts)) as c:
        await c.press("escape")
        for run in range(RUNS + 1):
            used = await _cpu(c, "2", lambda: _open(c) is not None)
            found["first" if run == 0 else "open"].append(used)
            page = _open(c)
            assert page is not None
            await _once(c, page, found)
            await c.press("1")
    return found


async def _once(c: Console, page: PromptScreen, found: dict[str, list[float]]) -> None:
    def compared() -> bool:
        return page.section == "compare" and page.built and bool(page.lines)

    await c.press("g")
    for place in range(1, 4):
        found["move"].append(await _cpu(c, "j", lambda at=place: page.cursor == at))
    found["part"].append(await _cpu(c, "enter", lambda: bool(page.text.pieces)))
    for what in ("compare", "hold"):
        await c.press("escape", "equals_sign")
        await c.until(lambda: page.calls, "calls")
        if what == "compare":
            found[what].append(await _cpu(c, "enter", compared))
        else:
            watch = asyncio.create_task(_longest(compared))
            c.app.simulate_key("enter")
            found[what].append(await watch)
        page.comparison, page.lines = None, []
    await c.press("escape")


def _open(c: Console) -> PromptScreen | None:
    page = c.app.page
    return page if isinstance(page, PromptScreen) and page.request is not None else None


async def _cpu(c: Console, key: str, done: Callable[[], bool]) -> float:
    await asyncio.sleep(0.08)  # the painter's 20 Hz: the last act is over
    begun = time.process_time()
    c.app.simulate_key(key)
    while not done():  # noqa: ASYNC110 - nobody tells of it but the screen
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.08)
    return (time.process_time() - begun) * 1000


async def _longest(done: Callable[[], bool]) -> float:
    """The most CPU time between two turns of the loop, ms."""
    most, last = 0.0, time.thread_time()
    while not done():
        await asyncio.sleep(0)
        now = time.thread_time()
        most, last = max(most, now - last), now
    return most * 1000


async def figures(parts: int = PARTS) -> list[Figure]:
    out = []
    for size in (SMALL, LARGE):
        name = f"{size[0]}x{size[1]}"
        found = await measured(size, parts)
        out += [
            Figure(f"{name}: view 2 of {parts} parts, first time, CPU", "ms", found["first"]),
            Figure(f"{name}: view 2 of {parts} parts opens, CPU", "ms", found["open"], OPEN_MS),
            Figure(f"{name}: a move in it, CPU", "ms", [statistics.median(found["move"])]),
            Figure(f"{name}: a part opens, CPU", "ms", found["part"]),
            Figure(f"{name}: two calls compared, CPU", "ms", found["compare"]),
            Figure(f"{name}: longest piece while comparing", "ms", found["hold"], HOLD_MS),
        ]
    return out


def main(argv: Sequence[str]) -> int:
    return show(asyncio.run(figures(int(argv[0]) if argv else PARTS)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
