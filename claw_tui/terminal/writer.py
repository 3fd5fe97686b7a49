"""A thread that writes to the terminal, so that a terminal nobody reads stops nobody.

The loop hands over text and goes on. How much has not been written yet is the backlog, from
which the frame gate decides to skip frames. Knows no Textual.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

CHUNK = 4096
"""Bytes per write: a pty takes about this much, so the backlog is fresh while it drains."""


class TerminalWriter(threading.Thread):
    """Writes in order. `on_drained` and `on_lost` are called in this thread."""

    def __init__(
        self,
        fileno: int,
        *,
        on_drained: Callable[[], None],
        on_lost: Callable[[OSError], None],
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(daemon=True, name="terminal-writer")
        self._fileno = fileno
        self._on_drained = on_drained
        self._on_lost = on_lost
        self._encoding = encoding
        self._queue: deque[bytes] = deque()
        self._waiting = 0
        self._lock = threading.Lock()
        self._more = threading.Event()
        self._stopping = False
        self.lost = False

    @property
    def backlog(self) -> int:
        """Bytes handed over and not yet taken by the terminal."""
        return self._waiting

    def write(self, text: str) -> None:
        """Hand text over; never waits. Text for a lost terminal is dropped."""
        data = text.encode(self._encoding, "replace")
        if not data or self.lost:
            return
        with self._lock:
            self._queue.append(data)
            self._waiting += len(data)
        self._more.set()

    def discard(self) -> int:
        """Forget what has not been started; returns its bytes. What is under way is finished."""
        with self._lock:
            dropped = sum(len(data) for data in self._queue)
            self._queue.clear()
            self._waiting -= dropped
        return dropped

    def stop(self, timeout: float) -> bool:
        """Finish writing, for at most `timeout` seconds; False if the terminal did not take it."""
        self._stopping = True
        self._more.set()
        if self.is_alive():
            self.join(timeout)
        return not self.is_alive()

    def run(self) -> None:
        while True:
            with self._lock:
                data = self._queue.popleft() if self._queue else None
                if data is None:
                    self._more.clear()
                    if self._stopping:
                        return
            if data is None:
                self._more.wait()
                continue
            try:
                self._write(data)
            except OSError as error:
                self._lose(error)
                return
            if not self._waiting:
                self._on_drained()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.write(self._fileno, view[:CHUNK])
            view = view[written:]
            with self._lock:
                self._waiting -= written

    def _lose(self, error: OSError) -> None:
        self.lost = True
        with self._lock:
            self._queue.clear()
            self._waiting = 0
        if not self._stopping:
            self._on_lost(error)
