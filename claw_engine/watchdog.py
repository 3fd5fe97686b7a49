"""Notices when the event loop does not answer, and says which code held it.

A small thread asks the loop for a sign of life; without an answer in time it takes the loop
thread's stack. Knows no room; needs only a running loop and a logger.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections import deque

from msgspec import Struct

THRESHOLD_MS = 150
"""A key press answered later than this feels stuck; also the engine's own bound for loop lag."""

IDLE_INTERVAL_S = 0.5
"""Two questions a second while nothing runs: measured at about 1 ms CPU a second (0.1 %)."""

ACTIVE_INTERVAL_S = 0.1
"""While runs are active (about 4 ms CPU a second). A stall longer than threshold + interval
(250 ms) is always caught; a shorter one with probability (stall - threshold) / interval."""

LINGER_S = 2.0
"""Seconds that the questions stay frequent after the last run: runs often follow each other, and
waking the thread for each of them costs more than asking."""

HANG_S = 5.0
"""A stall this long is logged before it ends: it may never end."""

_LOOK_S = 0.5
_KEPT = 16
_STACK_FRAMES = 24

logger = logging.getLogger(__name__)


class Stall(Struct, frozen=True):
    """One time the loop did not answer. `stack` is text, innermost call last."""

    at: float
    """Wall clock, seconds since the epoch, when the question was asked."""
    lag_ms: float
    stack: str


class WatchdogSnapshot(Struct, frozen=True):
    """`max_lag_ms` since the start, `last_lag_ms` of the newest answer, the newest stalls."""

    max_lag_ms: float
    last_lag_ms: float
    stall_count: int
    stalls: tuple[Stall, ...]


class LoopWatchdog:
    """Watches the loop it is started on. `threshold_ms`: longer without an answer is a stall."""

    def __init__(self, *, threshold_ms: float = THRESHOLD_MS) -> None:
        self._threshold = threshold_ms / 1000
        self._active = False
        self._active_until = 0.0
        self._dozing = False
        self._stop = threading.Event()
        self._poke = threading.Event()
        self._answered = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop_thread = 0
        self._asked = 0.0
        self._last = 0.0
        self._max = 0.0
        self._count = 0
        self._stalls: deque[Stall] = deque(maxlen=_KEPT)

    def start(self) -> None:
        """Start watching the running loop. Call on that loop."""
        loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._thread = threading.Thread(
            target=self._watch, args=(loop,), name="loop-watchdog", daemon=True
        )
        self._thread.start()

    def set_active(self, active: bool) -> None:
        """Ask more often while runs are active."""
        if active == self._active:
            return
        self._active = active
        if not active:
            self._active_until = time.monotonic() + LINGER_S
        elif self._dozing:
            self._poke.set()

    def snapshot(self) -> WatchdogSnapshot:
        """What was seen so far; safe from any thread."""
        return WatchdogSnapshot(self._max, self._last, self._count, tuple(self._stalls))

    def close(self) -> None:
        """End the thread; waits at most half a second for it."""
        self._stop.set()
        self._poke.set()
        self._answered.set()
        if self._thread is not None:
            self._thread.join(0.5)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._stop.is_set():
            self._answered.clear()
            self._asked = time.monotonic()
            try:
                loop.call_soon_threadsafe(self._answer)
            except RuntimeError:
                return  # the loop is closed
            if not self._answered.wait(self._threshold):
                self._stalled(loop)
            # Set before it looks: a run that begins now either is seen or pokes.
            self._dozing = True
            if self._active or time.monotonic() < self._active_until:
                self._dozing = False
                self._poke.wait(ACTIVE_INTERVAL_S)
            else:
                self._poke.wait(IDLE_INTERVAL_S)
                self._dozing = False
            self._poke.clear()

    def _answer(self) -> None:
        self._last = (time.monotonic() - self._asked) * 1000
        self._max = max(self._max, self._last)
        self._answered.set()

    def _stalled(self, loop: asyncio.AbstractEventLoop) -> None:
        at = time.time() - (time.monotonic() - self._asked)
        stack = self._culprit()
        if not stack:
            return
        told = False
        while not self._answered.wait(_LOOK_S):
            if loop.is_closed():
                return
            so_far = time.monotonic() - self._asked
            if so_far > HANG_S and not told:
                self._tell(so_far * 1000, stack, ", still not answering")
                told = True
        if self._stop.is_set():
            return
        self._count += 1
        self._stalls.append(Stall(at, self._last, stack))
        if not told:
            self._tell(self._last, stack)

    def _tell(self, lag_ms: float, stack: str, more: str = "") -> None:
        logger.warning("event loop stalled: lagMs=%.0f%s\n%s", lag_ms, more, stack)

    def _culprit(self) -> str:
        frame = sys._current_frames().get(self._loop_thread)
        if frame is None or self._answered.is_set():
            return ""
        return "".join(traceback.format_stack(frame)[-_STACK_FRAMES:]).rstrip()
