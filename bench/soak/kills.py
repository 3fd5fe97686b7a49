"""The kill harness: engines that die at seeded points, and a client that remembers.

A seed is one directory and a chain of lives on it. Each life works until its plan kills it; some
are killed again while they recover. After every kill an engine without a plan starts, comes to
rest and stops, and the directory is held against the client's own list.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.soak.checks import check
from bench.soak.hand import Hand
from bench.soak.nursery import Broken, Life, Nursery, nursery
from bench.soak.report import Failure
from bench.soak.truth import Truth, Writer, configure
from claw_engine.client.base import ConnectionLost
from claw_engine.client.door import NoEngine
from claw_engine.client.remote import RemoteClient
from tests.support.crash_disk import KillPlan

KILLS_PER_SEED = 4
WORK_S = 10.0
"""Seconds after which a life whose plan never came true is killed all the same."""

POINTS: tuple[tuple[str, int], ...] = (
    # seen from outside: the parent kills
    ("out:ack", 5), ("out:asked", 4), ("out:decided", 4), ("out:event", 120), ("out:ended", 4),
    # inside the journal: before, torn, written but not fsynced, fsynced but not acknowledged
    ("append:journal:before", 8), ("append:journal:half", 8), ("append:journal:written", 8),
    ("append:journal:synced", 8),
    # inside a transcript
    ("append:transcript:before", 8), ("append:transcript:half", 8),
    ("append:transcript:written", 8), ("append:transcript:synced", 8),
    # the file of approvals
    ("append:requests:half", 6), ("append:requests:written", 6), ("append:requests:synced", 6),
    # between temporary file, rename and fsync of the folder
    ("replace:index:half", 3), ("replace:index:tmp", 3), ("replace:index:renamed", 3),
    ("replace:index:done", 3),
    # the index's side journal
    ("append:side:half", 4), ("append:side:written", 4), ("append:side:synced", 4),
    ("truncate:side:before", 3), ("truncate:side:done", 3),
    # around a tool's process
    ("spawn:exec:before", 2), ("spawn:exec:after", 3),
)  # fmt: skip
"""Where lives end, and the highest count at which they may."""

RECOVERY_POINTS: tuple[tuple[str, int], ...] = (
    ("replace:journal:half", 1), ("replace:journal:tmp", 1), ("replace:journal:renamed", 1),
    ("replace:journal:done", 1), ("append:transcript:half", 2), ("append:transcript:synced", 2),
    ("append:journal:half", 2), ("append:journal:synced", 2), ("append:requests:half", 1),
    ("append:requests:synced", 1), ("replace:index:*", 2), ("append:side:*", 3),
    ("replace:aside:*", 1), ("truncate:*", 2), ("*", 10),
)  # fmt: skip
"""Where a life may end again while it mends what the last one left."""


@dataclass(slots=True)
class Outcome:
    """What one seed gave."""

    seed: int
    counts: Counter[str]
    failures: list[Failure]


class _Chain:
    """One seed's lives."""

    def __init__(self, seed: int, home: Path, nest: Nursery, kills: int) -> None:
        self._seed = seed
        self._rng = random.Random(seed)
        self._state = home / "state"
        configure(self._state)
        self._nest = nest
        self._kills = kills
        self._truth = Truth(home / "counter")
        self._writer = Writer(seed, home / "counter")
        self.counts: Counter[str] = Counter()
        self.failures: list[Failure] = []

    async def run(self) -> None:
        for number in range(self._kills):
            point = POINTS[(self._seed * self._kills + number) % len(POINTS)]
            plan = self._plan(point)
            where = f"{plan.pattern}@{plan.nth}"
            await self._work(plan)
            while self._rng.random() < 0.35:
                again = self._plan(self._rng.choice(RECOVERY_POINTS))
                where += f" then {again.pattern}@{again.nth}"
                if not await self._die_again(again):
                    break
            wrong = await self._rest()
            if wrong:
                self.failures += [Failure(self._seed, where, what) for what in wrong]
                return  # what follows would only repeat it

    def _plan(self, point: tuple[str, int]) -> KillPlan:
        pattern, most = point
        return KillPlan(pattern, self._rng.randint(1, most), self._rng.random())

    async def _work(self, plan: KillPlan) -> None:
        outside = plan.pattern.startswith("out:")
        life = await self._nest.start(self._state, None if outside else plan)
        if life.ready:
            hand = self._hand(life, plan)
            try:
                async with asyncio.timeout(WORK_S):
                    await hand.connect()
                    await self._talk(hand)
                if not hand.lost.is_set():
                    self.counts["kill:at rest"] += 1
            except (ConnectionLost, NoEngine):
                pass
            except TimeoutError:
                self.counts["kill:after a long wait"] += 1
            life.kill()
            await life.end()
            await hand.close()
        self._count(life, plan.pattern)

    async def _talk(self, hand: Hand) -> None:
        """Send in bursts until the life ends, at most until nothing new is learned."""
        for _ in range(3):
            burst = [self._writer.next() for _ in range(self._rng.randint(1, 4))]
            sends = [asyncio.create_task(hand.send(message)) for message in burst]
            await asyncio.gather(*sends)
            if self._rng.random() < 0.7 and not await hand.settle():
                return
            if hand.lost.is_set():
                return
        await hand.settle()

    async def _die_again(self, plan: KillPlan) -> bool:
        """Start with a plan for the recovery; whether it came true."""
        life = await self._nest.start(self._state, plan)
        if life.ready:
            hand = self._hand(life, plan)
            try:
                async with asyncio.timeout(WORK_S):
                    await hand.connect()
                    await hand.settle()
            except (ConnectionLost, NoEngine, TimeoutError):
                pass
            died = hand.lost.is_set()
            life.kill()
            await life.end()
            await hand.close()
        else:
            died = True
        self._count(life, "recovery")
        return died

    def _count(self, life: Life, point: str) -> None:
        self.counts["kills"] += 1
        self.counts[f"kill:{point}"] += 1
        if life.code != -9:
            self.failures.append(
                Failure(self._seed, point, f"the engine ended with {life.code}, not by our kill")
            )

    async def _rest(self) -> list[str]:
        """An engine without a plan comes to rest and stops; what does not hold then."""
        life = await self._nest.start(self._state, None)
        if not life.ready:
            return [f"the engine does not start any more (exit {life.code})"]
        before = dict(self._truth.asked)
        hand = self._hand(life, None)
        try:
            await hand.connect()
            wrong = [
                f"approval {record['id']} of a dead engine can still be decided"
                for record in (await hand.call("exec.approval.list", {}))["approvals"]
                if record["id"] in before
            ]
            if not await hand.settle():
                wrong.append("the engine died by itself")
            for session in {message.session for message in self._truth.sent.values()}:
                await hand.call("chat.history", {"sessionKey": session, "limit": 1})
            await hand.call("engine.stop", {"when": "now"})
            if (code := await life.end()) != 0:
                wrong.append(f"the engine stopped with {code}")
        except (ConnectionLost, NoEngine, TimeoutError) as error:
            wrong = [f"the engine did not come to rest: {error!r}"]
            life.kill()
            await life.end()
        finally:
            await hand.close()
        self.counts["checks"] += 1
        self.counts["acknowledged"] = len(self._truth.acked)
        mute = self.counts["kill:recovery"] > 0
        return wrong + check(self._state, self._truth, speechless=mute)

    def _hand(self, life: Life, plan: KillPlan | None) -> Hand:
        def watch(moment: str) -> None:
            if plan is not None and plan.hits(f"out:{moment}"):
                life.kill()

        client = RemoteClient(self._state, mode="ui")
        return Hand(client, self._truth, self._rng, watch=watch)


async def run_seed(seed: int, nest: Nursery, keep: Path | None, kills: int) -> Outcome:
    """One chain. With failures its directory is kept below `keep`."""
    home = Path(tempfile.mkdtemp(prefix=f"soak-{seed}-"))
    chain = _Chain(seed, home, nest, kills)
    try:
        await chain.run()
    except Broken as error:
        chain.failures.append(Failure(seed, "kill", str(error)))
    finally:
        if chain.failures and keep is not None:
            shutil.copytree(home, keep / f"kill-{seed}", dirs_exist_ok=True, ignore=_sockets)
        shutil.rmtree(home, ignore_errors=True)
    return Outcome(seed, chain.counts, chain.failures)


def _sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name.endswith(".sock")]


async def run(
    seeds: list[int], *, jobs: int = 2, keep: Path | None = None, kills: int = KILLS_PER_SEED,
    enough: int | None = None, progress: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:  # fmt: skip
    """Every seed, `jobs` at a time, until `enough` kills were made; outcomes in order of end."""
    waiting = list(reversed(seeds))
    done: list[Outcome] = []
    log = Path(os.devnull) if keep is None else keep / "stderr.log"

    async def work() -> None:
        async with nursery(log) as nest:
            while waiting:
                if enough is not None and sum(o.counts["kills"] for o in done) >= enough:
                    return
                outcome = await run_seed(waiting.pop(), nest, keep, kills)
                done.append(outcome)
                progress(outcome)

    async with asyncio.TaskGroup() as group:
        for _ in range(jobs):
            group.create_task(work())
    return done
