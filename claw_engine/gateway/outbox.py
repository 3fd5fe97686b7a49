"""What waits for one client: bounded, merging, never waited for.

Nothing in the engine waits for a client. Deltas that belong together merge while they wait; over
the soft limit droppable events are left out; over the hard limit the connection is given up. The
number `seq` is given when an event leaves, so a dropped or merged event never spends one; after a
loss exactly one number is skipped, which tells the client to read the state again, once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from typing import Protocol

from msgspec import Struct

from claw_engine.gateway.wire_events import Delivery, WireEvent

SOFT_LIMIT = 4 * 1024 * 1024
HARD_LIMIT = 8 * 1024 * 1024


class _Waiting(Struct):
    event: WireEvent


class Slot(Struct, eq=False):
    """The place of an answer that is still being encoded; nothing behind it leaves before it."""

    line: bytes | None = None


class Outgoing(Struct, frozen=True):
    """An event with the number it left under."""

    event: WireEvent
    seq: int | None


class Pipe(Protocol):
    """Where lines go when nothing waits before them."""

    @property
    def open(self) -> bool:
        """Whether what is written now does not pile up."""
        ...

    def write_event(self, body: bytes, tail: bytes) -> None:
        """Take one frame in two pieces, of which many clients share the first; never waits."""
        ...

    def flush_soon(self) -> None:
        """Send what was written once this turn of the loop is over."""
        ...


class Outbox:
    """The queue of one connection; loop thread only. Limits are in estimated bytes."""

    def __init__(
        self,
        on_overflow: Callable[[], None],
        *,
        soft_limit: int = SOFT_LIMIT,
        hard_limit: int = HARD_LIMIT,
        protocol: int = 3,
        rouse: Callable[[Outbox], None] | None = None,
    ) -> None:
        self.protocol = protocol
        """Which protocol decides what takes a number; known once the handshake is done."""
        self.pipe: Pipe | None = None
        """The way past the queue: an event for a client that keeps up is bytes at once."""
        self._rouse = rouse or Outbox.wake
        self._on_overflow = on_overflow
        self._soft = soft_limit
        self._hard = hard_limit
        self._queue: deque[_Waiting | Slot | bytes] = deque()
        self._last_of_group: dict[Hashable, _Waiting] = {}
        self._cost = 0
        self._seq = 0
        self._lost = False
        self._closed = False
        self._wake = asyncio.Event()

    @property
    def cost(self) -> int:
        """Estimated bytes that wait."""
        return self._cost

    @property
    def hard_limit(self) -> int:
        """Estimated bytes over which the connection is given up."""
        return self._hard

    @property
    def closed(self) -> bool:
        return self._closed

    def put(self, event: WireEvent) -> None:
        """Queue an event; never waits. Calls `on_overflow` when a must-deliver has no room."""
        if self._closed:
            return
        pipe = self.pipe
        if pipe is not None and not self._queue and pipe.open:
            numbered = event.numbered or (event.numbered4 and self.protocol >= 4)
            tail = b',"seq":%d}' % self._number() if numbered else b"}"
            pipe.write_event(event.body(self.protocol), tail)
            self._rouse(self)
            return
        if self._merge(event):
            return
        if event.delivery is Delivery.DROPPABLE and self._cost + event.cost > self._soft:
            self._lost = True
            return
        waiting = _Waiting(event)
        if event.group is not None:
            self._last_of_group[event.group] = waiting
        if self._push(waiting, event.cost):
            self._rouse(self)

    def put_line(self, line: bytes) -> None:
        """Queue a response, already encoded as one line."""
        if not self._closed and self._push(line, len(line)):
            self._wake.set()

    def reserve(self) -> Slot:
        """A place in the order for an answer that takes a while to encode; then `fill` it."""
        slot = Slot()
        if not self._closed:
            self._queue.append(slot)
        return slot

    def fill(self, slot: Slot, line: bytes) -> None:
        """The answer for a reserved place."""
        if slot.line is None and not self._closed:
            if self._cost and self._cost + len(line) > self._hard:
                self.give_up()
                return
            self._cost += len(line)
            slot.line = line
            self._wake.set()

    def put_first(self, line: bytes) -> None:
        """Queue a line before everything that waits: the hello, which events must follow."""
        self._queue.appendleft(line)
        self._cost += len(line)
        self._wake.set()

    def give_up(self) -> None:
        """Discard what waits and have the connection closed as a slow consumer."""
        if not self._closed:
            self.close(discard=True)
            self._on_overflow()

    def lose(self) -> None:
        """Something upstream was lost: the next numbered event skips one number."""
        self._lost = True

    def take(self, budget: int = 1 << 18) -> list[Outgoing | bytes]:
        """What waits, oldest first, up to about `budget` bytes and at least one."""
        out: list[Outgoing | bytes] = []
        taken = 0
        while self._ready and (not out or taken < budget):
            entry = self._queue.popleft()
            if isinstance(entry, Slot):
                assert entry.line is not None
                entry = entry.line
            if isinstance(entry, bytes):
                taken += len(entry)
                out.append(entry)
                continue
            event = entry.event
            taken += event.cost
            if event.group is not None and self._last_of_group.get(event.group) is entry:
                del self._last_of_group[event.group]
            out.append(
                Outgoing(event, self._number() if event.takes_number(self.protocol) else None)
            )
        self._cost -= taken
        return out

    async def wait(self) -> bool:
        """Until something waits; False when the outbox is closed and empty."""
        while not self._ready:
            if self._closed:
                return False
            self._wake.clear()
            await self._wake.wait()
        return True

    def wake(self) -> None:
        """Have what waits written now. Events ask `rouse` for it, which may let some gather."""
        if self._queue:
            self._wake.set()
        elif self.pipe is not None:
            self.pipe.flush_soon()

    def close(self, *, discard: bool = False) -> None:
        """Take no more; what waits may still leave unless discarded."""
        self._closed = True
        if discard:
            self._queue.clear()
            self._last_of_group.clear()
            self._cost = 0
        self._wake.set()

    @property
    def _ready(self) -> bool:
        if not self._queue:
            return False
        head = self._queue[0]
        return not (isinstance(head, Slot) and head.line is None)

    def _push(self, entry: _Waiting | bytes, cost: int) -> bool:
        if self._cost and self._cost + cost > self._hard:
            self.give_up()
            return False
        self._queue.append(entry)
        self._cost += cost
        return True

    def _merge(self, event: WireEvent) -> bool:
        if event.group is None or event.merge_key is None:
            return False
        last = self._last_of_group.get(event.group)
        if last is None or last.event.merge_key != event.merge_key:
            return False
        merged = last.event.merged(event)
        grown = merged.cost - last.event.cost
        if grown > 0 and self._cost + grown > self._soft:
            self._lost = True
            return True
        last.event = merged
        self._cost += grown
        return True

    def _number(self) -> int:
        self._seq += 2 if self._lost else 1
        self._lost = False
        return self._seq
