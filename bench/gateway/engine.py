"""`claw gateway run` whose event loop writes down how long each of its turns took.

    python -m bench.gateway.engine TURNS.json gateway run …

A turn is the time between two looks at the sockets: nobody is answered meanwhile. Turns of more
than 10 ms go into the file at the end as [monotonic second at its end, wall ms, CPU ms of the
loop's thread]; what the machine takes away is in the first and not in the second.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import sys
import time
from pathlib import Path
from typing import Any

WORTH_MS = 10.0


class Watched(selectors.DefaultSelector):  # type: ignore[valid-type, misc]  # differs by system
    """Notes what happens between two calls."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[tuple[float, float, float]] = []
        self._woke = time.monotonic()
        self._cpu = time.thread_time()

    def select(self, timeout: float | None = None) -> Any:  # the system's own list
        now, cpu = time.monotonic(), time.thread_time()
        wall_ms = (now - self._woke) * 1000
        if wall_ms > WORTH_MS:
            self.turns.append((now, wall_ms, (cpu - self._cpu) * 1000))
        found = super().select(timeout)
        self._woke, self._cpu = time.monotonic(), time.thread_time()
        return found


def main(where: Path, argv: list[str]) -> None:
    watched = Watched()

    class Policy(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            return asyncio.SelectorEventLoop(watched)

    asyncio.set_event_loop_policy(Policy())
    from claw_engine.cli.__main__ import main as claw

    try:
        code = claw(argv)
    finally:
        where.write_text(json.dumps(watched.turns))
    raise SystemExit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
