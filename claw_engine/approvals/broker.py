"""Asks a person and waits: the queue of requests, the first answer, the history.

Owner of pending approvals. A request is on disk before anyone sees it, a decision before it takes
effect. It knows neither shells nor rules: it is handed a finished question and hands back its end.
Loop thread only; files are touched on the disk executor.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from claw_engine.approvals import grants, records
from claw_engine.approvals.answers import Answer, already, refuse
from claw_engine.approvals.archive import REMEMBERED, Archive
from claw_engine.approvals.errors import AlreadyKnown, BrokerClosed, JournalError, UnknownApproval
from claw_engine.approvals.events import (
    ApprovalRan,
    ApprovalRequested,
    ApprovalResolved,
    StandingChanged,
)
from claw_engine.approvals.grantbook import GrantBook
from claw_engine.approvals.grants import Grant
from claw_engine.approvals.journal import RequestJournal
from claw_engine.approvals.model import ApprovalAsk, ApprovalRecord, Decision, Outcome, Status
from claw_engine.approvals.waiting import Waiting
from claw_engine.errors import ClawError
from claw_engine.events import Event
from claw_engine.storage.errors import StateDiskError
from claw_engine.world import World

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_MS = 30 * 60 * 1000


class Broker:
    """The one place that asks. `publish` gets the events, `path` is the journal."""

    def __init__(
        self,
        world: World,
        publish: Callable[[Event], None],
        path: Path,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        session_id: Callable[[str], str] = lambda key: "",
    ) -> None:
        """`session_id` gives the id of a session's present life by its key."""
        self.timeout_ms = timeout_ms
        self._world = world
        self._publish = publish
        self._journal = RequestJournal(world, path)
        self._archive = Archive(world, self._journal)
        self.grants = GrantBook(
            world, path.with_name("grants.json"), lambda: publish(StandingChanged()), session_id
        )
        self._session_id = session_id
        self._waiting: dict[str, Waiting] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._stopped = False

    async def start(self) -> None:
        """Read history and grants; what a dead engine left open expires with reason `restart`.

        Raises JournalError.
        """
        await self.grants.load()
        try:
            found = await self._world.disk.run(self._journal.open, REMEMBERED)
        except StateDiskError as error:
            raise JournalError(error.title, hint=error.hint) from error
        pending = (record for record in found if record.status is Status.PENDING)
        left = [self._ended(record, Status.EXPIRED, None, "", "restart") for record in pending]
        if left:
            await self._write(*map(records.closed_line, left))
        ends = {record.id: record for record in left}
        for record in found:
            self._archive.add(ends.get(record.id, record))
        for record in left:
            self._publish(ApprovalResolved(record))

    async def close(self) -> None:
        """Expire what waits with reason `shutdown` and ask nobody any more."""
        self._stopped = True
        for waiting in list(self._waiting.values()):
            await self._expire(waiting, "shutdown")
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # ── asking ──────────────────────────────────────────────────────────────────────────────

    async def request(
        self,
        ask: ApprovalAsk,
        timeout_ms: int | None = None,
        *,
        on_pending: Callable[[ApprovalRecord], None] | None = None,
        by_grant: bool = True,
    ) -> Outcome:
        """Put a question and wait for its end, at most `timeout_ms` (default: the broker's).

        A grant that covers it answers at once, unless a person must (`by_grant` False).
        `on_pending` is called once it is visible.
        Cancelling the wait closes the request with reason `cancelled`. Raises JournalError when
        it cannot be made durable and BrokerClosed after `close`: then nobody was asked.
        """
        granted = await self.granted(ask) if by_grant else None
        if granted is not None:
            return granted
        record = await self.open(ask, timeout_ms)
        if on_pending is not None:
            on_pending(record)
        try:
            return Outcome(await self.wait(record.id))
        except asyncio.CancelledError:
            waiting = self._waiting.get(record.id)
            if waiting is not None:
                self._later(waiting, "cancelled")
            raise

    async def granted(self, ask: ApprovalAsk) -> Outcome | None:
        """The answer of a grant, recorded like any other; None when a person must be asked.

        Raises JournalError when the use cannot be recorded: then it does not count.
        """
        self._refuse_after_close()
        grant = self.grants.covering(ask)
        if grant is None:
            return None
        now = self._world.clock.now_ms()
        asked = ApprovalRecord(self._world.ids.uuid(), ask, now, now)
        how = f"covered by the {grant.span.value} grant of {grant.by}"
        ended = self._ended(asked, Status.RESOLVED, Decision.ALLOW_ONCE, "grant", how)
        ended = replace(ended, grant=grant.id)
        await self._write(records.requested_line(asked), records.closed_line(ended))
        await self.grants.used(grant, ask.command)
        self._archive.add(ended)
        self._publish(ApprovalResolved(ended))
        return Outcome(ended)

    async def open(
        self, ask: ApprovalAsk, timeout_ms: int | None = None, approval_id: str | None = None
    ) -> ApprovalRecord:
        """Put a question and return once it is visible; `wait` has its end.

        Raises JournalError, BrokerClosed, and AlreadyKnown for an id that is taken.
        """
        self._refuse_after_close()
        if approval_id is not None and self._known(approval_id) is not None:
            raise AlreadyKnown("approval id already pending", details={"id": approval_id})
        now = self._world.clock.now_ms()
        timeout = self.timeout_ms if timeout_ms is None else timeout_ms
        if ask.always.patterns:
            matches = self.recent_matches(ask.always.patterns)
            ask = replace(ask, always=replace(ask.always, recent_matches=matches))
        record = ApprovalRecord(approval_id or self._world.ids.uuid(), ask, now, now + timeout)
        waiting = Waiting(record)
        await self._write(records.requested_line(record))
        self._refuse_after_close()
        self._waiting[record.id] = waiting
        waiting.timer = self._world.clock.call_later(
            timeout / 1000, lambda: self._later(waiting, "timeout")
        )
        self._publish(ApprovalRequested(record))
        return record

    async def wait(self, approval_id: str) -> ApprovalRecord:
        """The end of a request, also of one that has ended. Giving up the wait decides nothing.

        Raises UnknownApproval.
        """
        waiting = self._waiting.get(approval_id)
        if waiting is not None:
            return await asyncio.shield(waiting.future)
        found = self._known(approval_id)
        if found is None:
            raise UnknownApproval("approval expired or not found")
        return found

    # ── answering ───────────────────────────────────────────────────────────────────────────

    async def resolve(
        self,
        approval_id: str,
        decision: Decision,
        by: str,
        reason: str = "",
        grant: grants.Wanted | None = None,
    ) -> ApprovalRecord:
        """Decide a pending request; the first answer wins.

        `approval_id` may be a unique prefix, in backticks or with blanks around it; `grant` lets
        the same, or its programs, go ahead later too. Raises UnknownApproval, AmbiguousApproval,
        AlreadyResolved, NotOffered, or JournalError (then nothing was decided).
        """
        (found,) = await self.resolve_many((approval_id,), Answer(decision, by, reason, grant))
        if isinstance(found, ClawError):
            raise found
        return found

    async def resolve_many(
        self, approval_ids: Sequence[str], answer: Answer
    ) -> tuple[ApprovalRecord | ClawError, ...]:
        """One answer to several requests, durable together; each its record or why it is not
        decided. Never raises for what is wrong with a single one."""
        out: list[ApprovalRecord | ClawError] = []
        taken: list[tuple[Waiting, ApprovalRecord]] = []
        for approval_id in approval_ids:
            try:
                waiting = self._free(approval_id, answer)
                if self._world.clock.now_ms() >= waiting.record.expires_at_ms:
                    late = await self._expire(waiting, "timeout")
                    raise already(late or waiting.end or waiting.record)
            except ClawError as error:
                out.append(error)
                continue
            ended = self._ended(
                waiting.record, Status.RESOLVED, answer.decision, answer.by, answer.reason
            )
            waiting.end = ended
            taken.append((waiting, ended))
            out.append(ended)
        if not taken:
            return tuple(out)
        try:
            ends = await self._close(taken, answer)
        except ClawError as error:
            return tuple(error if isinstance(one, ApprovalRecord) else one for one in out)
        final = {record.id: record for record in ends}
        return tuple(final[one.id] if isinstance(one, ApprovalRecord) else one for one in out)

    async def cancel(self, run_id: str, reason: str) -> tuple[ApprovalRecord, ...]:
        """Expire every pending request of a run (it was aborted); the records that were closed."""
        mine = [w for w in self._waiting.values() if w.record.ask.run_id == run_id]
        closed = [await self._expire(waiting, reason) for waiting in mine]
        return tuple(record for record in closed if record is not None)

    async def withdraw(self, approval_id: str, reason: str) -> None:
        """Who asked does not want to know any more: the request expires with `reason`."""
        waiting = self._waiting.get(approval_id)
        if waiting is not None:
            await self._expire(waiting, reason)

    async def record_ran(self, approval_id: str, ran: Mapping[str, object]) -> None:
        """Add what an allowed request did (pid, exit code, …) to the history.

        A full disk loses the note, not the run: the failure is logged.
        """
        try:
            await self._write(records.ran_line(approval_id, self._world.clock.now_ms(), ran))
        except JournalError as error:
            log.warning("approval history: %s", error.sentence())
        record = self._archive.ran(approval_id, ran)
        if record is not None:
            self._publish(ApprovalRan(record))

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    def unanswered(self, run_id: str) -> frozenset[str]:
        """Ids of a run's exec calls that an engine left waiting when it died: none has begun."""
        return self._archive.unanswered(run_id)

    def pending(self) -> tuple[ApprovalRecord, ...]:
        """What waits now, oldest first."""
        return tuple(w.record for w in self._waiting.values() if w.end is None)

    def get(self, id_or_prefix: str) -> ApprovalRecord | None:
        """A request by id or unique prefix, None when there is none. Raises AmbiguousApproval."""
        try:
            return self._find(id_or_prefix)
        except UnknownApproval:
            return None

    async def history(self, limit: int) -> tuple[ApprovalRecord, ...]:
        """Closed requests, newest first; more than are in memory are read from the file's end."""
        return await self._archive.history(limit)

    def recent_matches(self, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Which of the last 100 commands a rule for `patterns` would have matched, newest first."""
        return self._archive.recent_matches(patterns)

    # ── inside ──────────────────────────────────────────────────────────────────────────────

    def _refuse_after_close(self) -> None:
        if self._stopped:
            raise BrokerClosed("Nobody can be asked: the engine is stopping.")

    def _find(self, text: str) -> ApprovalRecord:
        return self._archive.find(text, (w.record for w in self._waiting.values()))

    def _known(self, approval_id: str) -> ApprovalRecord | None:
        waiting = self._waiting.get(approval_id)
        return waiting.record if waiting is not None else self._archive.get(approval_id)

    def _free(self, approval_id: str, answer: Answer) -> Waiting:
        """The request that this answer may decide. Raises what `resolve` says."""
        record = self._find(approval_id)
        waiting = self._waiting.get(record.id)
        if waiting is None:
            raise already(record)
        refuse(record, answer)
        if waiting.end is not None:  # somebody else's answer is being written at this moment
            raise already(waiting.end)
        return waiting

    async def _expire(self, waiting: Waiting, reason: str) -> ApprovalRecord | None:
        """End a request without a decision. It ends in memory even when the disk is full: the
        journal then still says pending, which the next start reads as expired."""
        if waiting.end is not None:
            return None
        record = waiting.end = self._ended(waiting.record, Status.EXPIRED, None, "", reason)
        try:
            await self._close([(waiting, record)], None)
        except ClawError as error:
            log.warning("approval %s expires unwritten: %s", record.id, error.sentence())
            self._finish(waiting, record)
        return record

    async def _close(
        self, taken: Sequence[tuple[Waiting, ApprovalRecord]], answer: Answer | None
    ) -> Sequence[ApprovalRecord]:
        writing = asyncio.ensure_future(self._write_and_finish(taken, answer))
        writing.add_done_callback(lambda task: task.cancelled() or task.exception())
        # A caller who goes away in the middle must not leave a decision half made.
        return await asyncio.shield(writing)

    async def _write_and_finish(
        self, taken: Sequence[tuple[Waiting, ApprovalRecord]], answer: Answer | None
    ) -> Sequence[ApprovalRecord]:
        made: list[Grant] = []
        ends = [(waiting, record) for waiting, record in taken]
        try:
            if answer is not None and answer.grant is not None:
                for index, (waiting, record) in enumerate(ends):
                    grant = await self._grant(record, answer.grant)
                    made.append(grant)
                    ends[index] = (waiting, replace(record, grant=grant.id))
            await self._write(*(records.closed_line(record) for _, record in ends))
        except ClawError:
            for grant in made:
                await self.grants.drop(grant.id)
            for waiting, record in taken:
                waiting.end = None
                if record.decision and self._world.clock.now_ms() >= record.expires_at_ms:
                    self._later(waiting, "timeout")
            raise
        for waiting, record in ends:
            self._finish(waiting, record)
        return [record for _, record in ends]

    async def _grant(self, record: ApprovalRecord, wanted: grants.Wanted) -> Grant:
        grant = grants.make(
            record.ask,
            wanted,
            grant_id=self._world.ids.uuid(),
            approval_id=record.id,
            by=record.by,
            now_ms=self._world.clock.now_ms(),
            session_id=self._session_id(record.ask.session_key),
        )
        return await self.grants.add(grant)

    def _ended(
        self, record: ApprovalRecord, status: Status, decision: Decision | None, by: str, why: str
    ) -> ApprovalRecord:
        now = self._world.clock.now_ms()
        return replace(
            record, status=status, decision=decision, by=by, reason=why, decided_at_ms=now
        )

    def _finish(self, waiting: Waiting, record: ApprovalRecord) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        self._waiting.pop(record.id, None)
        self._archive.add(record)
        if not waiting.future.done():
            waiting.future.set_result(record)
        self._publish(ApprovalResolved(record))

    async def _write(self, *lines: Mapping[str, object]) -> None:
        try:
            await self._world.disk.run(self._journal.append, *lines)
        except StateDiskError as error:
            raise JournalError(error.title, hint=error.hint) from error

    def _later(self, waiting: Waiting, reason: str) -> None:
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(
            self._expire(waiting, reason), name="approval-expiry"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
