"""Answers to repeated requests: one key, one effect, for five minutes (gateway digest §1.1, §1.10).

Durable knowledge of accepted messages is the inbox's; this only replays answers.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import TypeAlias

from claw_engine.world import Clock

TTL_S = 300.0
MAX_ENTRIES = 1000

Answer: TypeAlias = Mapping[str, object]


class AnswerCache:
    """Results by key. Concurrent callers of one key share one execution.

    The execution is not cancelled with a caller: a client that hangs up does not undo its message.
    """

    def __init__(self, clock: Clock, *, ttl_s: float = TTL_S, limit: int = MAX_ENTRIES) -> None:
        self._clock = clock
        self._ttl = ttl_s
        self._limit = limit
        self._entries: OrderedDict[str, tuple[float, asyncio.Task[Answer]]] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        self._sweep()
        return key in self._entries

    async def once(self, key: str, make: Callable[[], Coroutine[None, None, Answer]]) -> Answer:
        """The answer for `key`, made at most once; a failure is told and not kept."""
        self._sweep()
        entry = self._entries.get(key)
        if entry is None:
            task = asyncio.get_running_loop().create_task(make(), name=f"once {key}")
            entry = self._entries[key] = (self._clock.monotonic(), task)
            task.add_done_callback(lambda done: self._forget_failure(key, done))
        return await asyncio.shield(entry[1])

    def _forget_failure(self, key: str, task: asyncio.Task[Answer]) -> None:
        entry = self._entries.get(key)
        failed = task.cancelled() or task.exception() is not None
        if failed and entry is not None and entry[1] is task:
            del self._entries[key]

    def _sweep(self) -> None:
        oldest = self._clock.monotonic() - self._ttl
        while self._entries:
            made, _ = next(iter(self._entries.values()))
            if made > oldest and len(self._entries) <= self._limit:
                return
            self._entries.popitem(last=False)
