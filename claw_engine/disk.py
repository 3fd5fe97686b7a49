"""Files of this machine: durable where it says so, and honest about what could not be written.

Implements the `Disk` of world.py; one thread, so writes keep their order. Waking a thread, and the
loop after it, costs more than most of the work: what is asked for together shares both.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import secrets
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

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


class _Worker:
    """One thread that makes calls in their order."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="disk")
        self._lock = threading.Lock()
        self._waiting: deque[_Job] = deque()
        self._done: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        self._busy = False

    def submit(self, call: Callable[[], object]) -> asyncio.Future[object]:
        """Loop thread. Cancelling the future takes back a call that has not begun."""
        job = _Job(asyncio.get_running_loop(), call)
        with self._lock:
            if not self._busy:
                self._executor.submit(self._work)
                self._busy = True
            self._waiting.append(job)
        return job.future

    def close(self) -> None:
        self._executor.shutdown(wait=False)

    def _work(self) -> None:
        """Worker thread: until nothing waits."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._busy = False
                    return
                job = self._waiting.popleft()
            if job.future.cancelled():
                continue
            try:
                job.result = job.call()
            except BaseException as error:  # whatever it is, it belongs to the one who asked
                job.error = error
            self._report(job)

    def _report(self, job: _Job) -> None:
        loop = job.loop
        with self._lock:
            done = self._done.setdefault(loop, [])
            done.append(job)
            # Others are there: the loop was called and has not looked yet.
            if len(done) > 1:
                return
        try:
            loop.call_soon_threadsafe(self._tell, loop)
        except RuntimeError:  # the loop is closed: nobody waits
            with self._lock:
                self._done.pop(loop, None)

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        """Loop thread."""
        with self._lock:
            done = self._done.pop(loop, [])
        for job in done:
            job.tell()


def make_folders(path: Path, mode: int = 0o700) -> None:
    """The folder and those missing above it, all with `mode`: `parents=True` gives them none."""
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
        return path.stat()

    def exists(self, path: Path) -> bool:
        return path.exists()

    def append(self, path: Path, data: bytes, *, fsync: bool, mode: int = 0o600) -> None:
        """Append all of `data` or raise and leave the file as long as it was."""
        created = not path.exists()
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
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
