"""The outside world, handed in: clock, identifiers, disk, processes.

Nothing above reads time, makes an id, touches a file or starts a process except through these
four, so a test hands in fakes and nothing is monkeypatched.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import secrets
import signal
import struct
import termios
import time
import uuid as uuid_module
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

from msgspec import Struct

from claw_engine.disk import RealDisk as RealDisk

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
    def lstat(self, path: Path) -> os.stat_result: ...
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
    async def write(self, data: bytes) -> None:
        """Hand `data` to the child's input. Raises OSError when it has none or has closed it."""
        ...

    def close_input(self) -> None:
        """Let the child read the end of its input (on a terminal: Ctrl-D)."""
        ...


class Spawn(Protocol):
    async def start(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: bool = False
    ) -> Process:
        """Start a child without a terminal; its input is empty, or with `stdin` a pipe.

        Raises OSError.
        """
        ...

    async def start_on_terminal(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], columns: int, rows: int
    ) -> Process:
        """Start a child on a pseudo-terminal of its own, which controls its session.

        Raises OSError, also where there are no pseudo-terminals.
        """
        ...


class World(Struct, frozen=True):
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
        stdin = self._process.stdin
        if stdin and (not stdin.is_closing() or stdin.transport.get_write_buffer_size()):
            stdin.transport.abort()  # a second time it would fail

    async def write(self, data: bytes) -> None:
        stdin = self._process.stdin
        if stdin is None or stdin.is_closing():
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        stdin.write(data)
        await stdin.drain()

    def close_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()


class TerminalProcess(RealProcess):
    """A child on a pseudo-terminal; `master` is our end of it, closed by `close_output`."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        super().__init__(process)
        self._master = master
        self._waiting: set[asyncio.Event] = set()
        os.set_blocking(master, False)

    async def read(self, size: int) -> bytes:
        while self._master >= 0:
            try:
                return os.read(self._master, size)
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._ready(loop.add_reader, loop.remove_reader)
            except OSError:  # EIO: nobody has the terminal open any more
                return b""
        return b""

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self._master < 0:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            try:
                view = view[os.write(self._master, view) :]
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._ready(loop.add_writer, loop.remove_writer)

    def close_input(self) -> None:
        if self._master >= 0:
            with contextlib.suppress(OSError):
                os.write(self._master, b"\x04")

    def close_output(self) -> None:
        """Hang up: whoever still has the terminal gets SIGHUP."""
        if self._master >= 0:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._master)
            loop.remove_writer(self._master)
            os.close(self._master)
            self._master = -1
            for waiting in self._waiting:
                waiting.set()

    async def _ready(
        self, add: Callable[[int, Callable[[], None]], object], remove: Callable[[int], object]
    ) -> None:
        """Wait until the terminal can be read or written, or is closed."""
        fd, ready = self._master, asyncio.Event()
        self._waiting.add(ready)
        add(fd, ready.set)
        try:
            await ready.wait()
        finally:
            self._waiting.discard(ready)
            if self._master == fd:
                remove(fd)


_ON_TERMINAL = 'exec "$@" 0<>"$0" 1>&0 2>&0'
"""A session leader that opens a terminal gets it as its controlling one; then the program."""


class RealSpawn:
    async def start(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: bool = False
    ) -> Process:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            close_fds=True,
            # SIGPIPE and friends at their defaults: Python ignores some and children inherit that.
            restore_signals=True,
        )
        return RealProcess(process)

    async def start_on_terminal(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], columns: int, rows: int
    ) -> Process:
        master, slave = os.openpty()
        try:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            process = await asyncio.create_subprocess_exec(
                # A shell opens the terminal: code of ours between fork and exec is not safe
                # while other threads run.
                "/bin/sh", "-c", _ON_TERMINAL, os.ttyname(slave), *argv,
                cwd=cwd,
                env=dict(env),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
                close_fds=True,
                restore_signals=True,
            )  # fmt: skip
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(slave)
        return TerminalProcess(process, master)


TERM = signal.SIGTERM
KILL = signal.SIGKILL


def real_world() -> World:
    """The machine we run on."""
    return World(RealClock(), RealIds(), RealDisk(), RealSpawn())
