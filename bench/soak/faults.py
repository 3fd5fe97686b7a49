"""Bad disks: one fixed scenario, and each of its writes refused in turn.

The nth write fails with ENOSPC or EIO, once or until the disk is healed, with or without half of
its bytes left behind. Then the disk is well again: the next turn must work, nothing acknowledged
may be missing, every file must be readable, and what was refused must have been said in words.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.soak.checks import check
from bench.soak.hand import Hand
from bench.soak.report import Failure
from bench.soak.truth import Sent, Truth, configure
from claw_engine.engine import Engine
from claw_engine.errors import ClawError
from claw_engine.world import RealClock, RealIds, RealSpawn, World
from tests.support.crash_disk import FailingDisk, FailPlan
from tests.support.engines import PLAIN_ENV

WAYS: tuple[FailPlan, ...] = (
    FailPlan(0, errno.ENOSPC, lasting=True, left=0.5),
    FailPlan(0, errno.ENOSPC, lasting=False),
    FailPlan(0, errno.EIO, lasting=True),
    FailPlan(0, errno.EIO, lasting=False, left=1.0),
    FailPlan(0, errno.EIO, lasting=False, left=0.5, uncuttable=True),
)
"""How a write may fail; `nth` is filled in."""


def way(index: int, nth: int) -> FailPlan:
    """A fresh plan: the kind of failure and the write it hits."""
    like = WAYS[index]
    return FailPlan(nth, like.number, like.lasting, like.left, like.uncuttable)


def scenario(counter: Path) -> tuple[tuple[Sent, ...], ...]:
    """Bursts of messages: words, a counted command, two parallel ones, two sessions."""

    def command(token: str) -> str:
        return f"sh -c 'echo {token} >> {counter}'"

    both = ("tok-0-4-1", "tok-0-4-2")
    return (
        (Sent("tok-0-1", "s0", "think: about tok-0-1"),),
        (
            Sent("tok-0-2", "s0", f"run: {command('tok-0-2')}", ("tok-0-2",)),
            Sent("tok-0-3", "s1", "think: about tok-0-3"),
        ),
        (Sent("tok-0-4", "s1", f"tools: {command(both[0])} || {command(both[1])}", both),),
    )


@dataclass(slots=True)
class Case:
    """What one failing write led to."""

    failed: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    writes: int = 0
    wrong: list[str] = field(default_factory=list)


async def one(plan: FailPlan | None, home: Path) -> Case:
    """The scenario on a disk with that plan; None = a disk without faults."""
    case, truth = Case(), Truth(home / "counter")
    rng = random.Random(1)
    disk = FailingDisk(plan)
    world = World(RealClock(), RealIds(), disk, RealSpawn())
    configure(home / "state")
    try:
        async with _engine(home / "state", world) as engine:
            await _live(engine, truth, rng, disk, case)
    except (ClawError, OSError) as error:
        case.refusals.append(f"start: {error}")
        if not isinstance(error, ClawError):
            case.wrong.append(f"the engine fell over with a bare {error!r}")
    finally:
        disk.close()
    case.failed, case.writes = disk.failed, disk.writes
    if case.failed and not case.refusals:
        case.refusals.append("(nobody was refused anything)")
    disk.heal()
    try:  # the same directory on a disk that is well
        async with _engine(home / "state", None) as engine:
            hand = Hand(engine.local_client(), truth, rng, deny=0.0)
            await hand.connect()
            await hand.settle()
            await _turn_works(hand, truth, "after", case)
            await hand.close()
    except (ClawError, OSError, TimeoutError) as error:
        case.wrong.append(f"after the fault the engine does not start: {error!r}")
    case.wrong += check(home / "state", truth, failures_allowed=True)
    return case


def _engine(state: Path, world: World | None) -> Engine:
    return Engine(state, env={**PLAIN_ENV, "HOME": str(state)}, world=world, drain_s=0.5)


async def _live(
    engine: Engine, truth: Truth, rng: random.Random, disk: FailingDisk, case: Case
) -> None:
    hand = Hand(engine.local_client(), truth, rng, deny=0.0)
    try:
        await hand.connect()
        for burst in scenario(truth.counter):
            await asyncio.gather(*(hand.send(message) for message in burst))
            await hand.settle()
        disk.heal()
        await hand.decide_again()
        await hand.settle()
        await _turn_works(hand, truth, "healed", case)
    except TimeoutError:
        disk.heal()
        case.wrong.append("the engine did not come to rest on the bad disk")
    finally:
        await hand.close()
    ends = [end["error"]["title"] for end in hand.ended.values() if end.get("error")]
    case.refusals += hand.refused + ends
    case.wrong += [f"untyped: {text}" for text in case.refusals if "failed inside" in text]


async def _turn_works(hand: Hand, truth: Truth, when: str, case: Case) -> None:
    """A turn in each session is answered."""
    for session in ("s0", "s1"):
        number = {"healed": 8, "after": 9}[when]
        message = Sent(f"tok-0-{number}-{session[1]}", session, f"think: {when} in {session}")
        await hand.send(message)
        if message.id not in truth.acked:
            case.wrong.append(f"{when}: a message is refused: {hand.refused[-1:]}")
            continue
        end = await hand.end_of(message.id)
        if end["status"] != "done":
            case.wrong.append(f"{when}: a turn in {session} ended as {end}")


async def count_writes() -> int:
    """How many writes the scenario makes on a good disk."""
    home = Path(tempfile.mkdtemp(prefix="fault-count-"))
    try:
        case = await one(None, home)
        if case.wrong:
            raise AssertionError(f"the scenario fails on a good disk: {case.wrong}")
        return case.writes
    finally:
        shutil.rmtree(home, ignore_errors=True)


@dataclass(slots=True)
class Outcome:
    counts: Counter[str]
    failures: list[Failure]


def cases(writes: int) -> Sequence[tuple[int, int]]:
    """Every write in every way: (index of the way, nth)."""
    return [(kind, nth) for nth, kind in itertools.product(range(1, writes + 1), range(len(WAYS)))]


async def run(
    wanted: Sequence[tuple[int, int]], *, keep: Path | None = None,
    progress: Callable[[int, list[Failure]], None] | None = None,
) -> Outcome:  # fmt: skip
    """The scenario once for each wanted case; a failure's seed is `nth * 10 + way`."""
    out = Outcome(Counter(), [])
    for kind, nth in wanted:
        seed = nth * 10 + kind
        home = Path(tempfile.mkdtemp(prefix=f"fault-{seed}-"))
        try:
            plan = way(kind, nth)
            case = await one(plan, home)
            name = errno.errorcode[plan.number]
            where = f"{name} at write {nth} ({', '.join(case.failed[:3])})"
            found = [Failure(seed, where, what) for what in case.wrong]
            if found and keep is not None:
                shutil.copytree(
                    home, keep / f"fault-{seed}", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.sock"),
                )  # fmt: skip
        finally:
            shutil.rmtree(home, ignore_errors=True)
        out.counts["bad disks"] += 1
        out.counts["writes refused"] += len(case.failed)
        out.failures += found
        if progress is not None:
            progress(seed, found)
    return out
