"""Stops a tool call's processes: TERM, 300 ms, KILL, and what is left is named.

Reaches the process group, the session, and every process of ours that carries the call's ids, so
that `setsid`, `nohup` and a double fork do not escape. One that cleared its environment and left
the session is reported, not hunted.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable

from msgspec import Struct

from claw_engine.tools.exec.processes import (
    Mark,
    ProcessId,
    Seen,
    alive,
    belongs,
    descendants,
    members,
    readable,
    signal_one,
)
from claw_engine.world import Clock, Process

GRACE_S = 0.3
_POLL_S = 0.02
_ROUNDS = 5
"""How often the table of processes is read again after KILL: a fork may slip between two looks."""


class Stopped(Struct, frozen=True):
    """`killed` processes got KILL after ignoring TERM; `escaped` still run (pid and name)."""

    killed: int
    escaped: tuple[str, ...]


async def stop(
    process: Process,
    mark: Mark,
    known: Iterable[ProcessId],
    clock: Clock,
    spared: ProcessId | None = None,
) -> Stopped:
    """Stop every process of the call; `known` are descendants seen while it ran.

    `spared` gets no TERM: it would end at once and take the command with it, which then had no
    time to tidy up.
    """
    below = await asyncio.to_thread(descendants, mark.leader.pid)
    seen_before = {*known, *(seen.id for seen in below)}
    await _signal_all(process, mark, signal.SIGTERM, spared)
    if await _gone_within(mark, GRACE_S, clock):
        return Stopped(0, await asyncio.to_thread(_survivors, mark, seen_before))
    killed = 0
    for _ in range(_ROUNDS):
        hit = await _signal_all(process, mark, signal.SIGKILL)
        killed = max(killed, hit)
        if await _gone_within(mark, GRACE_S, clock):
            break
    return Stopped(killed, await asyncio.to_thread(_survivors, mark, seen_before))


async def left_running(mark: Mark, clock: Clock, *, monitor: bool) -> tuple[Seen, ...]:
    """Processes of the call that outlive its command.

    With a `monitor` the kernel ends all that the command left with its own process namespace,
    a moment after the monitor itself: what is only dying is not called left running.
    """
    if monitor:
        await _gone_within(mark, GRACE_S, clock)
    found = await asyncio.to_thread(members, mark)
    return tuple(seen for seen in found if seen.id != mark.leader)


async def _signal_all(
    process: Process, mark: Mark, sig: signal.Signals, spared: ProcessId | None = None
) -> int:
    found = await asyncio.to_thread(members, mark)
    if spared is not None and len(found) > 1:
        for seen in found:
            if seen.id != spared:
                await asyncio.to_thread(signal_one, seen.id, sig, lambda id_: belongs(mark, id_))
        return len(found)
    if any(seen.group == mark.leader.pid for seen in found) or not readable():
        # A group with a live member still has its number; without /proc the group is all we know.
        process.signal_group(sig)
    for seen in found:
        if seen.group != mark.leader.pid:
            await asyncio.to_thread(signal_one, seen.id, sig, lambda id_: belongs(mark, id_))
    return len(found)


async def _gone_within(mark: Mark, seconds: float, clock: Clock) -> bool:
    deadline = clock.monotonic() + seconds
    left = await asyncio.to_thread(members, mark)
    while left:
        if clock.monotonic() >= deadline:
            return False
        await clock.sleep(_POLL_S)
        # Those that were seen are looked at alone; the whole table is read once they are gone.
        left = await asyncio.to_thread(_still, left) or await asyncio.to_thread(members, mark)
    return True


def _still(processes: Iterable[Seen]) -> list[Seen]:
    return [seen for seen in processes if alive(seen.id) is not None]


def _survivors(mark: Mark, known: Iterable[ProcessId]) -> tuple[str, ...]:
    still = (alive(process) for process in known if process != mark.leader)
    return tuple(f"{seen.id.pid} ({seen.name})" for seen in still if seen is not None)
