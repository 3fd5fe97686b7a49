"""The half of an App that paints: frames are skipped while the terminal is behind.

Tokens are in the store, so a skipped frame loses nothing; when the terminal has caught up the
whole screen is painted once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from textual.app import App
from textual.worker import WorkerFailed

from claw_tui.terminal.driver import ClawDriver
from claw_tui.terminal.gate import FrameGate

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.screen import Screen

ReturnT = TypeVar("ReturnT")


class PaintingApp(App[ReturnT]):
    """An App whose output never blocks its loop."""

    def __init__(self, *, mouse_motion: bool = True) -> None:
        # Before the base class: it asks the driver class and may paint early.
        self.gate = FrameGate()
        self.mouse_motion = mouse_motion
        self.skipped_frames = 0
        self.lost_terminal = ""
        self._frame_owed = False
        super().__init__(driver_class=ClawDriver)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        # A private hook of Textual, pinned by version: there is no public one for frames.
        if renderable is None:
            super()._display(screen, renderable)
            return
        if self.gate.backlog > 0:
            self.skipped_frames += 1
            self._frame_owed = True
            self.post_display_hook()
            return
        super()._display(screen, renderable)
        self.gate.frame_handed_over()
        if self.gate.frame_serial == 1:
            self.first_frame()

    def first_frame(self) -> None:
        """The writer has the first frame."""

    @property
    def crash(self) -> BaseException | None:
        """The error that ended the application, if one did."""
        error = self._exception
        return error.error if isinstance(error, WorkerFailed) else error

    def _fatal_error(self) -> None:
        # Textual's own prints every frame with its local variables. The shell gets one sentence
        # from the program instead, the log gets the frames, and what was on screen stays private.
        self._close_messages_no_wait()

    def terminal_drained(self) -> None:
        """The writer has caught up: pay the frame that was skipped."""
        self.gate.drained()
        if self._frame_owed and self.is_running and self.gate.backlog == 0:
            self._frame_owed = False
            self.refresh(layout=True)

    def terminal_lost(self, reason: str) -> None:
        """The terminal is gone (closed pty, dropped SSH): leave the screen, keep the engine."""
        self.lost_terminal = reason
        null = os.open(os.devnull, os.O_RDWR)
        try:
            for standard in (0, 1, 2):
                os.dup2(null, standard)
        finally:
            os.close(null)
        self.exit(return_code=1)
