"""Who waits for whom in each conversation: admits messages, keeps queues, launches their runs.

One talk a session while anything goes on in it. A message that is admitted runs, waits, enters the
run that is going on, or takes its place (`queue_modes`); whatever becomes of it, its sender is
told. All stopping comes through `Runs.abort`. Loop thread only; writes nothing itself but marks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence

from msgspec import Struct, field

from claw_engine.agent.ports import RunError, RunResult
from claw_engine.agent.record import before_text
from claw_engine.agent.steering import Steered
from claw_engine.agent.steps import Emit, Steps
from claw_engine.errors import ClawError
from claw_engine.inbox.entry import Entry, started
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.queue_modes import Action, Batch, FollowUps, decide
from claw_engine.inbox.supervisor import Case, Supervisor, ended_data
from claw_engine.lanes import LanesChanged
from claw_engine.protocol.trace import TraceKind
from claw_engine.runs import AbortReason, RunState
from claw_engine.world import Timer

log = logging.getLogger("claw.inbox")

_FULL = RunError(
    "The queue of this session was full; the message was dropped.",
    "Wait for answers, or raise messages.queue.cap.",
)
_DROPPED = RunError("Taken out of the queue by the operator; it was not answered.")
_SHORTENED = (
    "The queue of this session is full: only the first words of this message will reach the model."
)


class _Talk(Struct, eq=False):
    key: str
    queue: FollowUps[Entry] = field(default_factory=FollowUps)
    cases: dict[str, Case] = field(default_factory=dict)
    """Launched runs by id; more than one only while an interrupted one ends."""
    offered: dict[Entry, tuple[Case, Steered]] = field(default_factory=dict)
    """Words that a run was given and has not taken yet."""
    timer: Timer | None = None

    @property
    def busy(self) -> bool:
        return bool(self.cases or self.queue)

    @property
    def ahead(self) -> list[str]:
        """Everything that goes before a newcomer."""
        return [*self.cases, *(entry.id for entry in self.queue.values)]


class Talks:
    """`on_end` is told of every entry's end, once."""

    def __init__(
        self, deps: DispatchDeps, emit: Emit, on_end: Callable[[Entry, RunResult], None]
    ) -> None:
        self._deps = deps
        self._clock = deps.world.clock
        self._emit = emit
        self._on_end = on_end
        self._supervisor = Supervisor(deps, on_end)
        self._talks: dict[str, _Talk] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._closing = False

    # -- in ------------------------------------------------------------------------------------

    def refuses(self, entry: Entry) -> bool:
        """Whether the queue is full and must turn the newcomer away before it is accepted."""
        talk = self._talks.get(entry.message.session_key)
        if talk is None or not talk.busy:
            return False
        waits = decide(entry.rules.mode, busy=True, steerable=self._host(talk, entry) is not None)
        return waits is Action.ENQUEUE and talk.queue.refuses(entry.rules)

    def admit(self, entry: Entry, *, recovered: bool = False) -> None:
        """Give an accepted message its place. `recovered` ones only ever run or wait, uncapped."""
        talk = self._talk(entry.message.session_key)
        self._create(entry, "main", None)
        host = None if recovered else self._host(talk, entry)
        action = decide(entry.rules.mode, busy=talk.busy, steerable=host is not None)
        if recovered and action is not Action.RUN:
            action = Action.ENQUEUE
        told: dict[str, object] = {}
        if host is not None and action in (Action.STEER, Action.STEER_AND_ENQUEUE):
            told["steeredInto"] = host.lead.id
        self._tell_queued(entry, "main", talk.ahead, **told)
        match action:
            case Action.RUN:
                self._launch(talk, Batch((entry,)))
            case Action.ENQUEUE:
                self._enqueue(talk, entry, force=recovered)
            case Action.STEER | Action.STEER_AND_ENQUEUE if host is not None:
                self._offer(talk, host, entry, keep=action is Action.STEER_AND_ENQUEUE)
            case _:
                for case in list(talk.cases.values()):
                    self._deps.runs.abort(case.lead.id, AbortReason.INTERRUPT)
                self._launch(talk, Batch((entry,)))

    def start(
        self, entry: Entry, members: Sequence[Entry] = (), *, text: str | None = None,
        lane: str = "main", parent_id: str | None = None,
    ) -> None:  # fmt: skip
        """Launch at once, past the queue: a nested run, or one that is taken up again.

        `text` is what the model reads, `parent_id` the run that waits for it. Raises LaneCycle.
        """
        talk = self._talk(entry.message.session_key)
        everyone = (entry, *members)
        for each in everyone:
            self._create(each, lane, parent_id)
            self._tell_queued(each, lane, talk.ahead)
            started(each)[0].cancel = _canceller(self._cancel, talk, each)
        try:
            self._launch(talk, Batch(everyone), text=text, lane=lane, parent_id=parent_id)
        except ClawError as error:
            for each in everyone:
                self._end(each, RunState.FAILED, "error", RunError(error.title, error.hint))
            self._look(talk)
            raise

    def _talk(self, key: str) -> _Talk:
        return self._talks.setdefault(key, _Talk(key))

    def _create(self, entry: Entry, lane: str, parent_id: str | None) -> None:
        message, deps = entry.message, self._deps
        entry.run = deps.runs.create(
            message.id, session_key=message.session_key, agent_id=message.agent_id, lane=lane,
            settings=deps.settings(), parent_id=parent_id,
        )  # fmt: skip
        entry.steps = Steps(entry.run, deps.runs, self._clock, self._emit)

    def _tell_queued(self, entry: Entry, lane: str, ahead: list[str], **more: object) -> None:
        message = entry.message
        started(entry)[1].tell(
            TraceKind.RUN_QUEUED, message=message.text, source=message.source, lane=lane,
            waitingBehind=ahead, **more,
        )  # fmt: skip

    # -- waiting -------------------------------------------------------------------------------

    def _enqueue(self, talk: _Talk, entry: Entry, *, force: bool = False) -> None:
        run, _ = started(entry)
        run.cancel = lambda: self._cancel(talk, entry)
        pushed = talk.queue.push(
            entry, entry.message.text, entry.route, entry.rules, self._clock.now_ms(), force=force
        )
        for other in pushed.summarized:
            started(other)[1].notice("warn", _SHORTENED)
        for other in pushed.dropped:
            self.drop(other, _FULL)
        self._look(talk)
        self._deps.publish(LanesChanged())

    def drop(self, entry: Entry, why: RunError = _DROPPED) -> bool:
        """Take a waiting message out; its sender is told. False if it waits no more."""
        run, _ = started(entry)
        if run.state is not RunState.QUEUED:
            return False
        entry.why = why
        return self._deps.runs.abort(run.id, AbortReason.DROPPED)

    def move(self, entry: Entry, position: int) -> bool:
        """Another place for a waiting message (0 = next in its talk, or in its lane)."""
        talk = self._talks.get(entry.message.session_key)
        moved = talk is not None and talk.queue.move(entry, position)
        if moved:
            self._deps.publish(LanesChanged())
        return moved or self._deps.lanes.move(entry.id, position)

    def waiting(self, session_key: str) -> tuple[Entry, ...]:
        """What waits in a session, in the order of its turn."""
        talk = self._talks.get(session_key)
        return talk.queue.values if talk is not None else ()

    def blockers(self, run_id: str, session_key: str) -> list[str]:
        """Run ids that go before this one."""
        talk = self._talks.get(session_key)
        ids = [entry.id for entry in talk.queue.values] if talk is not None else []
        if talk is None or run_id not in ids:
            return self._deps.lanes.blockers(run_id)
        return [*talk.cases, *ids[: ids.index(run_id)]]

    def _cancel(self, talk: _Talk, entry: Entry) -> None:
        """A message that has not been answered is stopped, wherever it waits."""
        talk.queue.remove(entry)
        if (offered := talk.offered.pop(entry, None)) is not None:
            case, words = offered
            if case.execution is not None:
                case.execution.steering.withdraw(words)
        for case in talk.cases.values():
            if not case.begun and entry in case.members:
                case.members.remove(entry)
        reason = started(entry)[0].scope.reason or AbortReason.USER
        self._end(entry, RunState.ABORTED, reason.value, entry.why)
        self._look(talk)
        self._deps.publish(LanesChanged())

    def _end(self, entry: Entry, state: RunState, reason: str, why: RunError | None) -> None:
        """The end of a message that no run has answered."""
        _, steps = started(entry)
        result = RunResult(state.value, reason, error=why)
        steps.state(state, reason)
        steps.tell(TraceKind.RUN_ENDED, **ended_data(result))
        if reason != AbortReason.SHUTDOWN.value:  # then it runs after the next start
            self._write(self._mark(entry, state.value, reason))
        self._on_end(entry, result)

    async def _mark(self, entry: Entry, mark: str, detail: str) -> None:
        try:
            await self._deps.journal.mark(entry.id, mark, detail)
        except (ClawError, OSError) as error:
            log.error("end not recorded: runId=%s %s", entry.id, error)

    def _write(self, what: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(what)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    # -- steering ------------------------------------------------------------------------------

    def _host(self, talk: _Talk, entry: Entry) -> Case | None:
        """The run of a talk that takes words from this sender right now."""
        for case in talk.cases.values():
            execution, run = case.execution, case.run
            if (
                execution is not None
                and execution.steering.open
                and not run.scope.aborted
                and run.state not in (RunState.COMPACTING, RunState.DELIVERING)
                and case.lead.route == entry.route
            ):
                return case
        return None

    def _offer(self, talk: _Talk, case: Case, entry: Entry, *, keep: bool) -> None:
        message = entry.message

        def taken() -> None:
            talk.offered.pop(entry, None)
            if keep:
                words = "Told to the run that is going on; it keeps its place in the queue."
                started(entry)[1].notice("info", words)
            else:
                self._supervisor.join(case, entry, "steered")
                self._deps.publish(LanesChanged())

        before = before_text(message.extra)
        run_id = "" if keep else entry.id
        words = Steered(message.text, message.received_ms, run_id, taken, before)
        assert case.execution is not None
        case.execution.steering.offer(words)
        talk.offered[entry] = (case, words)
        if keep:
            self._enqueue(talk, entry)
        else:
            started(entry)[0].cancel = lambda: self._cancel(talk, entry)

    # -- running -------------------------------------------------------------------------------

    def _launch(
        self, talk: _Talk, batch: Batch[Entry], *, text: str | None = None, lane: str = "main",
        parent_id: str | None = None,
    ) -> None:  # fmt: skip
        lead, *others = batch.members
        ticket = self._deps.lanes.enqueue(lead.id, talk.key, lane, parent_id)
        case = Case(
            lead, [lead, *others], ticket,
            on_free=lambda case: self._free(talk, case),
            behind=lambda: [entry.id for entry in talk.queue.values],
            summarized=frozenset(batch.summarized), lost=batch.lost, text=text,
        )  # fmt: skip
        talk.cases[lead.id] = case
        self._supervisor.launch(case)

    def _free(self, talk: _Talk, case: Case) -> None:
        if talk.cases.pop(case.lead.id, None) is None:
            return
        back: list[Entry] = []
        if not case.begun:
            back += (entry for entry in case.members if entry is not case.lead)
            case.members[:] = [case.lead]
        for entry, (host, _) in list(talk.offered.items()):
            if host is case:
                del talk.offered[entry]
                if entry not in talk.queue.values:
                    back.append(entry)
        for entry in back:
            started(entry)[0].cancel = _canceller(self._cancel, talk, entry)
        if back and not talk.queue:
            talk.queue.rules = back[-1].rules
        talk.queue.put_back((entry, entry.message.text, entry.route) for entry in back)
        self._look(talk)

    def _look(self, talk: _Talk) -> None:
        """Start what is next, once the session is free and has been quiet for its time."""
        if talk.timer is not None:
            talk.timer.cancel()
            talk.timer = None
        if talk.cases or self._closing:
            return
        if not talk.queue:
            if self._talks.get(talk.key) is talk:
                del self._talks[talk.key]
            return
        wait_ms = talk.queue.due_ms(self._clock.now_ms())
        if wait_ms > 0:
            talk.timer = self._clock.call_later(wait_ms / 1000, lambda: self._look(talk))
        elif (batch := talk.queue.take()) is not None:
            self._launch(talk, batch)

    def running(self) -> list[Entry]:
        """Leads of the runs that were launched and have not ended."""
        return [case.lead for talk in self._talks.values() for case in talk.cases.values()]

    # -- out -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Launch nothing more: what waits stays in the journal."""
        self._closing = True

    async def settle(self) -> None:
        """Wait for marks that are being written."""
        while self._writes:
            await asyncio.wait(self._writes)


def _canceller(
    cancel: Callable[[_Talk, Entry], None], talk: _Talk, entry: Entry
) -> Callable[[], None]:
    return lambda: cancel(talk, entry)
