"""CPU of accounting on the loop, a call, and of the token estimate: `python -m bench.usage`.

CPU time, the least and the median of many; the ledger's own thread is not counted.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from claw_engine.agent.context.tokens import estimate
from claw_engine.config.sections.budgets import Budget, BudgetsSettings
from claw_engine.messages import Usage
from claw_engine.usage.calibration import Calibration
from claw_engine.usage.ledger import Ledger
from claw_engine.usage.meter import Caller, Meter, Ticket
from claw_engine.usage.price import cost_of
from claw_engine.usage.records import Spent
from claw_engine.world import real_world

CALLS = 2_000
PRICES = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}
TEXTS = Path(__file__).parent.parent / "tests" / "golden" / "tokens" / "checking"


async def calls(root: Path, budgets: BudgetsSettings) -> list[float]:
    """Milliseconds of the loop's thread for each call, as the agent does it."""
    world = real_world()
    meter = Meter(
        world.clock, Ledger(world, root / "usage.db", print), Calibration(world, root / "c.json"),
        lambda: budgets, lambda: "Europe/Berlin", lambda key: key,
    )  # fmt: skip
    caller = Caller("agent:main:main", "s1", "main", "run", "fake/one", PRICES)
    took = []
    for number in range(CALLS):
        begin = time.thread_time()
        if meter.bound:
            await meter.ready("s1")
        ticket = meter.admit(caller, 5_000, lambda level, text: None)
        assert isinstance(ticket, Ticket)
        usage = Usage(5_000, 200, 0, 0, 5_200)
        meter.learn("fake/one", 5_000, 5_000 + number % 50)
        meter.settle(ticket, Spent(
            world.clock.now_ms(), "agent:main:main", "s1", "main", "run", "call-1", "fake/one",
            "turn", "stop", usage, True, cost_of(usage, PRICES),
        ))  # fmt: skip
        took.append((time.thread_time() - begin) * 1000)
        await asyncio.sleep(0.0005)
    begin = time.thread_time()
    await meter.close()
    took.append((time.thread_time() - begin) * 1000)
    return took


def least(work: Callable[[], object], times: int = 15) -> float:
    """The least CPU ms of `times`."""
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best * 1000


def main() -> None:
    """Print what was measured."""
    none = BudgetsSettings()
    both = BudgetsSettings(
        day=Budget(tokens=10**12, cost=1e9), session=Budget(tokens=10**12, cost=1e9)
    )
    for name, budgets in (("no budget", none), ("four budgets", both)):
        with tempfile.TemporaryDirectory() as folder:
            took = sorted(asyncio.run(calls(Path(folder), budgets)))
        print(
            f"accounting, {name}: min {took[0]:.3f} median {statistics.median(took):.3f} "
            f"p99 {took[int(len(took) * 0.99)]:.3f} ms a call on the loop"
        )
    for path in sorted(TEXTS.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        for size in (2_000, 16_000, 1_000_000):
            long = (text * (size // len(text) + 1))[:size]
            print(f"estimate, {path.stem}, {size:>9,} characters: "
                  f"{least(lambda long=long: estimate(long)):.3f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
