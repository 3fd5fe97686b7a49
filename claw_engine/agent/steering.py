"""Words for a run that is going on: offered from outside, taken by the loop between tool calls.

One mailbox a run. What is taken is in the loop's hands; what was not taken when the box is closed
stays with whoever offered it. Knows no queue and no session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

TAKEN_FIELD = "steeredInto"
"""Extra field of a user message that entered a run half-way: that run's id."""


class Steered(Struct, frozen=True, eq=False):
    """`run_id` names the message ("" when it stays queued as well); `taken` is told at once when
    the loop takes it."""

    text: str
    received_ms: int
    run_id: str
    taken: Callable[[], None]
    before: str = ""
    """What its channel tells of it, for the model."""


class Steering:
    """Closed until the loop opens it; loop thread only."""

    def __init__(self) -> None:
        self._open = False
        self._waiting: list[Steered] = []
        self._news = asyncio.Event()

    @property
    def open(self) -> bool:
        return self._open

    @property
    def pending(self) -> bool:
        return bool(self._waiting)

    def start(self) -> None:
        self._open = True

    def offer(self, message: Steered) -> bool:
        """Leave words for the loop; False if it takes none (any more)."""
        if not self._open:
            return False
        self._waiting.append(message)
        self._news.set()
        return True

    def withdraw(self, message: Steered) -> bool:
        """Take words back; False if the loop has them."""
        if message not in self._waiting:
            return False
        self._waiting.remove(message)
        if not self._waiting:
            self._news.clear()
        return True

    async def arrived(self) -> None:
        """Wait until something is pending."""
        await self._news.wait()

    def take(self) -> list[Steered]:
        """Everything that waits; its senders are told."""
        taken, self._waiting = self._waiting, []
        self._news.clear()
        for message in taken:
            message.taken()
        return taken

    def close(self) -> bool:
        """Take no more words; False (and still open) when some came at the last moment."""
        if self._waiting:
            return False
        self._open = False
        return True

    def abandon(self) -> None:
        """The run is over: what waits was never taken."""
        self._open = False
        self._waiting = []
