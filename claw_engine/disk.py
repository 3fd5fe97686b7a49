"""Files of this machine: durable where it says so, and honest about what could not be written.

Implements the `Disk` of world.py; one thread, so writes keep their order. Waking a thread, and the
loop after it, costs more than most of the work: what is asked for together shares both.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import io
import os
import secrets
import threading
import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import ParamSpec, TypeAlias, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class _Job:
    """One call, the loop that asked for it, and how it ended."""

    __slots__ = ("call", "error", "future", "loop", "result")

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
        self.loop = loop
        self.call = call
        self.future: asyncio.Future[object] = loop.create_future()
        self.result: object = None
        self.error: BaseException | None = None

    def tell(self) -> None:
        """Loop thread."""
        if self.future.done():  # nobody waits any more
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class _Ended:
    """Jobs that have ended and wait for their loop. Whoever adds one looks at `called` after it,
    the loop clears it before it takes them: none is left lying, and no lock is needed."""

    __slots__ = ("called", "jobs", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.jobs: deque[_Job] = deque()
        self.called = False

    def add(self, job: _Job) -> None:
        """Worker thread."""
        self.jobs.append(job)
        if not self.called:
            self.called = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                self.loop.call_soon_threadsafe(self.tell)

    def tell(self) -> None:
        """Loop thread."""
        self.called = False
        while self.jobs:
            self.jobs.popleft().tell()


_Queue: TypeAlias = "SimpleQueue[_Job | None]"

_threads: dict[threading.Thread, _Queue] = {}
"""Those that run; each ends when it takes a None."""


class _Worker:
    """One thread that makes calls in their order; it ends with its owner, and with the program
    only after what is queued."""

    def __init__(self) -> None:
        self._queue: _Queue = SimpleQueue()
        self._started = False
        self._closed = False
        # The thread knows the queue and not us: one that nobody closed ends when we are gone.
        self._end = weakref.finalize(self, self._queue.put, None)

    def submit(self, call: Callable[[], object]) -> asyncio.Future[object]:
        """Loop thread. Cancelling the future takes back a call that has not begun.

        Raises RuntimeError after `close`.
        """
        if self._closed:
            raise RuntimeError("the disk was closed")
        job = _Job(asyncio.get_running_loop(), call)
        self._queue.put(job)
        if not self._started:
            self._started = True
            thread = threading.Thread(target=_work, args=(self._queue,), name="disk", daemon=True)
            _threads[thread] = self._queue
            thread.start()
        return job.future

    def close(self) -> None:
        self._closed = True
        self._end()


def _work(queue: _Queue) -> None:
    """Worker thread."""
    ended: _Ended | None = None
    while (job := queue.get()) is not None:
        if job.future.cancelled():
            continue
        try:
            job.result = job.call()
        except BaseException as error:  # whatever it is, it belongs to the one who asked
            job.error = error
        if ended is None or ended.loop is not job.loop:
            ended = _Ended(job.loop)
        ended.add(job)
        del job  # what it holds may go while we wait
    _threads.pop(threading.current_thread(), None)


@atexit.register
def _finish() -> None:
    """What was queued is written before the program ends."""
    for thread, queue in list(_threads.items()):
        queue.put(None)
        thread.join()


def make_folders(path: Path, mode: int = 0o700) -> None:
    """The folder and those missing above it, all with `mode`: `parents=True` gives them none."""
    if path.is_dir():
        return
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(mode, exist_ok=True)
    path.mkdir(mode, exist_ok=True)


class RealDisk:
    """Files of this machine. `run` uses one thread, so writes keep their order."""

    def __init__(self) -> None:
        self._worker = _Worker()

    def read_bytes(self, path: Path) -> bytes:
        return self.read_from(path, 0)

    def read_from(self, path: Path, offset: int, size: int = -1) -> bytes:
        with path.open("rb", buffering=0) as file:
            wanted = max(0, os.fstat(file.fileno()).st_size - offset)
            if size >= 0:
                wanted = min(wanted, size)
            # Seen on a 6.18 kernel: the first read of a file that had just been replaced came back
            # empty although its size was known. An empty index would be taken for a broken one.
            for _ in range(3):
                file.seek(offset)
                data = _read_all(file, size)
                if len(data) >= wanted:
                    break
            return data

    def stat(self, path: Path) -> os.stat_result:
        return os.stat(path)  # noqa: PTH116 - Path.stat costs as much again, several times a turn

    def lstat(self, path: Path) -> os.stat_result:
        return os.lstat(path)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def append(self, path: Path, data: bytes, *, fsync: bool, mode: int = 0o600) -> None:
        """Append all of `data` or raise and leave the file as long as it was."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        created = False
        try:
            fd = os.open(path, flags)
        except FileNotFoundError:
            created = True
            fd = os.open(path, flags | os.O_CREAT, mode)
        try:
            before = os.fstat(fd).st_size
            try:
                _write_all(fd, data)
                if fsync:
                    os.fsync(fd)
            except OSError:
                # A full disk may take half a line; what was there before must stay readable.
                with contextlib.suppress(OSError):
                    os.ftruncate(fd, before)
                raise
        finally:
            os.close(fd)
        if created and fsync:
            _fsync_dir(path.parent)

    def truncate(self, path: Path, size: int) -> None:
        os.truncate(path, size)

    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        """Put `data` at `path` atomically and durably: temporary file, fsync, rename, fsync."""
        temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            try:
                _write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _fsync_dir(path.parent)

    def rename(self, source: Path, target: Path) -> None:
        source.rename(target)
        _fsync_dir(target.parent)

    def unlink(self, path: Path, *, missing_ok: bool = False) -> None:
        path.unlink(missing_ok=missing_ok)

    def mkdir(self, path: Path, mode: int = 0o700) -> None:
        """Make the folder and what is missing above it, so that a power cut does not lose them."""
        if path.is_dir():
            return
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        make_folders(path, mode)
        for folder in reversed(missing):
            _fsync_dir(folder.parent)

    def listdir(self, path: Path) -> list[str]:
        return os.listdir(path)  # noqa: PTH208 - names only, no Path objects

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        # The future carries what `fn` returns; its type is lost on the way through the queue.
        return cast(T, await self._worker.submit(partial(fn, *args, **kwargs)))

    def close(self) -> None:
        """Let the thread end after what is queued."""
        self._worker.close()


def _read_all(file: io.FileIO, size: int) -> bytes:
    if size < 0:
        return file.readall() or b""
    chunks: list[bytes] = []
    while size > 0 and (chunk := file.read(size)):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _fsync_dir(path: Path) -> None:
    # Some file systems (SMB, exFAT) refuse to open or fsync a directory; the rename still stands.
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
