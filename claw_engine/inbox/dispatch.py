"""From an accepted message to its answer: commands, the journal, a place in its talk.

A message is acknowledged when it is on disk; what becomes of it then is its queue mode's business
(`talks`), and every end of it comes back here for those who wait. Knows no channel and no gateway.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.agent.ports import RunResult
from claw_engine.agent.run import TRUSTED_SOURCES
from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.inbox.commands import (
    Command,
    CommandCall,
    Commands,
    Forward,
    is_stop_command,
    is_stop_phrase,
)
from claw_engine.inbox.entry import Entry
from claw_engine.inbox.live import LiveRuns
from claw_engine.inbox.model import Accepted, InboundMessage, Recovered
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.recovery import begun
from claw_engine.inbox.resume import Resumes
from claw_engine.inbox.rules import rules_for, without_directive
from claw_engine.inbox.supervisor import ended_data
from claw_engine.inbox.talks import Talks
from claw_engine.inbox.triggers import with_trigger
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.runs import AbortReason

log = logging.getLogger("claw.inbox")

COMMAND_SOURCES = TRUSTED_SOURCES | {"gateway"}
"""Where commands and stop phrases count by themselves. A channel vouches for its sender with
`commandAuthorized` in the message's `extra`."""
REMEMBERED_RUNS = 500
"""Ended runs whose result can still be asked for."""
STOP_SECONDS = 15.0
"""How long stopping runs may take at shutdown before the engine goes on without them."""


class ShuttingDown(ClawError):
    """No new messages: the engine is about to stop."""

    retryable = True


class QueueFull(ClawError):
    """The session's queue takes no more; the message was not accepted."""

    retryable = True


class Submitted(Struct, frozen=True):
    """What became of a message at the door. `run_ids` are the runs that a stop hit; `repeat`
    says that the id was accepted before."""

    run_id: str
    status: Literal["started", "in_flight", "ended", "stopped"]
    run_ids: tuple[str, ...] = ()
    repeat: bool = False


class Dispatcher:
    """Loop thread only."""

    def __init__(self, deps: DispatchDeps, commands: Commands) -> None:
        self._deps = deps
        self._commands = commands
        self._clock = deps.world.clock
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._closing = False
        self._live = LiveRuns(self._clock)
        self._talks = Talks(deps, self._emit, self._ended)
        self.resumes = Resumes(deps, self._talks, self._entries)

    # -- the door ------------------------------------------------------------------------------

    async def submit(self, message: InboundMessage) -> Submitted:
        """Accept a message; returns once it is durable and has its place.

        The same id again starts nothing. A stop phrase from somebody who may stops the session's
        runs instead. Raises ShuttingDown, QueueFull, StateDiskError.
        """
        may = may_command(message)
        if may and self._means_stop(message):
            stopped = self.abort(message.session_key)
            return Submitted(message.id, "stopped", tuple(stopped))
        if self._closing:
            raise ShuttingDown("The engine is stopping.", hint="Send it again in a moment.")
        if (state := self.known(message.id)) is not None:
            status: Literal["in_flight", "ended"] = "in_flight" if state == "active" else "ended"
            return Submitted(message.id, status, repeat=True)
        if may:
            message = with_trigger(message, self._deps.settings().session.reset_triggers)
        command = self._commands.find(message) if may else None
        if command is not None:
            forward = await self._answer(message, *command)
            if forward is None:
                return Submitted(message.id, "ended")
            message = replace(message, text=forward.text)
        return await self._accept(without_directive(message) if may else message)

    async def nest(
        self, message: InboundMessage, parent_id: str, lane: str = "nested"
    ) -> Submitted:
        """A run that another run waits for; the parent must be parked meanwhile.

        Takes its place past the session's queue. Raises LaneCycle when the two would wait for each
        other, ShuttingDown, StateDiskError.
        """
        if self._closing:
            raise ShuttingDown("The engine is stopping.")
        return await self._accept(message, parent_id=parent_id, lane=lane)

    async def _accept(
        self, message: InboundMessage, *, parent_id: str | None = None, lane: str = "main"
    ) -> Submitted:
        entry = self._entry(message)
        if parent_id is None and self._talks.refuses(entry):
            raise QueueFull(
                f"The queue of {message.session_key} is full ({entry.rules.cap} messages).",
                hint="Wait for an answer, or raise messages.queue.cap.",
            )
        self._entries[message.id] = entry
        try:
            accepted = await self._deps.journal.accept(message)
        except BaseException:
            self._entries.pop(message.id, None)
            raise
        if accepted.repeat:
            return self._repeat(entry, accepted)
        if parent_id is None:
            self._talks.admit(entry)
        else:
            self._talks.start(entry, lane=lane, parent_id=parent_id)
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
        await entry.wait(self._clock, timeout_s)
        return entry.result

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
        """Stop one run or all of a session, queued ones too; ids that are stopping now.

        The id of a message that another run answers means that run.
        """
        runs = self._deps.runs
        entry = self._entries.get(run_id) if run_id is not None else None
        if entry is not None and entry.lead is not None and entry.result is None:
            run_id = entry.lead.id
        wanted = [run.id for run in runs.of_session(session_key) if run_id in (None, run.id)]
        return [id_ for id_ in wanted if runs.abort(id_, reason)]

    def abort_all(self, reason: AbortReason = AbortReason.USER) -> list[str]:
        """Stop everything; ids that are stopping now."""
        return self._deps.runs.abort_all(reason)

    async def drain(self, timeout_s: float) -> bool:
        """Take nothing new and let runs end for `timeout_s` seconds; whether all did."""
        self._closing = True
        self._talks.close()
        await self._all_ended(self._talks.running(), timeout_s)
        return not self._talks.running()

    async def close(self, drain_s: float = 0.0) -> None:
        """Stop: no intake, bounded drain, abort the rest. Queued messages stay in the journal."""
        await self.drain(drain_s)
        self.abort_all(AbortReason.SHUTDOWN)
        await self._all_ended(self._active(), STOP_SECONDS)
        await self._talks.settle()
        for entry in self._active():
            log.error("run did not stop: runId=%s", entry.id)

    async def clear(self, session_key: str, timeout_s: float) -> bool:
        """Stop everything of a session because it starts anew; whether it ended in time."""
        mine = [
            entry
            for entry in self._active()
            if entry.run is not None and entry.message.session_key == session_key
        ]
        self.abort(session_key, reason=AbortReason.RESET)
        await self._all_ended(mine, timeout_s)
        return all(entry.result is not None for entry in mine)

    # -- what waits ----------------------------------------------------------------------------

    def drop(self, run_id: str) -> None:
        """Take a waiting message out of its queue; its sender is told. Raises InvalidRequest."""
        if not self._talks.drop(self._waiting(run_id)):
            raise InvalidRequest(f"Run {run_id} is going on already.", hint="Stop it instead.")

    def move(self, run_id: str, position: int) -> None:
        """Another place in the queue, 0 = next. Raises InvalidRequest."""
        if not self._talks.move(self._waiting(run_id), position):
            raise InvalidRequest(f"Run {run_id} waits in no queue.")

    def blockers(self, run_id: str) -> list[str]:
        """Run ids that go before this one."""
        entry = self._entries.get(run_id)
        return self._talks.blockers(run_id, entry.message.session_key) if entry else []

    def _waiting(self, run_id: str) -> Entry:
        entry = self._entries.get(run_id)
        if entry is None or entry.run is None or entry.result is not None:
            raise InvalidRequest(f"No run {run_id} waits.")
        return entry

    # -- restart -------------------------------------------------------------------------------

    async def recover(self, recovered: Recovered) -> None:
        """Settle what was interrupted by the resume policy, then start what had not begun, in
        order of acceptance."""
        unmarked = await begun(self._deps, recovered.not_started)
        await self.resumes.take_up([*recovered.interrupted, *unmarked])
        for accepted in recovered.not_started:
            if accepted not in unmarked:
                entry = self._entries[accepted.id] = self._entry(accepted.message)
                self._talks.admit(entry, recovered=True)

    # -- inside --------------------------------------------------------------------------------

    def _entry(self, message: InboundMessage) -> Entry:
        session = self._deps.sessions.get(message.session_key)
        return Entry(message, rules_for(self._deps.settings(), message, session))

    def _repeat(self, entry: Entry, accepted: Accepted) -> Submitted:
        """An id that the journal knows from before the restart."""
        if accepted.state in ("accepted", "started"):
            # Still open: `recover` is about to take it up.
            self._entries.pop(accepted.id, None)
            return Submitted(accepted.id, "in_flight", repeat=True)
        self._ended(entry, RunResult(accepted.state, accepted.state))
        return Submitted(accepted.id, "ended", repeat=True)

    def _ended(self, entry: Entry, result: RunResult) -> None:
        entry.settle(result)
        surplus = len(self._entries) - REMEMBERED_RUNS
        if surplus > 0:
            ended = (id_ for id_, e in self._entries.items() if e.result is not None)
            for id_ in list(itertools.islice(ended, surplus)):
                del self._entries[id_]

    def _emit(self, event: TraceEvent) -> None:
        self._live.record(event)
        self._deps.record(event)
        self._deps.publish(event)

    def _means_stop(self, message: InboundMessage) -> bool:
        if is_stop_command(message.text):
            return True
        return is_stop_phrase(message.text) and bool(
            self._deps.runs.of_session(message.session_key)
        )

    async def _answer(
        self, message: InboundMessage, command: Command, call: CommandCall
    ) -> Forward | None:
        """A command's answer, told like a run without a model; not part of the conversation.

        A command may hand the rest of its text on instead: then that is the message.
        """
        entry = self._entries[message.id] = Entry(message)
        began = self._clock.now_ms()
        try:
            answer = await command.run(call)
            if isinstance(answer, Forward):
                self._entries.pop(message.id, None)
                return answer
            text = answer
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
        self._ended(entry, result)
        return None

    def _tell(self, to: InboundMessage, seq: int, kind: TraceKind, **data: object) -> None:
        self._emit(TraceEvent(to.id, to.session_key, seq, self._clock.now_ms(), kind, data))

    def _active(self) -> list[Entry]:
        return [entry for entry in self._entries.values() if entry.result is None]

    async def _all_ended(self, active: list[Entry], timeout_s: float) -> None:
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


def may_command(message: InboundMessage) -> bool:
    """Whether the sender's commands and stop phrases count."""
    vouched = message.extra.get("commandAuthorized") is True
    return vouched or message.source in COMMAND_SOURCES
