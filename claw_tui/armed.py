"""Ties the arming rule to real frames and keys: hears what was drawn, handed over and written,
and answers whether this key may decide. The rule itself is `store/arming.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from claw_tui.store.arming import Arming
from claw_tui.widgets.host import UiClock


class FrameGate(Protocol):
    """What the terminal room tells about frames. A skipped frame does not count, and the first
    frame after skipped ones is a full one."""

    frame_serial: int
    """Number of the newest frame handed to the writer."""
    on_written: Callable[[int, int], None] | None
    """Called with (serial, backlog) when frames up to serial are on the screen; while it is
    None nobody asks the terminal."""

    @property
    def backlog(self) -> int:
        """Bytes not yet taken by the terminal; 0 means it is up to date."""
        ...

    def confirm_now(self) -> None:
        """Ask for a confirmation of the newest frame."""
        ...


class Gatekeeper:
    """One for the application; `changed(seconds)` tells in how long a card will be armed
    (infinity while it cannot be, at most 0 when it is)."""

    def __init__(self, gate: FrameGate, clock: UiClock, changed: Callable[[float], None]) -> None:
        self.gate = gate
        self.clock = clock
        self.state = Arming()
        self._drawn_after: int | None = None
        """The newest frame before the card was drawn: the next one shows it."""
        self._changed = changed

    # ── the screen ──────────────────────────────────────────────────────────────────────────

    def select(self, card: str | None) -> None:
        """This card is the one on the screen now; None when there is none."""
        if card == self.state.card:
            return
        self._drawn_after = None
        self.gate.on_written = self._wrote if card is not None else None
        self._set(self.state.select(card))

    def disarm(self) -> None:
        """Expiry, filter, resize, reconnect, view switch; the card has to be painted again."""
        self._drawn_after = None
        self._set(self.state.disarm())

    def again(self) -> None:
        """A decision was called off or failed: the same card may be armed again."""
        card = self.state.card
        self.select(None)
        self.select(card)

    def drawn(self, card: str) -> None:
        """A line of this card was just drawn for the next frame."""
        if card == self.state.card and self._drawn_after is None:
            self._drawn_after = self.gate.frame_serial

    def _wrote(self, serial: int, backlog: int) -> None:
        state, before = self.state, self._drawn_after
        if before is not None and state.card is not None and self.gate.frame_serial > before:
            state = state.framed(state.card, before + 1)
        self._set(state.wrote(serial, backlog, self.clock.monotonic()))

    # ── the operator ────────────────────────────────────────────────────────────────────────

    def key(self) -> None:
        """Any key at all, before it does anything."""
        had = self.state.written
        self._set(self.state.key(self.clock.monotonic(), self.gate.backlog))
        if had is not None and self.state.written is None:
            self.gate.confirm_now()

    def paste(self) -> None:
        self._set(self.state.paste(self.clock.monotonic()))

    def take(self, card: str | None) -> bool:
        """Whether the key that is being handled may decide about `card`; uses it up."""
        state, granted = self.state.take(card)
        self._set(state)
        return granted

    def armed(self) -> bool:
        return self.state.armed(self.clock.monotonic(), self.gate.backlog)

    def armed_for(self, subject: str) -> bool:
        """Whether a key may decide about this subject: one that comes now, or the one that is
        being handled."""
        state = self.state
        return state.grant == subject or (state.card == subject and self.armed())

    def why_not(self) -> str:
        """Why the key just pressed decided nothing."""
        why = self.state.why_not(self.clock.monotonic(), self.gate.backlog)
        return str(why) if why is not None else "that key was not meant for this card"

    def _set(self, state: Arming) -> None:
        if state != self.state:
            self.state = state
            self._changed(state.ready_at(self.gate.backlog) - self.clock.monotonic())
