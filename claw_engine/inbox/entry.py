"""A message from its acceptance to well after its end. Values only; others move it along."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from functools import partial

from msgspec import Struct, field

from claw_engine.agent.ports import RunError, RunResult
from claw_engine.agent.steps import Steps
from claw_engine.inbox.model import InboundMessage
from claw_engine.inbox.queue_modes import QueueRules
from claw_engine.runs import Run
from claw_engine.tools.policy.circumstances import EXTERNAL_FIELD
from claw_engine.world import Clock

ROUTE_FIELDS = ("channel", "to", "accountId", "threadId")


class Entry(Struct, eq=False):
    """`lead` is the entry whose run answers this one too; `why` says why it gets no answer."""

    message: InboundMessage
    rules: QueueRules = field(default_factory=QueueRules)
    run: Run | None = None
    steps: Steps | None = None
    lead: Entry | None = None
    why: RunError | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: set[asyncio.Future[None]] = field(default_factory=set)
    result: RunResult | None = None

    @property
    def id(self) -> str:
        return self.message.id

    @property
    def route(self) -> Hashable:
        """Where an answer would go; messages of different routes share no run.

        Neither do words that nobody with a say wrote and those of somebody who has.
        """
        extra = self.message.extra
        fields = (*ROUTE_FIELDS, EXTERNAL_FIELD)
        return (self.message.source, *(str(extra.get(name, "")) for name in fields))

    def settle(self, result: RunResult) -> None:
        """The end, for everybody who waits for it."""
        self.result = result
        self.done.set()
        for waiter in self.waiting:
            _wake(waiter)

    async def wait(self, clock: Clock, timeout_s: float | None) -> None:
        """Until the end, at most `timeout_s` seconds of `clock`."""
        if self.done.is_set():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.add(waiter)
        timer = None if timeout_s is None else clock.call_later(timeout_s, partial(_wake, waiter))
        try:
            await waiter
        finally:
            self.waiting.discard(waiter)
            if timer is not None:
                timer.cancel()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def started(entry: Entry) -> tuple[Run, Steps]:
    """Run and voice of an entry that was admitted."""
    assert entry.run is not None
    assert entry.steps is not None
    return entry.run, entry.steps
