"""What a long approval queue costs the console, in CPU time of this process.

    python -m bench.approvals_queue [REQUESTS]       (500 unless told)

A console on a scripted engine. Opening: from the key F2 until the frame with the card has left the
writer; the page was made ready when the first request came. A second: what a tick of the countdown
costs with the queue open. A move: one `j`. Each is measured with 1 and with all requests waiting,
so that what grows is seen. The promise: opening 500 takes 50 ms at most; a second and a move cost
the same whatever the length.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence

from bench.figures import Figure, show
from tests.tui.fake_client import FakeClient, record
from tests.tui.support import LARGE, SMALL, Console, console

REQUESTS = 500
RUNS = 5
TICKS = 40
OPEN_MS = 50.0


async def with_queue(size: tuple[int, int], requests: int) -> tuple[list[float], float, float]:
    """CPU ms of each opening; then the medians of a second and of a move, in ms."""
    client = FakeClient()
    listed = [record(f"id-{n:04}", f"du -sh /volume1/folder-{n}", seconds=3000 + n)
              for n in range(requests)]  # fmt: skip
    client.answers["exec.approval.list"] = {"approvals": listed}
    async with console(size, client=client) as c:
        await c.until(lambda: c.app._queue is not None and c.app._queue.is_mounted, "made ready")
        opens = [await _opening(c) for _ in range(RUNS)]
        await c.press("f2")
        ticks, moves = [], []
        for _ in range(TICKS):
            ticks.append(await _cpu(c, c.app._tick))
            moves.append(await _cpu(c, lambda: c.app.simulate_key("j")))
        return opens, statistics.median(ticks), statistics.median(moves)


async def _opening(c: Console) -> float:
    c.clock.advance(1)
    begun = time.process_time()
    c.app.simulate_key("f2")
    while c.app.keeper.state.written is None:  # noqa: ASYNC110 - nobody tells of it but the screen
        await asyncio.sleep(0.002)
    used = (time.process_time() - begun) * 1000
    await c.press("1")
    return used


async def _cpu(c: Console, act: object) -> float:
    """CPU ms of one act until the screen shows it. The waiting in between costs next to nothing."""
    assert callable(act)
    c.clock.advance(1)
    await asyncio.sleep(0.06)  # the painter's 20 Hz: the last act is over
    begun = time.process_time()
    act()
    await asyncio.sleep(0.12)
    return (time.process_time() - begun) * 1000


async def figures(requests: int = REQUESTS) -> list[Figure]:
    out = []
    for size in (SMALL, LARGE):
        name = f"{size[0]}x{size[1]}"
        opens_1, second_1, move_1 = await with_queue(size, 1)
        opens, second_n, move_n = await with_queue(size, requests)
        out += [
            Figure(f"{name}: queue of 1 opens, CPU", "ms", opens_1),
            Figure(f"{name}: queue of {requests} opens, CPU", "ms", opens, OPEN_MS),
            Figure(f"{name}: a second, 1 waits, CPU", "ms", [second_1]),
            Figure(f"{name}: a second, {requests} wait, CPU", "ms", [second_n]),
            Figure(f"{name}: a move, 1 waits, CPU", "ms", [move_1]),
            Figure(f"{name}: a move, {requests} wait, CPU", "ms", [move_n]),
        ]
    return out


def main(argv: Sequence[str]) -> int:
    return show(asyncio.run(figures(int(argv[0]) if argv else REQUESTS)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
