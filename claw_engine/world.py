"""The outside world, handed in: clock, identifiers, disk, processes.

Nothing above reads time, makes an id, touches a file or starts a process except through these
four, so a test hands in fakes and nothing is monkeypatched.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import time
import uuid as uuid_module
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """Wall time in ms, monotonic time in s, and waiting."""

    def now_ms(self) -> int: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...
    def call_later(self, seconds: float, fn: Callable[[], None]) -> Timer: ...


class Ids(Protocol):
    """Fresh identifiers."""

    def uuid(self) -> str: ...
    def hex(self, length: int) -> str: ...
    def token(self, nbytes: int) -> str: ...


class Disk(Protocol):
    """Files. Sync methods run inside `run` (or at start-up); all raise OSError."""

    def read_bytes(self, path: Path) -> bytes: ...
    def read_from(self, path: Path, offset: int, size: int = -1) -> bytes: ...
    def stat(self, path: Path) -> os.stat_result: ...
    def exists(self, path: Path) -> bool: ...
    def append(self, path: Path, data: bytes, *, fsync: bool, mode: int = 0o600) -> None: ...
    def truncate(self, path: Path, size: int) -> None: ...
    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None: ...
    def rename(self, source: Path, target: Path) -> None: ...
    def unlink(self, path: Path, *, missing_ok: bool = False) -> None: ...
    def mkdir(self, path: Path, mode: int = 0o700) -> None: ...
    def listdir(self, path: Path) -> list[str]: ...
    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...


class Process(Protocol):
    """A child that leads its own session; stdout and stderr arrive in one stream."""

    @property
    def pid(self) -> int: ...
    async def read(self, size: int) -> bytes: ...
    async def wait(self) -> int: ...
    def signal_group(self, sig: int) -> None: ...
    def close_output(self) -> None: ...


class Spawn(Protocol):
    async def start(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> Process:
        """Start a child without a terminal, stdin closed. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    clock: Clock
    ids: Ids
    disk: Disk
    spawn: Spawn


class RealClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, fn: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, fn)


class RealIds:
    def uuid(self) -> str:
        return str(uuid_module.uuid4())

    def hex(self, length: int) -> str:
        return secrets.token_hex((length + 1) // 2)[:length]

    def token(self, nbytes: int) -> str:
        return secrets.token_urlsafe(nbytes)


class RealDisk:
    """Files of this machine. `run` uses one thread, so writes keep their order."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="disk")

    def read_bytes(self, path: Path) -> bytes:
        return path.read_bytes()

    def read_from(self, path: Path, offset: int, size: int = -1) -> bytes:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

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
        path.mkdir(mode=mode, parents=True, exist_ok=True)

    def listdir(self, path: Path) -> list[str]:
        return os.listdir(path)  # noqa: PTH208 - names only, no Path objects

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: fn(*args, **kwargs))

    def close(self) -> None:
        """Let the thread end after what is queued."""
        self._executor.shutdown(wait=False)


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


class RealProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        return await self._process.stdout.read(size)

    async def wait(self) -> int:
        return await self._process.wait()

    def signal_group(self, sig: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, sig)

    def close_output(self) -> None:
        """Stop reading although descendants may still hold the pipe open."""
        # The subprocess transport is the only handle on the read end that asyncio gives out.
        transport = getattr(self._process, "_transport", None)
        pipe = transport.get_pipe_transport(1) if transport is not None else None
        if pipe is not None:
            pipe.close()


class RealSpawn:
    async def start(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> Process:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            close_fds=True,
            # SIGPIPE and friends at their defaults: Python ignores some and children inherit that.
            restore_signals=True,
        )
        return RealProcess(process)


TERM = signal.SIGTERM
KILL = signal.SIGKILL


def real_world() -> World:
    """The machine we run on."""
    return World(RealClock(), RealIds(), RealDisk(), RealSpawn())
