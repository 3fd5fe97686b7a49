"""The event bus: rooms tell what happened, whoever cares follows, nobody waits.

A subscriber has a bounded mailbox. Deltas that belong together merge while they wait there; a
mailbox that overflows is emptied and leaves exactly one `Resync`, after which the subscriber
re-reads the state it follows. The bus knows no room: each owns its event classes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import ClassVar

from msgspec import Struct


class Event(Struct, frozen=True):
    """Base of all events: small values and ids, never live objects."""

    topic: ClassVar[str] = ""

    def merge_key(self) -> Hashable | None:
        """Events with one key may be merged while they wait; None = never merge."""
        return None

    def merge(self, newer: Event) -> Event | None:
        """This event and a newer one of the same key as one; None = keep both."""
        return None


class Resync(Event, frozen=True):
    """The mailbox overflowed: `dropped` events are gone, read the state again."""

    topic: ClassVar[str] = "resync"
    dropped: int = 0


class Subscription:
    """One follower's mailbox; an async iterator that ends when closed."""

    def __init__(self, bus: EventBus, topics: frozenset[str], capacity: int) -> None:
        self._bus = bus
        self.topics = topics
        self._capacity = capacity
        self._queue: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._closed = False

    @property
    def pending(self) -> int:
        """How many events wait."""
        return len(self._queue)

    def get_nowait(self) -> Event | None:
        """The oldest waiting event, or None."""
        return self._queue.popleft() if self._queue else None

    def close(self) -> None:
        """Stop following; a waiting iterator ends after what is already queued."""
        self._closed = True
        self._bus._forget(self)
        self._wake.set()

    def _offer(self, event: Event) -> None:
        queue = self._queue
        if queue and type(queue[-1]) is type(event):
            key = event.merge_key()
            if key is not None and queue[-1].merge_key() == key:
                merged = queue[-1].merge(event)
                if merged is not None:
                    queue[-1] = merged
                    return
        if len(queue) >= self._capacity:
            dropped = sum(e.dropped if isinstance(e, Resync) else 1 for e in queue) + 1
            queue.clear()
            queue.append(Resync(dropped))
        else:
            queue.append(event)
        self._wake.set()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Event:
        while not self._queue:
            if self._closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._queue.popleft()


class EventBus:
    """Synchronous publish to bounded mailboxes; loop thread only."""

    def __init__(self) -> None:
        self._by_topic: dict[str, tuple[Subscription, ...]] = {}

    def publish(self, event: Event) -> None:
        """Hand the event to every follower of its topic; never waits, never raises."""
        for subscription in self._by_topic.get(event.topic, ()):
            subscription._offer(event)

    def subscribe(self, *topics: str, capacity: int = 1024) -> Subscription:
        """Follow topics; `capacity` is the number of events that may wait."""
        subscription = Subscription(self, frozenset(topics), capacity)
        for topic in subscription.topics:
            self._by_topic[topic] = (*self._by_topic.get(topic, ()), subscription)
        return subscription

    def _forget(self, subscription: Subscription) -> None:
        for topic in subscription.topics:
            rest = tuple(s for s in self._by_topic.get(topic, ()) if s is not subscription)
            self._by_topic[topic] = rest


class Notice(Event, frozen=True):
    """Something an operator should see: a banner or a toast.

    `code` identifies the kind (a newer notice of one code replaces the older); `level` is info,
    warn or error; a `sticky` notice stays until a notice of the same code with level "clear".
    """

    topic: ClassVar[str] = "notice"
    code: str
    level: str
    title: str
    hint: str = ""
    text: str = ""
    sticky: bool = False
    ts: int = 0
