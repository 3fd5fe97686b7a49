"""What the sessions room tells: which sessions changed. Warnings go out as `Notice`s."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from claw_engine.events import Event


class SessionsChanged(Event, frozen=True):
    """Entries or transcripts of these keys changed."""

    topic: ClassVar[str] = "sessions"
    keys: frozenset[str]

    def merge_key(self) -> Hashable:
        return SessionsChanged

    def merge(self, newer: Event) -> Event | None:
        if not isinstance(newer, SessionsChanged):
            return None
        return SessionsChanged(self.keys | newer.keys)
