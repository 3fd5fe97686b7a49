"""A started command and its supervision: output, time limit, stopping, and what stays behind.

It lives as long as the command does, whoever waits for it: a run that goes on without it leaves
it in the background. Knows no approvals and no table of commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TypeVar

from msgspec.structs import replace

from claw_engine.runs import AbortReason
from claw_engine.tools.exec import terminal
from claw_engine.tools.exec.env import CALL_ID, RUN_ID
from claw_engine.tools.exec.job import Job, Ran
from claw_engine.tools.exec.output import Cleaner, Live, Tail
from claw_engine.tools.exec.processes import Mark, ProcessId, Seen, descendants, look
from claw_engine.tools.exec.stop import Stopped, left_running, stop
from claw_engine.world import Clock, Process, World

log = logging.getLogger("claw.tools")

READ_BYTES = 64 * 1024
DRAIN_S = 0.5
"""How long output is awaited after the command's own end, while a child still holds the pipe."""

PENDING_CHARS = 30_000
"""Characters kept for the next poll (OpenClaw 2026.2.26)."""

_WATCH_S = (0.1, 0.4, 1.5, 5.0)
"""Pauses between looks at the children; the last one repeats."""

_SIGNALS = frozenset(int(number) for number in signal.valid_signals())

T = TypeVar("T")


class Running:
    """Use: `await start(…)`, then `wait`, `stop`, `follow`."""

    def __init__(
        self,
        world: World,
        job: Job,
        process: Process,
        screen: terminal.Terminal | None,
        emit: Callable[[str], None],
        warning: str = "",
    ) -> None:
        self.job = job
        self.terminal = screen
        self.warning = warning
        self.mark = _mark(process, job)
        self.started_ms = world.clock.now_ms()
        self.last_output_ms = self.started_ms
        self.ended_ms: int | None = None
        self.tail = Tail()
        self._unread = Tail(PENDING_CHARS)
        self._clock = world.clock
        self._spawn = world.spawn
        self._began = world.clock.monotonic()
        self._process = process
        self._live: Live | None = Live(world.clock, emit)
        self._known: set[ProcessId] = set()
        self._stop = asyncio.Event()
        self._reason: AbortReason | None = None
        self._task = asyncio.create_task(self._supervise(), name=f"command:{process.pid}")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ran(self) -> Ran | None:
        """How it ended, None while it runs."""
        return self._task.result() if self._task.done() else None

    async def wait(self) -> Ran:
        """Wait for its end; cancelling the wait does not touch the command."""
        return await asyncio.shield(self._task)

    def stop(self, reason: AbortReason | None = None) -> None:
        """Begin to stop all of its processes; `wait` returns when that is done."""
        if not self._stop.is_set():
            self._reason = reason
            self._stop.set()

    def follow(self, emit: Callable[[str], None] | None) -> None:
        """Hand live output to `emit` from now on, or to nobody."""
        if self._live is not None:
            self._live.close()
        self._live = Live(self._clock, emit) if emit is not None else None

    def on_end(self, call: Callable[[], None]) -> None:
        """Call it when the command has ended, however it did."""
        self._task.add_done_callback(lambda _: call())

    def drain(self) -> tuple[str, int]:
        """Output since the last call, and how many characters of it were dropped before."""
        text, left_out = self._unread.text(), self._unread.left_out
        self._unread = Tail(PENDING_CHARS)
        return text, left_out

    async def write(self, data: bytes) -> None:
        """Hand `data` to its input. Raises OSError when it has none or has closed it."""
        await self._process.write(data)

    def close_input(self) -> None:
        """Let it read the end of its input."""
        self._process.close_input()

    # -- inside --------------------------------------------------------------------------------

    async def _supervise(self) -> Ran:
        process, mark, clock = self._process, self.mark, self._clock
        stopped: Stopped | None = None
        timed_out = False
        async with _tasks() as spawn:
            pump = spawn(self._pump(spawn))
            ended = spawn(_ended(process))
            limit = spawn(_limit(clock, self.job.timeout_s))
            asked = spawn(self._stop.wait())
            spawn(self._watch())
            await asyncio.wait({ended, limit, asked}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                drained = spawn(clock.sleep(DRAIN_S))
                waits = {pump, drained, limit, asked}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            else:
                timed_out = limit.done() and not asked.done()
            if timed_out or asked.done():
                await self._stop_elsewhere()
                spared = mark.leader if self.job.monitor else None
                stopped = await stop(process, mark, self._known, clock, spared)
                drained = spawn(clock.sleep(DRAIN_S))
                await asyncio.wait({pump, drained}, return_when=asyncio.FIRST_COMPLETED)
            process.close_output()
            returncode = _code(await process.wait(), monitor=self.job.monitor)
        if self._live is not None:
            self._live.close()
        ran = Ran(
            returncode,
            self.tail.text(),
            self.tail.left_out,
            round((clock.monotonic() - self._began) * 1000),
            timed_out,
            warning=self.warning,
        )
        behind: tuple[Seen, ...] = ()
        if stopped is None:
            behind = await left_running(mark, clock, monitor=self.job.monitor)
        self.ended_ms = clock.now_ms()
        if stopped is None:
            names = tuple(f"{seen.id.pid} ({seen.name})" for seen in behind)
            return replace(ran, left_running=names)
        return replace(
            ran,
            stopped=not timed_out,
            aborted=None if timed_out else self._reason,
            killed=stopped.killed,
            escaped=stopped.escaped,
        )

    async def _pump(self, spawn: Starter) -> None:
        cleaner = Cleaner()
        while data := await self._process.read(READ_BYTES):
            if self.terminal is not None and (answer := self.terminal.feed(data)):
                # On its own: a program that does not read must not keep us from reading it.
                spawn(self._answer(answer))
            self._take(cleaner.feed(data))
            # A flood never makes `read` wait: let everyone else have a turn between two pieces.
            await asyncio.sleep(0)
        self._take(cleaner.feed(b"", final=True))

    def _take(self, text: str) -> None:
        if not text:
            return
        self.last_output_ms = self._clock.now_ms()
        self.tail.append(text)
        self._unread.append(text)
        if self._live is not None:
            self._live.append(text)

    async def _stop_elsewhere(self) -> None:
        """End what runs in a container: ending the client that started it does not."""
        if not self.job.stop:
            return
        env = {name: value for name, value in self.job.env.items() if not name.startswith("CLAW_")}
        try:
            process = await self._spawn.start(self.job.stop, cwd="/", env=env)
            while await process.read(READ_BYTES):
                pass
            await process.wait()
        except OSError as error:
            log.warning("a command in a container was not stopped: %s", error)

    async def _answer(self, answer: bytes) -> None:
        with contextlib.suppress(OSError):
            await self._process.write(answer)

    async def _watch(self) -> None:
        """Remember descendants while parent links still show them."""
        pauses = iter(_WATCH_S)
        pause = _WATCH_S[-1]
        while True:
            await self._clock.sleep(next(pauses, pause))
            below = await asyncio.to_thread(descendants, self.mark.leader.pid)
            self._known.update(seen.id for seen in below)


async def start(world: World, job: Job, emit: Callable[[str], None]) -> Running:
    """Start `job`; a cancellation meanwhile stops it before it is raised again. Raises OSError."""
    opening = asyncio.ensure_future(_open(world, job, emit))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await shielded(_abandon(opening))
        raise


async def _open(world: World, job: Job, emit: Callable[[str], None]) -> Running:
    env = {**job.env, RUN_ID: job.run_id, CALL_ID: job.call_id, "PWD": job.cwd}
    warning = ""
    if job.terminal:
        try:
            process = await world.spawn.start_on_terminal(
                job.argv, cwd=job.cwd, env=env, columns=terminal.COLUMNS, rows=terminal.ROWS
            )
        except OSError:
            warning = terminal.NO_TERMINAL
        else:
            return Running(world, job, process, terminal.Terminal(), emit)
    stdin = job.stdin or job.terminal
    process = await world.spawn.start(job.argv, cwd=job.cwd, env=env, stdin=stdin)
    return Running(world, job, process, None, emit, warning)


async def _abandon(opening: asyncio.Future[Running]) -> None:
    running = await opening
    running.stop()
    await running.wait()


def _mark(process: Process, job: Job) -> Mark:
    seen = look(process.pid)
    leader = seen.id if seen is not None else ProcessId(process.pid, 0)
    return Mark(leader, job.run_id, job.call_id)


def _code(returncode: int, *, monitor: bool) -> int:
    """A monitor tells the death of its command by signal N as 128 + N."""
    number = returncode - 128
    return -number if monitor and number in _SIGNALS else returncode


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
    tasks: set[asyncio.Task[object]] = set()

    def done(task: asyncio.Task[object]) -> None:
        tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen: a helper that fails only ends its own work

    def start(work: Coroutine[object, object, object]) -> asyncio.Task[object]:
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        tasks.add(task)
        task.add_done_callback(done)
        return task

    try:
        yield start
    finally:
        left = list(tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
