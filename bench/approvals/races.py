"""Something is swapped between the yes and the start, at every moment there is: never runs the
other thing.

The real exec tool, broker and rules; the swap is made by another thread after a random pause that
covers the engine's last check, the start and the first moments of the command. The same command
without a swap runs each time.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from claw_engine.approvals.model import Decision
from claw_engine.tools.base import ToolContext, ToolResult
from claw_engine.world import RealClock, RealDisk, RealIds, RealSpawn, World
from tests.tools.desk import BASE, Desk

CALIBRATION = 5
"""Unswapped runs that tell how long a run takes from the yes to its end."""


class Racers(Desk):
    """A desk whose runs have names of their own: what is stopped is found by that name, and
    another harness on this machine may be stopping its own."""

    def context(self, call_id: str = "call-1") -> ToolContext:
        return replace(super().context(call_id), run_id=f"race-{os.getpid()}-{id(self)}")


@dataclass(frozen=True, slots=True)
class Swap:
    """A thing to swap: `prepare` makes the first state, `swap` the second, in the folder `job`.

    The command prints A in the first state and B in the second.
    """

    name: str
    command: str
    prepare: Callable[[Desk, Path], None]
    swap: Callable[[Desk, Path], None]


@dataclass
class Found:
    """What came out of the races of one swap."""

    name: str
    races: int
    ran: int = 0
    refused: int = 0
    other: int = 0
    control_missed: int = 0
    window_ms: float = 0.0
    strange: str = ""

    @property
    def holds(self) -> bool:
        return (
            self.other == 0 and self.control_missed == 0 and self.ran + self.refused == self.races
        )

    def line(self) -> str:
        return (
            f"{self.name:22} {self.races} races within {self.window_ms:.0f} ms: {self.ran} ran "
            f"what was approved, {self.refused} did not run, {self.other} ran the other thing; "
            f"control missed {self.control_missed} times {self.strange}"
        ).rstrip()


def run(root: Path, swap: Swap, count: int, seed: int = 1) -> Found:
    """Race `count` times in an empty directory."""
    return asyncio.run(race(root, swap, count, seed))


async def race(root: Path, swap: Swap, count: int, seed: int = 1) -> Found:
    disk = RealDisk()
    root.mkdir(parents=True, exist_ok=True)
    desk = Racers(root.resolve(), World(RealClock(), RealIds(), disk, RealSpawn()))
    await desk.broker.start()
    await desk.rules.load()
    found, rng = Found(swap.name, count), random.Random(seed)
    try:
        window = max([await _control(desk, swap, found) for _ in range(CALIBRATION)])
        found.window_ms = window * 1000
        for _ in range(count):
            result = await _raced(desk, swap, rng.random() * window)
            if "B" in result.text.split():
                found.other += 1
            elif "A" in result.text.split() and not result.is_error:
                found.ran += 1
            elif "hanged since" in result.text or "changed since" in result.text:
                found.refused += 1
            else:
                found.strange = result.text[:200]
            await _control(desk, swap, found)
    finally:
        await desk.table.close()
        await desk.broker.close()
        disk.close()
    return found


async def _control(desk: Desk, swap: Swap, found: Found) -> float:
    """One run without a swap; how long it took, in seconds from the yes."""
    began: list[float] = []
    result = await _run(desk, swap, lambda: began.append(time.monotonic()))
    if result.is_error or "A" not in result.text.split():
        found.control_missed += 1
        found.strange = result.text[:200]
    return time.monotonic() - began[0]


async def _raced(desk: Desk, swap: Swap, pause: float) -> ToolResult:
    job = desk.workspace / "job"

    def strike() -> None:
        time.sleep(pause)
        swap.swap(desk, job)

    thread = threading.Thread(target=strike)
    result = await _run(desk, swap, thread.start)
    await asyncio.to_thread(thread.join)
    return result


async def _run(desk: Desk, swap: Swap, at_yes: Callable[[], object]) -> ToolResult:
    job = desk.workspace / "job"
    for stale in desk.workspace.glob("job*"):
        shutil.rmtree(stale)
    job.mkdir()
    swap.prepare(desk, job)
    task = asyncio.create_task(desk.call("exec", command=swap.command, workdir=str(job)))
    record = await desk.asked()
    at_yes()
    await desk.decide(record, Decision.ALLOW_ONCE)
    asked = asyncio.create_task(desk.asked())
    done, _ = await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
    if asked in done:  # the engine saw it and asks anew
        await desk.decide(asked.result(), Decision.DENY, "changed since")
    else:
        asked.cancel()
    return await task


# What is swapped


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _script(line: str = "") -> Callable[[Desk, Path], None]:
    return lambda desk, job: _write(job / "s", f"{line}echo A\n")


def _python(desk: Desk, job: Path) -> None:
    _write(job / "s", "print('A')\n")


def _rewrite(text: str) -> Callable[[Desk, Path], None]:
    return lambda desk, job: _write(job / "s", text)


def _over(name: str, text: str) -> Callable[[Desk, Path], None]:
    def swap(desk: Desk, job: Path) -> None:
        _write(job / "new", text)
        (job / "new").replace(job / name)

    return swap


def _links(desk: Desk, job: Path) -> None:
    _write(job / "a", "echo A\n")
    _write(job / "b", "echo B\n")
    (job / "s").symlink_to("a")


def _relink(desk: Desk, job: Path) -> None:
    (job / "t").symlink_to("b")
    (job / "t").replace(job / "s")


def _data(desk: Desk, job: Path) -> None:
    (job / "data").write_text("A\n")
    other = job.with_name("job-other")
    other.mkdir()
    (other / "data").write_text("B\n")


def _folder(desk: Desk, job: Path) -> None:
    job.rename(job.with_name("job-aside"))
    job.with_name("job-other").rename(job)


def _path(desk: Desk, job: Path) -> None:
    """`folder` comes before the system's folders on PATH, and is empty."""
    folder = job / "bin"
    folder.mkdir()
    desk.settings = replace(desk.settings, env={**BASE, "PATH": f"{folder}:{BASE['PATH']}"})


def _planted(desk: Desk, job: Path) -> None:
    _write(job / "bin/new", "#!/bin/sh\necho B\n")
    (job / "bin/new").rename(job / "bin/basename")


def _binaries(desk: Desk, job: Path) -> None:
    """Two programs of which one prints A as its argument, the other B."""
    shutil.copy(os.path.realpath("/bin/echo"), job / "tool")
    _write(job / "new", "#!/bin/sh\necho B\n")


def _env(desk: Desk, job: Path) -> None:
    os.environ["MARK"] = "A"
    desk.settings = replace(desk.settings, env={**BASE, "MARK": "A"})


def _env_swap(desk: Desk, job: Path) -> None:
    os.environ["MARK"] = "B"
    values = desk.settings.env
    assert isinstance(values, dict)
    values["MARK"] = "B"


def _rename(source: str, target: str) -> Callable[[Desk, Path], None]:
    def swap(desk: Desk, job: Path) -> None:
        (job / source).replace(job / target)

    return swap


SWAPS = [
    Swap("script rewritten", "sh ./s", _script(), _rewrite("echo B\n")),
    Swap("script replaced", "sh ./s", _script(), _over("s", "echo B\n")),
    Swap("program rewritten", "./s", _script("#!/bin/sh\n"), _rewrite("#!/bin/sh\necho B\n")),
    Swap("program replaced", "./s", _script("#!/bin/sh\n"), _over("s", "#!/bin/sh\necho B\n")),
    Swap("python replaced", "python3 s", _python, _over("s", "print('B')\n")),
    Swap("binary replaced", "./tool A", _binaries, _rename("new", "tool")),
    Swap("symlink", "sh s", _links, _relink),
    Swap("symlink to a program", "./s", _links, _relink),
    Swap("cwd", "cat data", _data, _folder),
    Swap("PATH entry", "basename /x/A", _path, _planted),
    Swap("env", "printenv MARK", _env, _env_swap),
]  # fmt: skip
