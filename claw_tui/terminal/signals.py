"""SIGHUP, SIGTERM and SIGINT end the console properly: screen restored, code told, the engine's
fate decided later."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def leaving_signals(
    loop: asyncio.AbstractEventLoop, leave: Callable[[signal.Signals], None]
) -> Iterator[None]:
    """While inside, these signals call `leave` on the loop instead of killing the process."""
    handled: list[signal.Signals] = []
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        # Not the main thread, or a platform without it: the default action stays.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, leave, number)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
