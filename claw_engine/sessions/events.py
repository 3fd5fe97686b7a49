"""What the sessions room tells: which sessions changed. Warnings go out as `Notice`s."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from claw_engine.events import Event
from claw_engine.sessions.entries import StoredMessage


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


class MessageStored(Event, frozen=True):
    """A message was added to a session's transcript; `number` is its place there, from 1."""

    topic: ClassVar[str] = "sessions"
    key: str
    number: int
    message: StoredMessage


class SessionBegun(Event, frozen=True):
    """A session begins anew; `reason` is `new` or `reset`."""

    topic: ClassVar[str] = "sessions"
    key: str
    reason: str
