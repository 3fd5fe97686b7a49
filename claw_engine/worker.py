"""One process beside the engine for work that would hold the interpreter: long diffs, long texts.

Started by the first call, ended when it has been idle. Calls are functions of our modules with
plain values; one runs at a time. Knows none of them.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import pickle
import sys
from collections.abc import Callable
from typing import BinaryIO, ParamSpec, TypeVar, cast

from claw_engine.errors import ClawError
from claw_engine.world import Process, Timer, World

P = ParamSpec("P")
T = TypeVar("T")

IDLE_S = 60.0
CALL_S = 60.0
"""Seconds that one call may take."""
_HELLO = b"\0claw worker\0"
"""What the child says first; whatever the interpreter printed before it is passed over."""
_KILL = 9


class WorkerFailed(ClawError):
    """The work could not be done there; nothing of it has an effect."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The worker process failed: {why}.", hint="Try again; the log has more.")


class Worker:
    """Loop thread only. Use: `await call(fn, …)`, …, `await close()`."""

    def __init__(self, world: World, idle_s: float = IDLE_S) -> None:
        self._world = world
        self._idle_s = idle_s
        self._lock = asyncio.Lock()
        self._child: Process | None = None
        self._idle: Timer | None = None
        self._heard = b""
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._child is None else self._child.pid

    async def call(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What `fn`, a function at the top of one of our modules, returns there.

        Raises WorkerFailed.
        """
        asked = pickle.dumps((fn.__module__, fn.__qualname__, args, kwargs))
        async with self._lock:
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            try:
                async with asyncio.timeout(CALL_S):
                    ok, value = await self._asked(asked)
            except TimeoutError:
                await self._end(kill=True)
                raise WorkerFailed(f"no answer in {CALL_S:g} s") from None
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                await self._end(kill=True)
                raise WorkerFailed(str(error) or type(error).__name__) from error
            except BaseException:
                # The answer to a call that nobody waits for must not be taken for the next one's.
                await asyncio.shield(self._end(kill=True))
                raise
            self._idle = self._world.clock.call_later(self._idle_s, self._rest)
        if not ok:
            raise WorkerFailed(str(value))
        return cast(T, value)

    async def close(self) -> None:
        """End the process."""
        async with self._lock:
            await self._end()

    def _rest(self) -> None:
        task = asyncio.create_task(self.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _asked(self, asked: bytes) -> tuple[bool, object]:
        child = self._child or await self._started()
        await child.write(len(asked).to_bytes(8, "big") + asked)
        size = int.from_bytes(await self._read(child, 8), "big")
        answer: tuple[bool, object] = pickle.loads(await self._read(child, size))
        return answer

    async def _started(self) -> Process:
        # Our own path, so that the child finds the same code; nothing else of our environment.
        env = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        argv = [sys.executable, "-m", "claw_engine.worker"]
        child = self._child = await self._world.spawn.start(argv, cwd="/", env=env, stdin=True)
        self._heard = b""
        while _HELLO not in self._heard:
            piece = await child.read(65536)
            if not piece:
                raise EOFError(self._heard[-200:].decode("utf-8", "replace").strip() or "it ended")
            self._heard += piece
        self._heard = self._heard.partition(_HELLO)[2]
        return child

    async def _read(self, child: Process, size: int) -> bytes:
        pieces, have = [self._heard], len(self._heard)
        while have < size:
            piece = await child.read(1 << 20)
            if not piece:
                raise EOFError("it ended in the middle of a call")
            pieces.append(piece)
            have += len(piece)
        whole = b"".join(pieces)
        self._heard = whole[size:]
        return whole[:size]

    async def _end(self, *, kill: bool = False) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        child, self._child = self._child, None
        if child is None:
            return
        child.close_input()  # the child ends when it reads the end
        if kill:
            child.signal_group(_KILL)
        await child.wait()
        child.close_output()


def main(source: BinaryIO, target: BinaryIO) -> None:
    """In the child: answer calls until the input ends."""
    target.write(_HELLO)
    target.flush()
    while len(size := source.read(8)) == 8:
        module, name, args, kwargs = pickle.loads(source.read(int.from_bytes(size, "big")))
        try:
            value = getattr(importlib.import_module(module), name)(*args, **kwargs)
            answer = pickle.dumps((True, value))
        except Exception as error:
            answer = pickle.dumps((False, f"{type(error).__name__}: {error}"))
        target.write(len(answer).to_bytes(8, "big") + answer)
        target.flush()


if __name__ == "__main__":
    _out = os.fdopen(os.dup(1), "wb")
    # Whatever is printed from here on must not stand between two answers.
    _nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(_nowhere, 1)
    os.dup2(_nowhere, 2)
    os.nice(5)
    main(sys.stdin.buffer, _out)
