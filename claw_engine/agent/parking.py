"""Waiting for a human costs nothing: the run is parked while all its open calls wait for one.

Parked means: global slot and transcript lock given back, run clock standing still. A call that
works beside a waiting one keeps the slot. Knows no approval; tools enter through `OperatorWait`.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType

from claw_engine.agent.ports import Claim, Place
from claw_engine.agent.steps import Steps
from claw_engine.agent.stopwatch import Stopwatch
from claw_engine.errors import ClawError
from claw_engine.runs import RunState

log = logging.getLogger("claw.agent")


class Parking:
    """Counts the open calls of one tool round; `parking()` is the wait of one call."""

    def __init__(
        self, place: Place, steps: Steps, stopwatch: Stopwatch, claim: Claim | None = None
    ) -> None:
        self._place = place
        self._claim = claim
        self._steps = steps
        self._stopwatch = stopwatch
        self._open = 0
        self._waiting = 0
        self._parked = False
        self._returning = asyncio.Lock()

    def __call__(self) -> _Wait:
        return _Wait(self)

    def begin(self, calls: int) -> None:
        """A round of `calls` starts."""
        self._open = calls
        self._waiting = 0

    def call_ended(self) -> None:
        """One call of the round is over."""
        self._open -= 1
        self._look_soon()

    def enter(self) -> None:
        self._waiting += 1
        self._look_soon()

    async def leave(self, *, cancelled: bool) -> None:
        self._waiting -= 1
        if not cancelled:
            await self.back()

    async def back(self) -> None:
        """Take the place in the lane again if it was given back."""
        async with self._returning:
            if self._parked:
                await self._place.unpark()
                await self._lock_again()
                self._parked = False
                self._stopwatch.start()
                self._steps.state(RunState.TOOL, "decided")

    async def _lock_again(self) -> None:
        try:
            if self._claim is not None:
                await self._claim.acquire()
        except ClawError as error:
            # Another program writes at length: the command was decided and runs all the same;
            # every write of its result waits for the lock by itself.
            log.warning("transcript lock not taken again: %s", error)

    def _look_soon(self) -> None:
        # One turn of the loop later: calls decided at the same moment have left their wait by then.
        if self._waiting and not self._parked:
            asyncio.get_running_loop().call_soon(self._park_if_idle)

    def _park_if_idle(self) -> None:
        if self._parked or not self._waiting or self._waiting != self._open:
            return
        self._parked = True
        self._place.park()
        if self._claim is not None:
            self._claim.let_go()
        self._stopwatch.stop()
        self._steps.state(RunState.PARKED, "waiting for the operator")


class _Wait:
    __slots__ = ("_parking",)

    def __init__(self, parking: Parking) -> None:
        self._parking = parking

    async def __aenter__(self) -> None:
        self._parking.enter()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await self._parking.leave(cancelled=cancelled)
