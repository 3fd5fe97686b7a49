"""What wakes the watcher: the kernel's change events, or a timer where there are none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify  # documented by watchfiles as its rust backend

STEP_MS = 200
"""How often the event thread looks for new events and for the stop flag: 5 wake-ups a second
cost nothing, and it bounds how long closing takes."""

RECHECK_MS = 5_000
"""A look at the disk without any event, for events that never came."""

GROUP_MS = 400
"""Longest that a stream of events is gathered before it counts as one."""


_CAME_OR_WENT = (1, 3)
"""watchfiles' numbers for added and deleted (its Change enum)."""


class Waker(Protocol):
    """Returns from `wait` when a look at the disk is due, or at once when `stop` is set.

    False means that a watched folder itself came or went, so this waker is worn out: a folder
    made anew may even carry the old inode number.
    """

    async def wait(self, stop: asyncio.Event) -> bool: ...
    def close(self) -> None: ...


class EventWaker:
    """Kernel events of folders (not of what lies below them). Raises OSError when refused."""

    def __init__(self, notify: RustNotify, folders: frozenset[str]) -> None:
        self._notify = notify
        self._folders = folders
        self._halt = threading.Event()
        self._using = threading.Lock()
        """Held by whoever is inside `_notify`: it must not be closed under a look."""

    @classmethod
    def arm(cls, folders: Iterable[Path]) -> EventWaker:
        """Start watching; call in a thread (opens files, imports the library)."""
        # The package before its part: another thread imports them in this order (uvicorn), and
        # the other way round both wait for each other's import lock: the port was then not served.
        import watchfiles  # noqa: F401
        from watchfiles._rust_notify import RustNotify  # off the start path

        names = [str(folder) for folder in folders]
        return cls(RustNotify(names, False, False, 0, False, True), frozenset(names))

    async def wait(self, stop: asyncio.Event) -> bool:
        loop = asyncio.get_running_loop()
        return await first_of(loop.run_in_executor(None, self._look), stop)

    def _look(self) -> bool:
        try:
            with self._using:
                if self._halt.is_set():
                    return True
                events = self._notify.watch(GROUP_MS, STEP_MS, RECHECK_MS, self._halt)
        finally:
            if self._halt.is_set():
                self._give_back()
        if isinstance(events, str):  # a timeout, or told to stop
            return True
        return not any(kind in _CAME_OR_WENT and path in self._folders for kind, path in events)

    def close(self) -> None:
        """Give the kernel's watch back: now, or within STEP_MS by the thread that looks.

        Not left to the collector: what an ended engine held may live on in a frozen circle.
        """
        self._halt.set()
        self._give_back()

    def _give_back(self) -> None:
        # Whoever looks meanwhile comes here after it, and finds `_halt` set.
        if self._using.acquire(blocking=False):
            try:
                self._notify.close()
            finally:
                self._using.release()


class TimerWaker:
    """Looks every `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def wait(self, stop: asyncio.Event) -> bool:
        await pause(self._seconds, stop)
        return True

    def close(self) -> None:
        """Nothing to release."""


async def pause(seconds: float, stop: asyncio.Event) -> None:
    """Sleep, but not past `stop`."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


async def first_of(future: asyncio.Future[bool], stop: asyncio.Event) -> bool:
    """The result of `future` (its errors are raised), or True once `stop` is set."""
    stopping = asyncio.ensure_future(_until(stop))
    try:
        await asyncio.wait({future, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return future.result() if future.done() else True
    finally:
        stopping.cancel()


async def _until(stop: asyncio.Event) -> bool:
    return await stop.wait()
