"""Runs one argv to its end: output, time limit, abort, and nothing of it left behind unsaid.

Knows processes, not approvals: whoever calls has decided that this may run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from claw_engine.runs import AbortReason, AbortScope
from claw_engine.tools.exec.env import CALL_ID, RUN_ID
from claw_engine.tools.exec.output import Cleaner, Live, Tail
from claw_engine.tools.exec.processes import Mark, ProcessId, descendants, look
from claw_engine.tools.exec.stop import Stopped, left_running, stop
from claw_engine.world import Clock, Process, World

READ_BYTES = 64 * 1024
DRAIN_S = 0.5
"""How long output is awaited after the command's own end, while a child still holds the pipe."""

_WATCH_S = (0.1, 0.4, 1.5, 5.0)
"""Pauses between looks at the children; the last one repeats."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ran:
    """How it ended. `returncode` is negative for a signal; `duration_ms` from start to end.

    `output` is the kept tail, `left_out` the characters before it. `left_running` and `escaped`
    name processes (pid and name) that still run.
    """

    returncode: int
    output: str
    left_out: int
    duration_ms: int
    timed_out: bool = False
    aborted: AbortReason | None = None
    killed: int = 0
    left_running: tuple[str, ...] = ()
    escaped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """What to run and for whom. `timeout_s` None means no limit of its own."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    run_id: str
    call_id: str
    timeout_s: float | None


async def run(world: World, job: Job, scope: AbortScope, emit: Callable[[str], None]) -> Ran:
    """Run `job` to its end; on a time limit, abort or cancellation stop all of its processes.

    Raises OSError when it cannot be started, and CancelledError (after the clean-up) when this
    task is cancelled.
    """
    started = world.clock.monotonic()
    process = await _start(world, job)
    mark = _mark(process, job)
    tail, live = Tail(), Live(world.clock, emit)
    known: set[ProcessId] = set()
    stopped: Stopped | None = None
    timed_out = False
    async with _tasks() as spawn_task:
        pump = spawn_task(_pump(process, tail, live))
        ended = spawn_task(_ended(process))
        limit = spawn_task(_limit(world.clock, job.timeout_s))
        abort = spawn_task(scope.wait())
        spawn_task(_watch(world.clock, mark, known))
        try:
            await asyncio.wait({ended, limit, abort}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                drained = spawn_task(world.clock.sleep(DRAIN_S))
                waits = {pump, drained, limit, abort}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            else:
                timed_out = limit.done() and not abort.done()
                stopped = await shielded(stop(process, mark, known, world.clock))
        except asyncio.CancelledError:
            await shielded(_finish(process, mark, known, world.clock))
            live.close()
            raise
        if stopped is not None and not pump.done():
            drained = spawn_task(world.clock.sleep(DRAIN_S))
            await asyncio.wait({pump, drained}, return_when=asyncio.FIRST_COMPLETED)
        process.close_output()
        returncode = await process.wait()
    live.close()
    ran = Ran(
        returncode,
        tail.text(),
        tail.left_out,
        round((world.clock.monotonic() - started) * 1000),
        timed_out,
    )
    if stopped is None:
        behind = await left_running(mark)
        return replace(ran, left_running=tuple(f"{seen.id.pid} ({seen.name})" for seen in behind))
    reason = None if timed_out else scope.reason
    return replace(ran, aborted=reason, killed=stopped.killed, escaped=stopped.escaped)


async def _start(world: World, job: Job) -> Process:
    """Start the child; a cancellation meanwhile does not lose it."""
    env = {**job.env, RUN_ID: job.run_id, CALL_ID: job.call_id, "PWD": job.cwd}
    starting = asyncio.ensure_future(world.spawn.start(job.argv, cwd=job.cwd, env=env))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await shielded(_abandon(starting, job, world.clock))
        raise


def _mark(process: Process, job: Job) -> Mark:
    seen = look(process.pid)
    leader = seen.id if seen is not None else ProcessId(process.pid, 0)
    return Mark(leader, job.run_id, job.call_id)


async def _pump(process: Process, tail: Tail, live: Live) -> None:
    cleaner = Cleaner()
    while data := await process.read(READ_BYTES):
        text = cleaner.feed(data)
        tail.append(text)
        live.append(text)
        # A flood never makes `read` wait: let everyone else have a turn between two pieces.
        await asyncio.sleep(0)
    rest = cleaner.feed(b"", final=True)
    tail.append(rest)
    live.append(rest)


async def _ended(process: Process) -> None:
    """Wait for the command itself.

    asyncio (3.11) reports an exit only after the output pipe is closed, which a background child
    can hold open for days; a pidfd tells it at once where there is one.
    """
    waits = [
        asyncio.ensure_future(process.wait()),
        asyncio.ensure_future(_pidfd_readable(process.pid)),
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _pidfd_readable(pid: int) -> int:
    """Return when the process ends; never where the system has no pidfd."""
    loop = asyncio.get_running_loop()
    exited = asyncio.Event()
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return 0
    except (OSError, AttributeError):
        await exited.wait()
        return 0
    try:
        loop.add_reader(fd, exited.set)
        await exited.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
    return 0


async def _limit(clock: Clock, timeout_s: float | None) -> None:
    if timeout_s is None:
        await asyncio.Event().wait()
    else:
        await clock.sleep(timeout_s)


async def _watch(clock: Clock, mark: Mark, known: set[ProcessId]) -> None:
    """Remember descendants while parent links still show them."""
    pauses = iter(_WATCH_S)
    pause = _WATCH_S[-1]
    while True:
        await clock.sleep(next(pauses, pause))
        known.update(seen.id for seen in await asyncio.to_thread(descendants, mark.leader.pid))


async def _finish(process: Process, mark: Mark, known: set[ProcessId], clock: Clock) -> None:
    await stop(process, mark, known, clock)
    process.close_output()
    await process.wait()


async def _abandon(starting: asyncio.Future[Process], job: Job, clock: Clock) -> None:
    process = await starting
    await _finish(process, _mark(process, job), set(), clock)


async def shielded(work: Coroutine[object, object, T]) -> T:
    """Finish `work` although this task may be cancelled meanwhile, then let it be cancelled."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()


Starter = Callable[[Coroutine[object, object, object]], asyncio.Task[object]]


@contextlib.asynccontextmanager
async def _tasks() -> AsyncIterator[Starter]:
    """Helper tasks that do not outlive the block."""
    tasks: list[asyncio.Task[object]] = []

    def start(work: Coroutine[object, object, object]) -> asyncio.Task[object]:
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        tasks.append(task)
        return task

    try:
        yield start
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
