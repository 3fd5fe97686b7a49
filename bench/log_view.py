"""What view 9 costs the console, in CPU time of this process.

    python -m bench.log_view [LINES]       (100,000 unless told)

A console on a scripted engine whose answers are kept once made, so only the console is measured.
Opening: from the key `9` until the end of the log is on the screen; the first one loads the view's
modules. Then a screenful up (`pgup`), and one more page of the file read and put before the others
(`g`). The promise (issue "The console"): 50 ms for opening, 15 ms for a page.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from bench.figures import Figure, show
from claw_tui.screens.logs import LogsPage
from tests.tui.fake_client import FakeClient
from tests.tui.fake_log import FakeLog
from tests.tui.support import LARGE, SMALL, Console, console

LINES = 100_000
RUNS = 7
OPEN_MS, PAGE_MS = 50.0, 15.0


def kept(client: FakeClient, method: str) -> None:
    """Answer what was answered before: making it is the engine's work."""
    answer = client.answers[method]
    assert callable(answer)

    @cache
    def once(params: tuple[tuple[str, object], ...]) -> Mapping[str, object]:
        return answer(dict(params))

    client.answers[method] = lambda params: once(tuple(params.items()))


async def measured(size: tuple[int, int], log: FakeLog) -> dict[str, list[float]]:
    """CPU ms by what was done; the first round only makes the answers."""
    found: dict[str, list[float]] = {"first": [], "open": [], "up": [], "page": []}
    client = log.install(FakeClient())
    kept(client, "logs.tail")
    kept(client, "logs.page")
    async with console(size, client=client) as c:
        await c.press("escape")
        for run in range(RUNS + 1):
            used = await _cpu(c, "9", lambda: _open(c) is not None)
            page = _open(c)
            assert page is not None
            up, more = await _back(c, page)
            found["first" if run == 0 else "open"].append(used)
            if run:
                found["up"].append(up)
                found["page"].append(more)
            await c.press("1")
    return found


async def _back(c: Console, page: LogsPage) -> tuple[float, float]:
    up = await _cpu(c, "pageup", lambda: not page.following)
    had = len(page.window.records)
    return up, await _cpu(c, "g", lambda: len(page.window.records) > had)


def _open(c: Console) -> LogsPage | None:
    page = c.app.page
    return page if isinstance(page, LogsPage) and page.loaded else None


async def _cpu(c: Console, key: str, done: Callable[[], bool]) -> float:
    await asyncio.sleep(0.08)  # the painter's 20 Hz: the last act is over
    begun = time.process_time()
    c.app.simulate_key(key)
    while not done():  # noqa: ASYNC110 - nobody tells of it but the screen
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.08)
    return (time.process_time() - begun) * 1000


async def figures(lines: int = LINES) -> list[Figure]:
    out = []
    with tempfile.TemporaryDirectory() as folder:
        log = FakeLog(Path(folder))
        log.many(lines)
        for size in (SMALL, LARGE):
            name = f"{size[0]}x{size[1]}"
            found = await measured(size, log)
            out += [
                Figure(f"{name}: view 9 of {lines:,} lines, first time, CPU", "ms", found["first"]),
                Figure(f"{name}: view 9 of {lines:,} lines opens, CPU", "ms", found["open"],
                       OPEN_MS),
                Figure(f"{name}: a screenful up, CPU", "ms", found["up"], PAGE_MS),
                Figure(f"{name}: a page of the file before it, CPU", "ms", found["page"], PAGE_MS),
            ]  # fmt: skip
    return out


def main(argv: Sequence[str]) -> int:
    return show(asyncio.run(figures(int(argv[0]) if argv else LINES)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
