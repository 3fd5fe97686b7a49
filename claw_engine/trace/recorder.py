"""Takes down what runs do, while they do it: a list on the loop, a batch at a time to the disk.

On the way of a message it only notes references to what is immutable anyway; hashing, packing and
writing happen on the database's thread. Whatever goes wrong ends the recording, never a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from claw_engine.config.sections.approvals import TraceSettings
from claw_engine.errors import ClawError
from claw_engine.probes import Found, Health
from claw_engine.protocol.trace import TraceEvent
from claw_engine.storage.errors import StateDiskError
from claw_engine.trace.noted import Begun, Change, Ended, Item, Sizes, overlap
from claw_engine.trace.ports import Call, CallEnd, PieceLike
from claw_engine.world import Timer, World

if TYPE_CHECKING:
    import sqlite3

    from claw_engine.storage.sqlite import Database
    from claw_engine.trace.writer import Writer

log = logging.getLogger("claw.trace")

T = TypeVar("T")

BATCH_S = 0.5
"""Seconds that what was told may wait for company."""
QUEUE_MOST = 100_000
"""Steps that may wait for a slow disk before the recording ends."""
SESSIONS_MOST = 16
SWEEP_S = 3600.0
FIRST_SWEEP_S = 60.0
SWEEP_AFTER = 64
"""Batches between two looks at the size."""


class Tell(Protocol):
    """Puts a notice on the board."""

    def __call__(
        self, code: str, level: str, title: str, *, text: str = "", hint: str = "",
        sticky: bool = False,
    ) -> None: ...  # fmt: skip


class TraceOff(ClawError):
    """There is no trace store to ask."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(f"The trace cannot be read: {why.rstrip('.')}.", hint=hint)


AGAIN = "It begins again with the next start, or when a setting of claw.trace changes."
SWITCH = "claw config set claw.trace.enabled true switches it on."


class Recorder:
    """Loop thread only. Use: `begin`, …, `await close()`; `path` is the database."""

    def __init__(self, world: World, path: Path, tell: Tell, settings: TraceSettings) -> None:
        self._world = world
        self._path = path
        self._tell = tell
        self._settings = settings
        self._queue: list[Item] = []
        self._last: OrderedDict[str, Sequence[PieceLike]] = OrderedDict()
        self._writer: Writer | None = None
        self._db: Database | None = None
        self._lock = asyncio.Lock()
        self._timer: Timer | None = None
        self._sweeping: Timer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._batches = 0
        self._closed = False
        self.stopped: str | None = None
        """Why nothing is recorded although it should be."""
        self._said = False
        """Whether the notice stands that nothing is recorded."""

    @property
    def recording(self) -> bool:
        """Whether what is told now is kept."""
        return self._settings.enabled and self.stopped is None and not self._closed

    @property
    def idle(self) -> str | None:
        """Why nothing is recorded now, None while it is."""
        if self.recording:
            return None
        if not self._settings.enabled:
            return "claw.trace.enabled is off"
        return self.stopped or "the engine is stopping"

    # ── what runs tell ──────────────────────────────────────────────────────────────────────

    def note(self, event: TraceEvent) -> None:
        """A step of a run."""
        if self.recording:
            self._add(event)

    def begin_call(
        self, call: Call, body: bytes, pieces: Sequence[PieceLike], sizes: Sizes
    ) -> None:
        """A call goes out: `body` is the data of `pieces`, one after the other."""
        if not self.recording:
            return
        last = self._last.pop(call.session_key, ())
        prefix, suffix = overlap(last, pieces) if last else (0, 0)
        self._last[call.session_key] = pieces
        if len(self._last) > SESSIONS_MOST:
            self._last.popitem(last=False)
        self._add(Begun(call, body, Change(pieces, prefix, suffix, sizes)))

    def end_call(self, run_id: str, call_id: str, end: CallEnd) -> None:
        """How a call ended."""
        if self.recording:
            self._add(Ended(run_id, call_id, end))

    def _add(self, item: Item) -> None:
        self._queue.append(item)
        if self._timer is None:
            self._timer = self._world.clock.call_later(BATCH_S, self._due)
        elif len(self._queue) > QUEUE_MOST:
            self._stop("the disk does not keep up")

    def _due(self) -> None:
        self._timer = None
        self._spawn(self.flush())

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ── life ────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Open the file ahead of the first batch. Never raises."""
        if not self.recording:
            return
        async with self._lock:
            if self._closed:  # while this waited for the lock
                return
            with contextlib.suppress(ClawError):
                db = await self._opened()
                if self._said:
                    await self._try(db)
        self._sweep_later(FIRST_SWEEP_S)

    def configure(self, settings: TraceSettings) -> None:
        """Put a new configuration in force; a change begins anew what a failure ended."""
        if settings == self._settings:
            return
        self._settings = settings
        self.stopped = None
        if settings.enabled:
            self._spawn(self.open())
        else:
            self._withdraw()

    async def flush(self) -> None:
        """Write what is there. Never raises."""
        async with self._lock:
            while self._queue and self.stopped is None:
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                batch, self._queue = self._queue, []
                await self._write(batch)
            self._batches += 1
            if self._batches % SWEEP_AFTER == 0:
                await self._sweep()

    async def close(self) -> None:
        """Write the rest and close. Never raises."""
        await self.flush()
        self._closed = True
        for timer in (self._timer, self._sweeping):
            if timer is not None:
                timer.cancel()
        async with self._lock:
            if self._db is not None:
                await self._db.shut()
                self._db = None

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` on the database's thread, after what was told so far is in it.

        Raises TraceOff, StateDiskError.
        """
        await self.flush()
        async with self._lock:
            if self._closed:
                raise TraceOff("the engine is stopping")
            if self._db is None and not self._path.exists():
                if self.stopped is not None:
                    raise TraceOff(self.stopped, AGAIN)
                on = self._settings.enabled
                raise TraceOff(
                    "nothing was recorded yet", "The next run will be." if on else SWITCH
                )
            return await (await self._opened()).run(work)

    async def look(self) -> list[Found]:
        """For `claw doctor`: whether runs are recorded, and which SQLite there is."""
        from claw_engine.storage.sqlite_driver import look  # only for whoever asks

        settings, room = self._settings, f"in {self._path}"
        if self.stopped is not None:
            row = Found("recording", Health.FAIL, f"Runs are not recorded: {self.stopped}.", AGAIN)
        elif not settings.enabled:
            row = Found("recording", Health.OK, "claw.trace.enabled is off: nothing is recorded.")
        else:
            kept = f"{settings.max_age_days} days and {settings.max_mb} MB at most"
            row = Found("recording", Health.OK, f"Runs are recorded {room}, {kept}.")
        return [row, *await look(self._world)]

    async def _opened(self) -> Database:
        """The open file; under the lock. Raises ClawError."""
        if self._db is not None:
            return self._db
        # Only now: SQLite and the thread of a connection are no part of a start.
        try:
            await asyncio.to_thread(_load)
        except ImportError as error:
            self._stop(f"this Python has no SQLite ({error})")
            raise TraceOff(str(error), AGAIN) from error
        from claw_engine.storage.sqlite import open_database
        from claw_engine.trace.schema import NewerStore, prepare

        try:
            self._db = await open_database(self._path, prepare)
        except NewerStore as error:
            self._stop(str(error))
            raise TraceOff(str(error), AGAIN) from error
        except ClawError as error:
            self._stop(error.title.rstrip("."))
            raise
        if self._db.kept is not None:
            self._tell_damaged(self._db.kept)
        return self._db

    async def _try(self, db: Database) -> None:
        """Whether the file can be written again: what ended the recording may be mended."""
        from claw_engine.storage.sqlite import transaction
        from claw_engine.trace.schema import touch

        try:
            await db.run(lambda connection: transaction(connection, touch))
        except StateDiskError as error:
            self._stop(error.title.rstrip("."))
        else:
            self._withdraw()

    async def _write(self, batch: list[Item]) -> None:
        """Never raises: a fault of ours must not reach a run either."""
        try:
            db = await self._opened()
            await self._store(db, batch)
            self._withdraw()
        except ClawError as error:
            self._stop(error.title.rstrip("."))
        except OSError as error:
            self._stop(str(error))
        except Exception as error:
            log.exception("trace: a batch could not be written")
            self._stop(f"{type(error).__name__}: {error}")

    async def _store(self, db: Database, batch: list[Item]) -> None:
        # Loaded with the file, off the loop.
        from claw_engine.storage.sqlite import DatabaseDamaged, put_aside
        from claw_engine.trace.writer import Writer

        writer = self._writer = self._writer or Writer()
        try:
            await db.run(lambda connection: writer.write(connection, batch))
        except DatabaseDamaged as error:
            log.error("trace: %s", error.sentence())
            await db.shut()
            self._db = self._writer = None
            kept = await asyncio.to_thread(put_aside, self._path)
            self._tell_damaged(kept)

    def _tell_damaged(self, kept: Path) -> None:
        log.warning("trace: the store was damaged and is begun anew; kept as %s", kept)
        self._tell(
            "trace-damaged", "warn", "The trace store was damaged; a new one was begun.",
            hint=f"The old file is kept as {kept}.", sticky=True,
        )  # fmt: skip

    def _stop(self, why: str) -> None:
        if self.stopped is not None:
            return
        self.stopped = why
        self._said = True
        self._queue.clear()
        self._last.clear()
        log.warning("trace stopped: %s", why)
        self._tell(
            "trace-stopped", "warn", "Runs are no longer recorded.", text=f"{why}.",
            hint=f"Runs themselves go on. {AGAIN}",
            sticky=True,
        )  # fmt: skip

    def _withdraw(self) -> None:
        """Recording works, or is not wanted."""
        if self._said:
            self._said = False
            self._tell("trace-stopped", "clear", "")

    # ── retention ───────────────────────────────────────────────────────────────────────────

    def _sweep_later(self, seconds: float) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._sweeping = self._world.clock.call_later(seconds, self._sweep_due)

    def _sweep_due(self) -> None:
        self._sweep_later(SWEEP_S)

        async def work() -> None:
            async with self._lock:
                await self._sweep()

        self._spawn(work())

    async def _sweep(self) -> None:
        """Throw away what is too old or too much; under the lock."""
        if self._db is None or not self.recording:
            return
        from claw_engine.trace.retention import DAY_MS, Limits, sweep  # once an hour

        settings = self._settings
        limits = Limits(
            self._world.clock.now_ms() - settings.max_age_days * DAY_MS, settings.max_mb * 1_000_000
        )
        try:
            swept = await self._db.run(lambda db: sweep(db, limits))
        except StateDiskError as error:
            self._stop(error.title.rstrip("."))
            return
        if swept.runs:
            if self._writer is not None:
                self._writer.forget()  # what it remembers may have gone with them
            log.info("trace: %d runs thrown away, %d bytes", swept.runs, swept.bytes)


def _load() -> None:
    """What the first batch needs. Blocking: not on the loop."""
    import claw_engine.storage.sqlite
    import claw_engine.trace.writer  # noqa: F401 - loaded for later
