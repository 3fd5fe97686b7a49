"""Runs: one answer to one message, its state, and the one way to stop it.

What abort, cron, subagents and the console all need to know about a run. Knows no agent and no
model: the runtime reports its state here, and only a run's supervisor cancels its task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct, field

from claw_engine.errors import ClawError
from claw_engine.events import Event
from claw_engine.world import Clock

log = logging.getLogger("claw.runs")


class RunState(StrEnum):
    """Where a run is; the last four are ends."""

    QUEUED = "queued"
    BUILDING = "building"
    CONNECTING = "connecting"
    STREAMING = "streaming"
    BETWEEN_TOOLS = "between_tools"
    TOOL = "tool"
    PARKED = "parked"
    COMPACTING = "compacting"
    BACKING_OFF = "backing_off"
    DELIVERING = "delivering"
    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"
    INTERRUPTED = "interrupted"


ENDED = frozenset({RunState.DONE, RunState.FAILED, RunState.ABORTED, RunState.INTERRUPTED})


class AbortReason(StrEnum):
    USER = "user"
    TIMEOUT = "timeout"
    INTERRUPT = "interrupt"
    SHUTDOWN = "shutdown"
    LOST_LOCK = "lost_lock"
    DROPPED = "dropped"
    RESET = "reset"


class RunAborted(ClawError):
    """Raised where a run notices that it has been stopped."""

    def __init__(self, reason: AbortReason) -> None:
        super().__init__(f"The run was stopped ({reason.value}).")
        self.reason = reason


class AbortScope:
    """Why a run must stop, once it must. The first reason stays."""

    def __init__(self) -> None:
        self.reason: AbortReason | None = None
        self._event = asyncio.Event()

    @property
    def aborted(self) -> bool:
        return self.reason is not None

    def abort(self, reason: AbortReason) -> bool:
        """Set the reason; False if it was stopped before. Only a run's supervisor calls this."""
        if self.reason is not None:
            return False
        self.reason = reason
        self._event.set()
        return True

    async def wait(self) -> AbortReason:
        """Wait until the run must stop."""
        await self._event.wait()
        assert self.reason is not None
        return self.reason

    def check(self) -> None:
        """Raise RunAborted if the run must stop."""
        if self.reason is not None:
            raise RunAborted(self.reason)


class Run(Struct, eq=False):
    """One run. `settings` is the configuration it pinned at its start."""

    id: str
    session_key: str
    agent_id: str
    lane: str
    settings: object
    created_ms: int
    parent_id: str | None = None
    state: RunState = RunState.QUEUED
    state_since_ms: int = 0
    scope: AbortScope = field(default_factory=AbortScope)
    cancel: Callable[[], None] | None = None
    """Cancels the run's task; set by the supervisor that owns the task."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class RunStateChanged(Event, frozen=True):
    topic: ClassVar[str] = "run"
    run_id: str
    session_key: str
    prev: RunState
    new: RunState
    reason: str
    ts: int


class Runs:
    """All runs that have not ended, by id."""

    def __init__(self, clock: Clock, publish: Callable[[Event], None]) -> None:
        self._clock = clock
        self._publish = publish
        self._runs: dict[str, Run] = {}

    def create(
        self,
        run_id: str,
        *,
        session_key: str,
        agent_id: str,
        lane: str,
        settings: object,
        parent_id: str | None = None,
    ) -> Run:
        """A new run in state queued. Raises ValueError for an id that is active."""
        if run_id in self._runs:
            raise ValueError(f"run {run_id} exists")
        now = self._clock.now_ms()
        run = Run(run_id, session_key, agent_id, lane, settings, now, parent_id)
        run.state_since_ms = now
        self._runs[run_id] = run
        return run

    def get(self, run_id: str) -> Run | None:
        return self._runs.get(run_id)

    def active(self) -> list[Run]:
        """Runs that have not ended, oldest first."""
        return list(self._runs.values())

    def of_session(self, session_key: str) -> list[Run]:
        return [run for run in self._runs.values() if run.session_key == session_key]

    def set_state(self, run: Run, new: RunState, reason: str) -> None:
        """Record and publish a change; a run that has ended keeps its end."""
        if run.ended or run.state is new:
            return
        prev, run.state = run.state, new
        run.state_since_ms = self._clock.now_ms()
        if new in ENDED:
            self._runs.pop(run.id, None)
        log.info(
            "session state: sessionKey=%s runId=%s prev=%s new=%s reason=%s",
            run.session_key,
            run.id,
            prev.value,
            new.value,
            reason,
        )
        self._publish(
            RunStateChanged(run.id, run.session_key, prev, new, reason, run.state_since_ms)
        )

    def join(self, run: Run, other: Run) -> None:
        """`run` is answered by `other` from here on: it is no run of its own any more."""
        if self._runs.pop(run.id, None) is not None:
            log.info("run joined: runId=%s answeredBy=%s", run.id, other.id)

    def abort(self, run_id: str, reason: AbortReason) -> bool:
        """Stop a run: the reason first, then its task. False if there is none or it is stopping."""
        run = self._runs.get(run_id)
        if run is None or not run.scope.abort(reason):
            return False
        log.info("run abort: runId=%s state=%s reason=%s", run_id, run.state.value, reason.value)
        if run.cancel is not None:
            run.cancel()
        return True

    def abort_all(self, reason: AbortReason) -> list[str]:
        """Stop every run; returns the ids that were not stopping already."""
        return [run.id for run in self.active() if self.abort(run.id, reason)]
