"""From an accepted message to its answer: journal, lanes, a supervised run, the index.

A message is acknowledged when it is on disk; its place in the lanes is fixed right then. Messages
of one session run one after the other (queue mode followup). Each run has a supervisor, the only
one that cancels it. Knows no channel and no gateway.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Literal

from claw_engine.agent.ports import RunResult
from claw_engine.agent.run import TRUSTED_SOURCES
from claw_engine.errors import ClawError
from claw_engine.events import Notice
from claw_engine.inbox.commands import (
    Command,
    CommandCall,
    Commands,
    is_stop_command,
    is_stop_phrase,
)
from claw_engine.inbox.live import LiveRuns
from claw_engine.inbox.model import Accepted, InboundMessage, Recovered
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.recovery import begun, mark_interrupted
from claw_engine.inbox.supervisor import Supervisor, ended_data
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.runs import AbortReason

log = logging.getLogger("claw.inbox")

REMEMBERED_RUNS = 500
"""Ended runs whose result can still be asked for."""
STOP_SECONDS = 15.0
"""How long stopping runs may take at shutdown before the engine goes on without them."""


class ShuttingDown(ClawError):
    """No new messages: the engine is about to stop."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a message at the door. `run_ids` are the runs that a stop hit."""

    run_id: str
    status: Literal["started", "in_flight", "ended", "stopped"]
    run_ids: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class _Entry:
    """A run from acceptance to well after its end."""

    message: InboundMessage
    done: asyncio.Event = field(default_factory=asyncio.Event)
    result: RunResult | None = None


class Dispatcher:
    """Loop thread only."""

    def __init__(self, deps: DispatchDeps, commands: Commands) -> None:
        self._deps = deps
        self._commands = commands
        self._clock = deps.world.clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._closing = False
        self._live = LiveRuns(self._clock)
        self._supervisor = Supervisor(deps, self._emit)

    # -- the door ------------------------------------------------------------------------------

    async def submit(self, message: InboundMessage) -> Submitted:
        """Accept a message; returns once it is durable and has its place.

        The same id again starts nothing. A stop phrase from a trusted source stops the session's
        runs instead. Raises ShuttingDown, StateDiskError.
        """
        trusted = message.source in TRUSTED_SOURCES
        if trusted and self._means_stop(message):
            stopped = self.abort(message.session_key)
            return Submitted(message.id, "stopped", tuple(stopped))
        if self._closing:
            raise ShuttingDown("The engine is stopping.", hint="Send it again in a moment.")
        if (state := self.known(message.id)) is not None:
            return Submitted(message.id, "in_flight" if state == "active" else "ended")
        command = self._commands.find(message.text, message.session_key) if trusted else None
        if command is not None:
            await self._answer(message, *command)
            return Submitted(message.id, "ended")
        entry = self._entries[message.id] = _Entry(message)
        try:
            accepted = await self._deps.journal.accept(message)
        except BaseException:
            self._entries.pop(message.id, None)
            raise
        if accepted.repeat:
            return self._repeat(entry, accepted)
        self._launch(entry)
        return Submitted(message.id, "started")

    def known(self, run_id: str) -> Literal["active", "ended"] | None:
        """Whether a message with this id is going on, has ended, or is unknown."""
        entry = self._entries.get(run_id)
        if entry is None:
            return None
        return "active" if entry.result is None else "ended"

    async def wait(self, run_id: str, timeout_s: float | None = None) -> RunResult | None:
        """The end of a run; None after `timeout_s` seconds or for an unknown run."""
        entry = self._entries.get(run_id)
        if entry is None:
            return None
        await self._bounded(entry.done.wait(), timeout_s)
        return entry.result if entry.done.is_set() else None

    def live(self, session_key: str | None = None) -> list[list[TraceEvent]]:
        """The trace so far of the runs that are going on."""
        return self._live.snapshot(session_key)

    # -- stopping ------------------------------------------------------------------------------

    def abort(
        self,
        session_key: str,
        run_id: str | None = None,
        reason: AbortReason = AbortReason.USER,
    ) -> list[str]:
        """Stop one run or all of a session, queued ones too; ids that are stopping now."""
        runs = self._deps.runs
        wanted = [run.id for run in runs.of_session(session_key) if run_id in (None, run.id)]
        return [id_ for id_ in wanted if runs.abort(id_, reason)]

    def abort_all(self, reason: AbortReason = AbortReason.USER) -> list[str]:
        """Stop everything; ids that are stopping now."""
        return self._deps.runs.abort_all(reason)

    async def drain(self, timeout_s: float) -> bool:
        """Take nothing new and let runs end for `timeout_s` seconds; whether all did."""
        self._closing = True
        await self._all_ended(timeout_s)
        return not self._active()

    async def close(self, drain_s: float = 0.0) -> None:
        """Stop: no intake, bounded drain, abort the rest. Queued messages stay in the journal."""
        await self.drain(drain_s)
        self.abort_all(AbortReason.SHUTDOWN)
        await self._all_ended(STOP_SECONDS)
        for entry in self._active():
            log.error("run did not stop: runId=%s", entry.message.id)

    # -- restart -------------------------------------------------------------------------------

    async def recover(self, recovered: Recovered) -> None:
        """Mark what was interrupted, then start what had not begun, in order of acceptance."""
        interrupted = []
        unmarked = await begun(self._deps, recovered.not_started)
        for accepted in sorted((*recovered.interrupted, *unmarked), key=lambda a: a.seq):
            entry = self._entries[accepted.id] = _Entry(accepted.message)
            result = await mark_interrupted(self._deps, accepted.message)
            self._settle(entry, result)
            if result.status == "interrupted":
                interrupted.append(accepted)
        if interrupted:
            self._tell_interrupted(interrupted)
        for accepted in recovered.not_started:
            if accepted not in unmarked:
                self._launch(_Entry(accepted.message))

    def _tell_interrupted(self, interrupted: Sequence[Accepted]) -> None:
        keys = sorted({accepted.message.session_key for accepted in interrupted})
        count = len(interrupted)
        self._deps.publish(
            Notice(
                code="runs-interrupted",
                level="warn",
                title=f"{count} run{'s were' if count > 1 else ' was'} interrupted by the restart.",
                hint="Nothing was repeated. Send the message again if it is still wanted.",
                text=", ".join(keys),
                ts=self._clock.now_ms(),
            )
        )

    # -- inside --------------------------------------------------------------------------------

    def _repeat(self, entry: _Entry, accepted: Accepted) -> Submitted:
        """An id that the journal knows from before the restart."""
        if accepted.state in ("accepted", "started"):
            # Still open: `recover` is about to take it up.
            self._entries.pop(accepted.id, None)
            return Submitted(accepted.id, "in_flight")
        self._settle(entry, RunResult(accepted.state, accepted.state))
        return Submitted(accepted.id, "ended")

    def _launch(self, entry: _Entry) -> None:
        self._entries[entry.message.id] = entry
        self._supervisor.launch(entry.message, lambda result: self._settle(entry, result))

    def _settle(self, entry: _Entry, result: RunResult) -> None:
        entry.result = result
        entry.done.set()
        surplus = len(self._entries) - REMEMBERED_RUNS
        if surplus > 0:
            ended = (id_ for id_, e in self._entries.items() if e.result is not None)
            for id_ in list(itertools.islice(ended, surplus)):
                del self._entries[id_]

    def _emit(self, event: TraceEvent) -> None:
        self._live.record(event)
        self._deps.publish(event)

    def _means_stop(self, message: InboundMessage) -> bool:
        if is_stop_command(message.text):
            return True
        return is_stop_phrase(message.text) and bool(
            self._deps.runs.of_session(message.session_key)
        )

    async def _answer(self, message: InboundMessage, command: Command, call: CommandCall) -> None:
        """A command's answer, told like a run without a model; not part of the conversation."""
        entry = self._entries[message.id] = _Entry(message)
        began = self._clock.now_ms()
        try:
            text = await command.run(call)
        except ClawError as error:
            text = error.sentence()
        except BaseException:
            self._entries.pop(message.id, None)
            raise
        ended = self._clock.now_ms()
        result = RunResult("done", "stop", text, started_ms=began, ended_ms=ended)
        self._tell(message, 1, TraceKind.RUN_QUEUED, message=message.text, source=message.source,
                   lane="", waitingBehind=[])  # fmt: skip
        self._tell(message, 2, TraceKind.RUN_ENDED, **ended_data(result))
        self._settle(entry, result)

    def _tell(self, to: InboundMessage, seq: int, kind: TraceKind, **data: object) -> None:
        self._emit(TraceEvent(to.id, to.session_key, seq, self._clock.now_ms(), kind, data))

    def _active(self) -> list[_Entry]:
        return [entry for entry in self._entries.values() if entry.result is None]

    async def _all_ended(self, timeout_s: float) -> None:
        active = self._active()

        async def ends() -> None:
            for entry in active:
                await entry.done.wait()

        if active:
            await self._bounded(ends(), timeout_s)

    async def _bounded(
        self, what: Coroutine[object, object, object], timeout_s: float | None
    ) -> None:
        """Waits for `what`, at most `timeout_s` seconds of the world's clock."""
        waits: list[asyncio.Task[object]] = [asyncio.create_task(what)]
        if timeout_s is not None:
            waits.append(asyncio.create_task(self._clock.sleep(timeout_s)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
