"""Finds and stops what a dead engine left running.

Only called by the engine that holds the state directory's lock. A process is stopped when the
list names it exactly, or when its environment carries the ids of a listed command or of a run that
was cut off. What only looks related is reported, never touched; so are we and what we run in.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Collection, Sequence

from msgspec import Struct

from claw_engine.tools.exec.processes import (
    ProcessId,
    Seen,
    alive,
    look,
    marks_of,
    of_user,
    signal_one,
)
from claw_engine.tools.exec.roster import Listed
from claw_engine.world import Clock

GRACE_S = 0.3
_POLL_S = 0.02
_ROUNDS = 5
"""How often everything is looked at again: a fork may slip between two looks."""


class Found(Struct, frozen=True):
    """Processes to stop, and those that cannot be matched safely."""

    ours: tuple[Seen, ...]
    unsure: tuple[Seen, ...]


class Reaped(Struct, frozen=True):
    """What became of them; each is "pid (name)"."""

    stopped: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    survived: tuple[str, ...] = ()


def find(listed: Sequence[Listed], run_ids: Collection[str]) -> Found:
    """Look at every process of this user. Reads /proc; runs in a thread."""
    leaders = {row.mark.leader: row for row in listed}
    calls = {(row.mark.run_id, row.mark.call_id) for row in listed}
    # A listed leader that lives holds its number: whoever is in its session or group is its own.
    living = {leader.pid for leader in leaders if leader.started and alive(leader)}
    gone = {leader.pid: leader for leader in leaders if look(leader.pid) is None}
    ourselves = _ourselves()
    ours: list[Seen] = []
    unsure: list[Seen] = []
    for seen in of_user():
        run_id, call_id = marks_of(seen.id.pid)
        known = run_id is not None and (run_id in run_ids or (run_id, call_id or "") in calls)
        member = bool({seen.id.pid, seen.session, seen.group} & living)
        if seen.id in ourselves:
            continue
        if known or member:
            ours.append(seen)
        elif run_id is not None or _maybe(seen, gone):
            unsure.append(seen)
    return Found(tuple(ours), tuple(unsure))


async def reap(listed: Sequence[Listed], run_ids: Collection[str], clock: Clock) -> Reaped:
    """Stop them: TERM, 300 ms, KILL."""
    found = await asyncio.to_thread(find, listed, run_ids)
    hit: dict[ProcessId, str] = {}
    left, sig = list(found.ours), signal.SIGTERM

    def look_again() -> list[Seen]:
        # What was ours stays ours, although its dead leader no longer proves it.
        now = {seen.id: seen for seen in find(listed, run_ids).ours}
        now |= {seen.id: seen for id_ in hit if (seen := alive(id_)) is not None}
        return list(now.values())

    for _ in range(_ROUNDS):
        if not left:
            break
        hit |= {seen.id: _named(seen) for seen in left}
        await asyncio.to_thread(_signal_all, left, sig)
        deadline = clock.monotonic() + GRACE_S
        while left and clock.monotonic() < deadline:
            await clock.sleep(_POLL_S)
            left = await asyncio.to_thread(look_again)
        sig = signal.SIGKILL
    survived = tuple(_named(seen) for seen in left)
    stopped = tuple(name for name in hit.values() if name not in survived)
    return Reaped(stopped, tuple(_named(seen) for seen in found.unsure), survived)


def _signal_all(targets: Sequence[Seen], sig: int) -> None:
    for seen in targets:
        signal_one(seen.id, sig, alive)


def _maybe(seen: Seen, gone: dict[int, ProcessId]) -> bool:
    """In the session or group of a listed command whose own process has ended."""
    leader = gone.get(seen.session) or gone.get(seen.group)
    return leader is not None and leader.started <= seen.id.started


def _ourselves() -> set[ProcessId]:
    """This process and all it runs in: the engine may have been started from an agent's shell."""
    found: set[ProcessId] = set()
    pid = os.getpid()
    while pid > 1 and (seen := look(pid)) is not None and seen.id not in found:
        found.add(seen.id)
        pid = seen.parent
    return found


def _named(seen: Seen) -> str:
    return f"{seen.id.pid} ({seen.name})"
