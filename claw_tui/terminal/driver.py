"""Textual's Linux driver with our writer and an input thread that survives a lost terminal.

Stock behaviour that this replaces (measured with Textual 8.2.8): a queue of 30 writes that
blocks the loop when the terminal is not read, and an input thread that spins or panics when the
terminal goes away.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from claw_tui.terminal.gate import FrameGate
from claw_tui.terminal.input import AnswerFilter
from claw_tui.terminal.writer import TerminalWriter

if TYPE_CHECKING:
    from textual.app import App

RESTORE_SECONDS = 1.0
"""How long leaving waits for a terminal that does not take the restore sequence."""

POLL_SECONDS = 0.1
"""How often the input thread looks whether it should end, and ends half a key (Textual's tick)."""


class Host(Protocol):
    """What the driver tells the app about; called on the loop."""

    gate: FrameGate
    mouse_motion: bool

    def terminal_drained(self) -> None: ...
    def terminal_lost(self, reason: str) -> None: ...


class ClawDriver(LinuxDriver):
    """Output through TerminalWriter; status answers go to the frame gate."""

    def __init__(
        self,
        app: App[object],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._host = cast(Host, app)
        self._writer: TerminalWriter | None = None
        self._gone = False
        self._reading = False

    # ── output ──────────────────────────────────────────────────────────────────────────────

    @property
    def backlog(self) -> int:
        """Bytes the terminal has not taken yet."""
        return self._writer.backlog if self._writer is not None else 0

    def write(self, data: str) -> None:
        if self._writer is not None:
            self._writer.write(data)

    def start_application_mode(self) -> None:
        assert self._file is not None, "the console is only started on a terminal"
        writer = TerminalWriter(
            self._file.fileno(),
            on_drained=lambda: self._tell(self._host.terminal_drained),
            on_lost=lambda error: self._tell(partial(self._lost, str(error))),
        )
        writer.start()
        self._writer = writer
        gate = self._host.gate
        gate.connect(self.write, lambda: self.backlog)
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual leaves it bare
        if self._writer_thread is not None:
            # The base class starts its own writer; everything goes through ours.
            self._writer_thread.stop()
            self._writer_thread = None
        gate.probe()

    def stop_application_mode(self) -> None:
        if self._writer is not None:
            # Frames that never reached a stalled terminal are worth nothing now.
            self._writer.discard()
        super().stop_application_mode()

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.stop(RESTORE_SECONDS)

    def _enable_mouse_support(self) -> None:
        if not self._mouse:
            return
        # Without 1003 a mouse that only moves sends nothing: over SSH each report is a packet.
        modes = ("1000", "1003", "1006") if self._host.mouse_motion else ("1000", "1002", "1006")
        for mode in modes:
            self.write(f"\x1b[?{mode}h")

    def _disable_mouse_support(self) -> None:
        if not self._mouse:
            return
        for mode in ("1000", "1002", "1003", "1006", "1016"):
            self.write(f"\x1b[?{mode}l")

    # ── input ───────────────────────────────────────────────────────────────────────────────

    def run_input_thread(self) -> None:
        """Read keys until told to stop or the terminal is gone."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        answers = AnswerFilter()
        self._reading = True
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while self._reading and not self.exit_event.is_set():
                if not selector.select(POLL_SECONDS):
                    held = answers.flush()
                    if held:
                        self._feed(parser, held)
                    for event in parser.tick():
                        self.process_message(event)
                    continue
                try:
                    data = os.read(self.fileno, 4096)
                except OSError as error:
                    self._tell(partial(self._lost, str(error)))
                    return
                if not data:
                    self._tell(partial(self._lost, "end of input"))
                    return
                text, seen = answers.feed(decode(data))
                for _ in range(seen):
                    self._tell(self._host.gate.answered)
                self._feed(parser, text)

    async def end_input(self) -> None:
        """Stop reading keys before the terminal is given away: to wait for the thread where
        Textual does would hold the loop up for as long as a poll takes."""
        self._reading = False
        if self._key_thread is not None:
            await asyncio.to_thread(self._key_thread.join)

    def _feed(self, parser: XTermParser, text: str) -> None:
        if text:
            for event in parser.feed(text):
                self.process_message(event)
        for event in parser.tick():
            self.process_message(event)

    # ── the other thread's way back ─────────────────────────────────────────────────────────

    def _tell(self, call: Callable[[], None]) -> None:
        # The loop may end while this thread still writes its last words.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)

    def _lost(self, reason: str) -> None:
        if not self._gone:
            self._gone = True
            self._host.terminal_lost(reason)
