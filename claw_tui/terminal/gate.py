"""Which frame has really reached the operator's eyes.

Frames are numbered as they are handed to the writer. A frame is confirmed when the writer holds
nothing back and, where the terminal answers status requests, the answer to a request sent after
it has come back: a kernel buffer takes a small frame although nobody reads it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

STATUS_REQUEST = "\x1b[5n"
"""DSR: the terminal answers `CSI 0 n` when it has got this far (ECMA-48 8.3.35)."""


class FrameGate:
    """Loop thread only. Without a terminal (tests, pictures) every frame counts as seen."""

    def __init__(self) -> None:
        self._write: Callable[[str], None] | None = None
        self._read_backlog: Callable[[], int] | None = None
        self.frame_serial = 0
        """Number of the newest frame handed over."""
        self.confirmed_serial = 0
        """Number of the newest frame known to be on the screen."""
        self.answers = False
        """Whether this terminal has answered a status request."""
        self.on_written: Callable[[int, int], None] | None = None
        """Called with (confirmed serial, backlog); confirmations are asked for while it is set."""
        self._asked: deque[int] = deque()

    @property
    def backlog(self) -> int:
        """Bytes not yet taken by the terminal."""
        return self._read_backlog() if self._read_backlog else 0

    def probe(self) -> None:
        """Ask once, to learn whether this terminal answers."""
        self._ask()

    def frame_handed_over(self) -> None:
        """A frame was given to the writer."""
        self.frame_serial += 1
        if self.on_written is None:
            return
        if self._write is None:
            self._confirm(self.frame_serial)
        else:
            self._ask()

    def confirm_now(self) -> None:
        """Ask for a confirmation of the newest frame (used when a view starts to care)."""
        if self._write is None:
            self._confirm(self.frame_serial)
        elif self.answers or not self._asked:
            self._ask()

    def drained(self) -> None:
        """The writer holds nothing back any more."""
        if not self.answers and self.backlog == 0:
            self._confirm(self.frame_serial)

    def answered(self) -> None:
        """A status answer arrived: everything written before its request is on the screen."""
        self.answers = True
        if self._asked:
            self._confirm(self._asked.popleft())

    def connect(self, write: Callable[[str], None], read_backlog: Callable[[], int]) -> None:
        """A terminal is there (again): nothing on it is ours yet."""
        self._write, self._read_backlog = write, read_backlog
        self._asked.clear()
        self.confirmed_serial = -1

    def _ask(self) -> None:
        if self._write is None:
            return
        # A terminal that never answers must not make this grow.
        if len(self._asked) < 64:
            self._asked.append(self.frame_serial)
        self._write(STATUS_REQUEST)

    def _confirm(self, serial: int) -> None:
        self.confirmed_serial = max(self.confirmed_serial, serial)
        if self.on_written is not None:
            self.on_written(self.confirmed_serial, self.backlog)
