"""When may a single key decide? A pure state machine; its caller owns the clock.

A card is armed when the frame that shows it has left the writer, the writer holds nothing
back, and half a second has then passed without any key. Anything that changes what is on
the screen starts over, and one decision disarms."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

QUIET_SECONDS = 0.5


class Why(StrEnum):
    """Why a decision key did nothing, in words for the hint line."""

    NO_CARD = "no card is selected"
    UNSEEN = "the card is not on your screen yet"
    BEHIND = "your terminal is behind: wait until it has caught up"
    QUIET = "not armed yet: leave the keys alone for half a second"
    OTHER = "another card is selected now"
    SPENT = "this card was just decided"


class Arming(Struct, frozen=True):
    """Times are seconds of a monotonic clock, serials count frames handed to the writer."""

    card: str | None = None
    frame: int | None = None
    """The frame that shows the card, once it was handed over."""
    written: float | None = None
    """When that frame had left the writer and nothing was held back."""
    last_key: float = float("-inf")
    spent: bool = False
    grant: str | None = None
    """The card that was armed when the newest key arrived; only that key may use it."""

    # ── what happens to the screen ──────────────────────────────────────────────────────────

    def select(self, card: str | None) -> Arming:
        """Another card (or none) is shown: everything starts over."""
        if card == self.card:
            return self
        return Arming(card, last_key=self.last_key)

    def disarm(self) -> Arming:
        """Expiry, filter, resize, reconnect, view switch: the full wait starts again."""
        return Arming(self.card, last_key=self.last_key, spent=self.spent)

    def framed(self, card: str, serial: int) -> Arming:
        """Frame `serial`, which shows `card`, was handed to the writer."""
        if card != self.card or self.frame is not None:
            return self
        return replace(self, frame=serial)

    def wrote(self, serial: int, backlog: int, now: float) -> Arming:
        """The writer has written everything up to `serial` and holds `backlog` back."""
        if self.frame is None or serial < self.frame or backlog > 0 or self.written is not None:
            return self
        return replace(self, written=now)

    # ── what the operator does ──────────────────────────────────────────────────────────────

    def key(self, now: float, backlog: int = 0) -> Arming:
        """Any key at all. Grants this key a decision if the card was armed when it came."""
        grant = self.card if self.armed(now, backlog) else None
        written = self.written if backlog == 0 else None
        return replace(self, last_key=now, grant=grant, written=written)

    def paste(self, now: float) -> Arming:
        """Pasted text counts as keys, and never decides."""
        return replace(self, last_key=now, grant=None)

    def take(self, card: str | None) -> tuple[Arming, bool]:
        """Use the grant for `card`. Whatever the outcome, the grant is gone."""
        if card is None or self.grant != card or card != self.card:
            return replace(self, grant=None), False
        return Arming(self.card, last_key=self.last_key, spent=True), True

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    def armed(self, now: float, backlog: int = 0) -> bool:
        return self.card is not None and not self.spent and self.ready_at(backlog) <= now

    def ready_at(self, backlog: int = 0) -> float:
        """When the card will be armed if no key comes; infinity while it cannot be."""
        if self.card is None or self.spent or self.written is None or backlog > 0:
            return float("inf")
        return max(self.written, self.last_key) + QUIET_SECONDS

    def why_not(self, now: float, backlog: int = 0) -> Why | None:
        """Why a key at `now` would not decide; None when it would."""
        if self.card is None:
            return Why.NO_CARD
        if self.spent:
            return Why.SPENT
        if self.frame is None:
            return Why.UNSEEN
        if self.written is None or backlog > 0:
            return Why.BEHIND
        return None if self.armed(now, backlog) else Why.QUIET
