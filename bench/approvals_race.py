"""Two consoles and the command line answer the same request at the same moment, many times.

    python -m bench.approvals_race [ROUNDS]        (1,000 unless told; 25 in the test suite)

A real engine, its real door: two console connections, `claw approvals`' own client from a thread,
and a fourth connection that asks. Each round: who asks gets one decision, exactly one of the three
was accepted, the two others are told by whom it was decided, both consoles see that decision and
no other, and the journal has it once. Ends with 1 when any round broke a promise.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct, field

from bench.processes import load
from claw_engine.client.base import ClientError
from claw_engine.client.remote import RemoteClient
from claw_engine.client.sync import CallFailed, SyncClient
from claw_engine.engine import Engine
from claw_engine.paths import StateDir

ROUNDS = 1000
SEED = 20260226
DECISIONS = ("allow-once", "deny")
PLAIN_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


class Said(Struct, frozen=True):
    """What one approver wanted, and what the engine answered."""

    who: str
    wanted: str
    accepted: bool
    words: str


class Outcome(Struct):
    """What became of all rounds."""

    rounds: int = 0
    won: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    """Every promise that was not kept, with its round."""
    seconds: float = 0.0


class Console:
    """A console's connection: answers, and sees how requests end."""

    def __init__(self, state: Path) -> None:
        self.client = RemoteClient(state)
        self.seen: dict[str, list[str | None]] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self.client.connect()
        self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        await self.client.close()
        if self._task is not None:
            await self._task

    async def _follow(self) -> None:
        async for frame in self.client.events():
            payload = frame.payload
            if frame.event == "exec.approval.requested" and isinstance(payload, Mapping):
                self.seen.setdefault(str(payload["id"]), [])
            elif frame.event == "exec.approval.resolved" and isinstance(payload, Mapping):
                decision = payload["decision"]
                ends = self.seen.setdefault(str(payload["id"]), [])
                ends.append(decision if isinstance(decision, str) else None)
            self._news.set()

    async def until(self, approval_id: str, ends: int) -> None:
        """Wait until this request was seen, and seen to end so many times."""
        async with asyncio.timeout(30):
            while len(self.seen.get(approval_id, ())) < ends or approval_id not in self.seen:
                self._news.clear()
                await self._news.wait()

    async def answer(self, who: str, approval_id: str, wanted: str) -> Said:
        params = {"id": approval_id, "decision": wanted, "reason": who}
        try:
            await self.client.call("exec.approval.resolve", params)
        except ClientError as error:
            return Said(who, wanted, False, error.title)
        return Said(who, wanted, True, "")


def from_the_shell(client: SyncClient, approval_id: str, wanted: str) -> Said:
    """As `claw approvals approve|deny ID` does it, on a thread of its own."""
    try:
        params = {"id": approval_id, "decision": wanted, "reason": "cli"}
        client.call("exec.approval.resolve", params)
    except CallFailed as error:
        return Said("cli", wanted, False, error.title)
    return Said("cli", wanted, True, "")


async def race(state: Path, rounds: int, seed: int = SEED) -> Outcome:
    """All rounds against one engine on `state`."""
    outcome, chance, began = Outcome(), random.Random(seed), time.monotonic()
    async with Engine(state, env={**PLAIN_ENV, "HOME": str(state)}):
        consoles = [Console(state), Console(state)]
        asker = RemoteClient(state, client_id="gateway-client", mode="backend")
        for console in consoles:
            await console.open()
        await asker.connect()
        with ThreadPoolExecutor(1) as shell:
            loop = asyncio.get_running_loop()
            cli = SyncClient(state)
            await loop.run_in_executor(shell, cli.__enter__)
            try:
                for number in range(rounds):
                    await _round(number, chance, consoles, asker, cli, shell, outcome)
            finally:
                await loop.run_in_executor(shell, cli.__exit__, None, None, None)
        for console in consoles:
            await console.close()
        await asker.close()
    _compare_journal(StateDir(state).approvals_journal, consoles[0].seen, outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


async def _round(
    number: int,
    chance: random.Random,
    consoles: Sequence[Console],
    asker: RemoteClient,
    cli: SyncClient,
    shell: ThreadPoolExecutor,
    outcome: Outcome,
) -> None:
    one = f"race-{number}"
    ask = {"id": one, "command": f"echo {number}", "timeoutMs": 60_000}
    asked = asyncio.create_task(asker.call("exec.approval.request", ask, timeout=60))
    await asyncio.gather(*(console.until(one, 0) for console in consoles))
    wanted = [chance.choice(DECISIONS) for _ in range(3)]
    loop = asyncio.get_running_loop()
    answers: list[Callable[[], Awaitable[Said]]] = [
        lambda: loop.run_in_executor(shell, from_the_shell, cli, one, wanted[0]),
        lambda: consoles[0].answer("console 1", one, wanted[1]),
        lambda: consoles[1].answer("console 2", one, wanted[2]),
    ]
    chance.shuffle(answers)  # who is called first says little about whose frame is read first
    said = await asyncio.gather(*(answer() for answer in answers))
    told = await asked
    await asyncio.gather(*(console.until(one, 1) for console in consoles))
    outcome.rounds += 1
    for sentence in _broken(one, said, told, consoles):
        outcome.broken.append(f"round {number}: {sentence}")
    outcome.won.update(answer.who for answer in said if answer.accepted)


def _broken(
    one: str, said: Sequence[Said], told: Mapping[str, object], consoles: Sequence[Console]
) -> list[str]:
    accepted = [answer for answer in said if answer.accepted]
    if len(accepted) != 1:
        return [f"{len(accepted)} answers were accepted"]
    winner, out = accepted[0], []
    if told.get("decision") != winner.wanted:
        out.append(f"who asked was told {told.get('decision')}, decided was {winner.wanted}")
    out += [
        f"{answer.who} was told: {answer.words}"
        for answer in said
        if not answer.accepted and f"({winner.wanted})" not in answer.words
    ]
    for index, console in enumerate(consoles, 1):
        if console.seen[one] != [winner.wanted]:
            out.append(f"console {index} saw {console.seen[one]}")
    return out


def _compare_journal(path: Path, seen: Mapping[str, list[str | None]], outcome: Outcome) -> None:
    """What is on disk: each request once, its end once, the same as was seen."""
    ends: dict[str, list[object]] = {}
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if entry["type"] != "requested":
            ends.setdefault(entry["id"], []).append(entry["decision"])
    for one, decisions in seen.items():
        if ends.get(one) != decisions:
            outcome.broken.append(f"{one}: seen {decisions}, on disk {ends.get(one)}")


def main(argv: Sequence[str]) -> int:
    rounds = int(argv[0]) if argv else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        outcome = asyncio.run(race(Path(folder), rounds))
    won = ", ".join(f"{who} {count}" for who, count in sorted(outcome.won.items()))
    print(f"{outcome.rounds} rounds in {outcome.seconds:.0f} s, {load()}; seed {SEED}")
    print(f"answers that won: {won}")
    print(f"promises broken: {len(outcome.broken)}")
    for sentence in outcome.broken[:20]:
        print(f"  {sentence}")
    return 1 if outcome.broken or outcome.rounds != rounds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
