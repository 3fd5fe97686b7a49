"""Restarts inside the process: when, not before what runs has had its time, and not too often.

Lives longer than an engine: whoever runs engines one after another owns it. It only decides and
asks the engine to end; the owner starts the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from claw_engine.events import EventBus
from claw_engine.runs import Runs, RunState
from claw_engine.world import Clock, Disk

log = logging.getLogger("claw.engine")

DEFER_S = 30.0
"""Seconds that runs get before a restart begins (gateway digest §2.4)."""
DRAIN_S = 30.0
"""Seconds that they get after nothing new starts."""
COOLDOWN_S = 30.0
"""Seconds from one restart to the next."""
EXPECTED_MS = 1500
"""What clients are told about how long it takes (gateway digest §1.8)."""
DELAY_MS = 2000
"""From a request to the restart, unless it says otherwise."""
MIN_DELAY_MS = 200
"""Whoever asked should have the answer before the connection goes."""
MAX_DELAY_MS = 600_000


async def quiet(
    runs: Runs, bus: EventBus, clock: Clock, seconds: float, hurry: asyncio.Event | None = None
) -> bool:
    """Wait until no run has begun that has not ended, at most so long or until `hurry` is set;
    whether that came about."""
    subscription = bus.subscribe("run", capacity=64)

    async def until() -> None:
        news = aiter(subscription)
        while any(run.state is not RunState.QUEUED for run in runs.active()):
            await anext(news)

    waiting = asyncio.create_task(until(), name="quiet")
    limit = asyncio.create_task(clock.sleep(seconds), name="quiet limit")
    tasks: set[asyncio.Task[object]] = {waiting, limit}
    if hurry is not None:
        tasks.add(asyncio.create_task(hurry.wait(), name="quiet hurry"))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return waiting.done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        subscription.close()


class Restarts:
    """Use: `attach(…)` when an engine is ready, `request(…)`, `detach()` when it ends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: float | None = None
        self._due: float = 0.0
        self._task: asyncio.Task[None] | None = None
        self._end: Callable[[str], None] | None = None
        self._parts: tuple[Runs, EventBus] | None = None

    def attach(self, runs: Runs, bus: EventBus, end: Callable[[str], None]) -> None:
        """`end` asks the engine to stop for a restart, with the reason."""
        self._parts, self._end = (runs, bus), end

    def detach(self) -> None:
        self._parts = self._end = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def request(self, reason: str, delay_ms: int = DELAY_MS) -> dict[str, object]:
        """Restart in `delay_ms`; what OpenClaw answers about it (gateway digest §1.11)."""
        delay_ms = max(MIN_DELAY_MS, min(delay_ms, MAX_DELAY_MS))
        now = self._clock.monotonic()
        cooldown = 0
        if self._last is not None:
            cooldown = max(0, round((self._last + COOLDOWN_S - now) * 1000) - delay_ms)
        coalesced = self._task is not None
        answer: dict[str, object] = {
            "ok": self._end is not None,
            "pid": os.getpid(),
            "signal": "SIGUSR1",
            "delayMs": delay_ms + cooldown,
            "reason": reason,
            "mode": "in-process",
            "coalesced": coalesced,
            "cooldownMsApplied": cooldown,
        }
        if self._end is not None and not coalesced:
            log.info("restart asked for: reason=%s delayMs=%d", reason, delay_ms + cooldown)
            work = self._when_due(reason, (delay_ms + cooldown) / 1000)
            self._task = asyncio.get_running_loop().create_task(work, name="restart")
        return answer

    async def _when_due(self, reason: str, delay_s: float) -> None:
        await self._clock.sleep(delay_s)
        if self._parts is None or self._end is None:
            return
        if not await quiet(*self._parts, self._clock, DEFER_S):
            log.warning("restart: runs go on after %g s; they get %g more", DEFER_S, DRAIN_S)
        if self._end is not None:
            self._last = self._clock.monotonic()
            self._end(reason)


# ── the note from before a restart to after it ──────────────────────────────────────────────────


def leave_note(disk: Disk, path: Path, payload: Mapping[str, object]) -> None:
    """Blocking. Raises OSError."""
    data = json.dumps({"version": 1, "payload": dict(payload)}, ensure_ascii=False)
    disk.replace(path, data.encode() + b"\n", mode=0o600)


def take_note(disk: Disk, path: Path) -> Mapping[str, object] | None:
    """The note, once: it is removed. None when there is none or it cannot be read. Blocking."""
    try:
        value = json.loads(disk.read_bytes(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        value = None
    with contextlib.suppress(OSError):
        disk.unlink(path, missing_ok=True)
    payload = value.get("payload") if isinstance(value, dict) else None
    return payload if isinstance(payload, dict) else None
