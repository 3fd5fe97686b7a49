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


class Waker(Protocol):
    """Returns from `wait` when a look at the disk is due, or at once when `stop` is set."""

    async def wait(self, stop: asyncio.Event) -> None: ...
    def close(self) -> None: ...


class EventWaker:
    """Kernel events of folders (not of what lies below them). Raises OSError when refused."""

    def __init__(self, notify: RustNotify) -> None:
        self._notify = notify
        self._halt = threading.Event()

    @classmethod
    def arm(cls, folders: Iterable[Path]) -> EventWaker:
        """Start watching; call in a thread (opens files, imports the library)."""
        from watchfiles._rust_notify import RustNotify  # off the start path

        names = [str(folder) for folder in folders]
        return cls(RustNotify(names, False, False, 0, False, True))

    async def wait(self, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        looking = loop.run_in_executor(None, self._look)
        await first_of(looking, stop)

    def _look(self) -> None:
        self._notify.watch(GROUP_MS, STEP_MS, RECHECK_MS, self._halt)

    def close(self) -> None:
        """The thread ends within STEP_MS; nothing waits for it."""
        self._halt.set()


class TimerWaker:
    """Looks every `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def wait(self, stop: asyncio.Event) -> None:
        await pause(self._seconds, stop)

    def close(self) -> None:
        """Nothing to release."""


async def pause(seconds: float, stop: asyncio.Event) -> None:
    """Sleep, but not past `stop`."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


async def first_of(future: asyncio.Future[None], stop: asyncio.Event) -> None:
    """Wait for `future` (its errors are raised) or `stop`."""
    stopping = asyncio.ensure_future(_until(stop))
    try:
        await asyncio.wait({future, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            future.result()
    finally:
        stopping.cancel()


async def _until(stop: asyncio.Event) -> None:
    await stop.wait()
