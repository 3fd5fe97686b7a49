"""Crash replay: a busy life is recorded step by step, then the power fails at many places in it.

A draw cuts the record at a seeded place, takes a legal remainder of the unsynced writes, and
starts an engine on it. What the outside had been told before the cut must hold afterwards.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.soak.checks import check
from bench.soak.hand import Hand
from bench.soak.power import PlatterModel, write
from bench.soak.report import Failure
from bench.soak.truth import Sent, Truth, Writer, configure
from claw_engine.engine import Engine
from claw_engine.errors import ClawError
from claw_engine.protocol.frames import EventFrame
from claw_engine.world import RealClock, RealIds, World
from tests.support.crash_disk import RecordingDisk, RecordingSpawn, Step, Told
from tests.support.engines import engine_on


@dataclass(slots=True)
class Recording:
    """One life: its steps in order, where it happened, and what was sent."""

    root: Path
    steps: list[Step] = field(default_factory=list)
    truth: Truth = field(default_factory=lambda: Truth(Path("/dev/null")))


async def record(seed: int, messages: int) -> Recording:
    """A life of `messages` messages in three sessions, with one restart in the middle."""
    home = Path(tempfile.mkdtemp(prefix=f"replay-{seed}-"))
    found = Recording(home / "state")
    found.truth = truth = Truth(home / "counter")
    writer, rng = Writer(seed, home / "counter"), random.Random(seed)
    tell = found.steps.append
    configure(found.root)
    try:
        for part in (messages - messages // 2, messages // 2):
            left = part
            world = World(RealClock(), RealIds(), RecordingDisk(tell), RecordingSpawn(tell))
            async with engine_on(found.root, world=world) as engine:
                hand = _TellingHand(engine, truth, rng, tell)
                await hand.connect()
                while left > 0:
                    burst = [writer.next() for _ in range(min(left, rng.randint(1, 4)))]
                    left -= len(burst)
                    await asyncio.gather(*(hand.send(message) for message in burst))
                    if rng.random() < 0.5:
                        await hand.settle()
                await hand.settle()
                await hand.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return found


class _TellingHand(Hand):
    """Puts what it is told into the record, in its place among the steps of the disk."""

    def __init__(
        self, engine: Engine, truth: Truth, rng: random.Random, tell: Callable[[Step], None]
    ) -> None:
        super().__init__(engine.local_client(), truth, rng)
        self._tell = tell

    async def send(self, message: Sent) -> None:
        await super().send(message)
        if message.id in self._truth.acked:
            self._tell(Told("acked", message.id))

    def _take(self, frame: EventFrame) -> None:
        super()._take(frame)
        payload: Any = frame.payload
        if frame.event == "exec.approval.requested":
            self._tell(Told("asked", f"{payload['id']} {payload['request']['command']}"))
        elif frame.event == "trace" and payload["kind"] == "run.ended":
            self._tell(Told(f"ended:{payload['data']['status']}", payload["runId"]))


def seen_before(recording: Recording, cut: int, counter: Path) -> Truth:
    """What the client knew when the power failed."""
    truth = Truth(counter)
    truth.sent = dict(recording.truth.sent)
    truth.allowed = set(recording.truth.allowed)
    for step in recording.steps[:cut]:
        match step:
            case Told("acked", message_id):
                truth.acked.add(message_id)
            case Told("asked", what):
                approval_id, _, command = what.partition(" ")
                truth.note_asked(approval_id, command)
            case Told("ended:done", run_id):
                truth.told_end[run_id] = "done"
    return truth


async def draw(
    recording: Recording, seed: int, keep: Path | None = None, *, strict_folders: bool = False
) -> list[Failure]:
    """One power cut and what does not hold after it."""
    rng = random.Random(seed)
    cut = rng.randrange(1, len(recording.steps) + 1)
    model = PlatterModel(strict_folders=strict_folders)
    for step in recording.steps[:cut]:
        model.take(step)
    home = Path(tempfile.mkdtemp(prefix=f"power-{seed}-"))
    truth = seen_before(recording, cut, home / "counter")
    where = f"power cut at step {cut} of {len(recording.steps)}"
    try:
        configure(home / "state")
        write(model.survivors(rng), recording.root, home / "state")
        if keep is not None:
            shutil.copytree(home / "state", keep / f"power-{seed}-before", dirs_exist_ok=True)
        wrong = await _recovered(home / "state", truth, rng)
        if wrong and keep is not None:
            shutil.copytree(home / "state", keep / f"power-{seed}-after", dirs_exist_ok=True)
        elif keep is not None:
            shutil.rmtree(keep / f"power-{seed}-before")
        return [Failure(seed, where, what) for what in wrong]
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _recovered(state: Path, truth: Truth, rng: random.Random) -> list[str]:
    """Start, come to rest (denying everything), use every session once, stop, and look."""
    try:
        async with engine_on(state) as engine:
            hand = Hand(engine.local_client(), truth, rng, deny=1.0)
            await hand.connect()
            if not await hand.settle():
                return ["the engine died by itself"]
            for session in {message.session for message in truth.sent.values()}:
                await hand.call("chat.history", {"sessionKey": session, "limit": 1})
            await hand.close()
    except TimeoutError:
        return ["the engine did not come to rest"]
    except (ClawError, OSError) as error:
        return [f"the engine does not start any more: {error!r}"]
    return check(state, truth)


@dataclass(slots=True)
class Outcome:
    counts: Counter[str]
    failures: list[Failure]


async def run(
    seeds: list[int], *, recordings: int = 5, messages: int = 16, keep: Path | None = None,
    strict_folders: bool = False, progress: Callable[[int, list[Failure]], None] | None = None,
) -> Outcome:  # fmt: skip
    """A draw for each seed, spread over `recordings` lives."""
    lives = [await record(seed, messages) for seed in range(recordings)]
    out = Outcome(Counter(recordings=len(lives), steps=sum(len(r.steps) for r in lives)), [])
    for seed in seeds:
        found = await draw(lives[seed % len(lives)], seed, keep, strict_folders=strict_folders)
        out.counts["power cuts"] += 1
        out.failures += found
        if progress is not None:
            progress(seed, found)
    return out
