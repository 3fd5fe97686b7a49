"""OpenClaw's write locks: files `<target>.lock` that say who writes a store or a transcript.

We take them as OpenClaw 2026.2.26 does (gateway digest §3.6), so that either program can work
beside the other. A lock of ours also says `by`, which lets the next engine tell a dead one's.
Knows no session.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from weakref import WeakValueDictionary

from msgspec import Struct, field

from claw_engine.disk import make_folders
from claw_engine.errors import ClawError
from claw_engine.storage.errors import disk_error
from claw_engine.storage.locks import (
    OURS,
    ForeignLock,
    Identity,
    identity_of,
    is_stale,
    read_foreign,
)
from claw_engine.world import Timer, World

log = logging.getLogger(__name__)

TIMEOUT_S = 10.0
"""Seconds a caller waits for another process (gateway digest §3.6)."""
STEP_S, STEP_MAX_S = 0.05, 1.0
"""The nth retry comes after min(STEP_MAX_S, n * STEP_S) seconds (gateway digest §3.6)."""
MAX_HOLD_S = 300.0
"""Seconds a lock may be held unless its holder asked for more (gateway digest §3.6)."""
WATCH_S = 60.0
"""Seconds between two looks for locks that are held too long (gateway digest §3.6)."""

REMEMBERED_PATHS = 1024
"""Targets whose real path is kept: resolving it costs a look at every folder above."""

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class LockHeld(ClawError):
    """Another process holds a write lock; the same call may work later. `pid` 0 = unknown."""

    retryable = True

    def __init__(self, lock: Path, pid: int, waited_s: float) -> None:
        who = f"process {pid}" if pid else "an unknown process"
        super().__init__(
            f"{lock.name} is held by {who}: waited {waited_s:g} s for it.",
            hint="It is probably another OpenClaw on this directory; stop it or try again.",
            details={"lock": str(lock), "pid": pid},
        )
        self.lock = lock
        self.pid = pid


class Hold(Struct, eq=False):
    """One holder's share of a lock. `lost` is set when the watchdog took the lock away; `saw` is
    what the holder saw when the file was made, None if it did not look."""

    path: Path
    until: float
    on_lost: Callable[[], None] | None = None
    lost: bool = False
    saw: bool | None = None


class _Taken(Struct, eq=False):
    """A lock file of ours: its identity on disk and everybody who shares it."""

    identity: Identity
    holds: set[Hold] = field(default_factory=set)


class FileLocks:
    """The write locks of this process, counted by real path. Loop thread only."""

    def __init__(self, world: World, *, timeout_s: float = TIMEOUT_S) -> None:
        self._world = world
        self._timeout_s = timeout_s
        self._taken: dict[Path, _Taken] = {}
        self._paths: dict[Path, Path] = {}
        self._drops: set[asyncio.Task[None]] = set()
        self._turns: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()
        self._timer: Timer | None = None

    async def acquire(
        self,
        target: Path,
        *,
        timeout_s: float | None = None,
        max_hold_s: float = MAX_HOLD_S,
        on_lost: Callable[[], None] | None = None,
        look: Callable[[], bool] | None = None,
    ) -> Hold:
        """Lock `target` (a store or transcript, not the lock file) or share our own lock on it.

        `look` is called on the disk thread as soon as the lock file is made (its answer is the
        hold's `saw`); it is not called when the lock was ours already. Raises LockHeld after
        `timeout_s` seconds, StateDiskError, and what `look` raises.
        """
        clock = self._world.clock
        wait = self._timeout_s if timeout_s is None else timeout_s
        deadline = clock.monotonic() + wait
        path = self._paths.get(target) or await self._find(target)
        hold = Hold(path, clock.monotonic() + max_hold_s, on_lost)
        taken = self._taken.get(path)
        turn = self._turns.get(path)
        if taken is not None and taken.holds and (turn is None or not turn.locked()):
            taken.holds.add(hold)
            return hold
        async with self._turn(path):
            taken = self._taken.get(path)
            if taken is None:
                identity, hold.saw = await self._take(path, deadline, wait, look)
                taken = self._taken[path] = _Taken(identity)
            taken.holds.add(hold)
        self._watch()
        return hold

    async def release(self, hold: Hold) -> None:
        """Give a share back; the last one removes the file. Safe to call twice."""
        if self._give_back(hold):
            await self._drop(hold.path)

    def let_go(self, hold: Hold) -> None:
        """`release` without waiting for the file to go."""
        if self._give_back(hold):
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:  # torn down without a close: the next engine sweeps the file
                return
            task = loop.create_task(self._drop(hold.path))
            self._drops.add(task)
            task.add_done_callback(self._drops.discard)
            task.add_done_callback(_told)

    def _give_back(self, hold: Hold) -> bool:
        """Whether it was the last share."""
        taken = self._taken.get(hold.path)
        if taken is None or hold not in taken.holds:
            return False
        taken.holds.discard(hold)
        return not taken.holds

    async def _find(self, target: Path) -> Path:
        path = await self._world.disk.run(lock_path, target)
        if len(self._paths) >= REMEMBERED_PATHS:
            self._paths.clear()
        self._paths[target] = path
        return path

    @asynccontextmanager
    async def hold(self, target: Path, *, timeout_s: float | None = None) -> AsyncIterator[Hold]:
        """`acquire` and `release` around a block; the release is never cut short."""
        held = await self.acquire(target, timeout_s=timeout_s)
        try:
            yield held
        finally:
            if self._give_back(held):
                await asyncio.shield(self._drop(held.path))

    async def close(self) -> None:
        """Remove every lock file of ours; never raises."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for path, taken in tuple(self._taken.items()):
            taken.holds.clear()
            await self._drop(path)

    def _turn(self, path: Path) -> asyncio.Lock:
        """The queue in front of a lock file: taking and removing it never overlap."""
        turn = self._turns.get(path)
        if turn is None:
            turn = self._turns[path] = asyncio.Lock()
        return turn

    async def _take(
        self, path: Path, deadline: float, wait: float, look: Callable[[], bool] | None
    ) -> tuple[Identity, bool | None]:
        clock, attempt, run = self._world.clock, 0, self._world.disk.run
        while True:
            found, saw = await run(_take, path, clock.now_ms(), self._world.ids.hex(8), look)
            if isinstance(found, tuple):
                return found, saw
            attempt += 1
            left = deadline - clock.monotonic()
            if left <= 0:
                raise LockHeld(path, found.pid, wait)
            await clock.sleep(min(STEP_MAX_S, STEP_S * attempt, left))

    async def _drop(self, path: Path) -> None:
        async with self._turn(path):
            taken = self._taken.get(path)
            if taken is not None and not taken.holds:
                await self._world.disk.run(_remove, path, taken.identity)
                del self._taken[path]

    def _watch(self) -> None:
        if self._timer is None and self._taken:
            self._timer = self._world.clock.call_later(WATCH_S, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._world.clock.monotonic()
        for path, taken in tuple(self._taken.items()):
            overdue = {hold for hold in taken.holds if hold.until <= now}
            if not overdue:
                continue
            log.warning("write lock held too long, released: lock=%s", path)
            taken.holds -= overdue
            for hold in overdue:
                hold.lost = True
                if hold.on_lost is not None:
                    hold.on_lost()
            if not taken.holds:
                asyncio.ensure_future(self._drop(path)).add_done_callback(_told)
        self._watch()


def lock_path(target: Path) -> Path:
    """The lock file of a target: beside its real path."""
    real = Path(os.path.realpath(target))
    return real.with_name(f"{real.name}.lock")


def sweep(state_dir: Path, now_ms: int) -> list[Path]:
    """Remove what dead processes and earlier engines of ours left; the removed lock files.

    Call it only while the state directory's own lock is held: then no lock `by` us is alive.
    """
    gone: list[Path] = []
    for path in sorted(state_dir.glob("agents/*/sessions/*.lock")):
        if not path.name.endswith((".jsonl.lock", "sessions.json.lock")):
            continue
        lock = read_foreign(path)
        if lock is not None and (lock.ours or is_stale(lock, now_ms)) and _discard(path, lock):
            gone.append(path)
    return gone


def _take(
    path: Path, now_ms: int, token: str, look: Callable[[], bool] | None
) -> tuple[Identity | ForeignLock, bool | None]:
    """`_try`, and what is to be seen once the lock is ours (None: not seen)."""
    found = _try(path, now_ms, token)
    if look is None or not isinstance(found, tuple):
        return found, None
    try:
        return found, look()
    except (OSError, ClawError):  # the lock is there and must be known: look again with it
        return found, None


def _try(path: Path, now_ms: int, token: str) -> Identity | ForeignLock:
    """Make the lock file, or say who has it. Synchronous. Raises StateDiskError."""
    created = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds")
    # As json.dumps(…, indent=2) writes it, which costs more than making the file.
    text = '{\n  "pid": %d,\n  "createdAt": "%s",\n  "by": "%s"\n}'
    data = (text % (os.getpid(), created.replace("+00:00", "Z"), OURS)).encode()
    try:
        for _ in range(2):
            made = _create(path, data, token)
            if made is not None:
                return made
            lock = read_foreign(path)
            if lock is None:  # it went away: try again
                continue
            # Our own pid without a hold of ours: an earlier life with the same number wrote it.
            if lock.pid != os.getpid() and not is_stale(lock, now_ms):
                return lock
            _discard(path, lock)
    except OSError as error:
        raise disk_error(error, path) from error
    return ForeignLock(path, 0, now_ms)


def _create(path: Path, data: bytes, token: str) -> Identity | None:
    """Create the file with its content in one step; None when it exists."""
    draft = f"{path}.{os.getpid()}.{token}.tmp"
    try:
        _write_new(draft, data)
    except FileNotFoundError:
        make_folders(path.parent)
        _write_new(draft, data)
    try:
        os.link(draft, path)
    except FileExistsError:
        return None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        try:  # a file system without hard links: nearly as good
            _write_new(path, data)
        except FileExistsError:
            return None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)  # noqa: PTH108 - a Path costs more than the call, twice a turn
    return _identity(path)


def _write_new(path: str | Path, data: bytes) -> None:
    """Make a file that is not there yet; on a full disk nothing of it stays."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        if os.write(fd, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    except OSError:
        Path(path).unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def _identity(path: Path) -> Identity:
    return identity_of(os.lstat(path))


def _remove(path: Path, identity: Identity) -> None:
    """Remove the lock file if it is still the one we made."""
    with contextlib.suppress(OSError):
        if _identity(path) == identity:
            path.unlink()


def _discard(path: Path, lock: ForeignLock) -> bool:
    """Remove a stale lock file; one that somebody put there meanwhile stays."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.stale")
    try:
        path.rename(aside)
    except OSError:
        return False
    try:
        if _identity(aside) != lock.identity:
            with contextlib.suppress(OSError):
                os.link(aside, path)
            return False
        return True
    finally:
        aside.unlink(missing_ok=True)


def _told(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("write lock not removed: %s", error)
