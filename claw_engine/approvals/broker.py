"""Asks a person and waits: the queue of requests, the first answer, the history.

Owner of pending approvals. A request is on disk before anyone sees it, a decision before it takes
effect. It knows neither shells nor rules: it is handed a finished question and hands back its end.
Loop thread only; files are touched on the disk executor.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from claw_engine.approvals import records
from claw_engine.approvals.errors import (
    AlreadyResolved,
    AmbiguousApproval,
    BrokerClosed,
    JournalError,
    NotOffered,
    UnknownApproval,
)
from claw_engine.approvals.events import ApprovalRequested, ApprovalResolved
from claw_engine.approvals.journal import RequestJournal
from claw_engine.approvals.model import (
    ApprovalAsk,
    ApprovalKind,
    ApprovalRecord,
    Decision,
    Outcome,
    Status,
)
from claw_engine.approvals.recent import matched_by
from claw_engine.events import Event
from claw_engine.storage.errors import StateDiskError
from claw_engine.world import Timer, World

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_MS = 30 * 60 * 1000
REMEMBERED = 500
"""Closed requests kept in memory for `get`, `history` and what an "always" would have matched."""
RECENT = 100


class _Waiting:
    """A pending request: its timer and the future its asker waits on."""

    def __init__(self, record: ApprovalRecord, future: asyncio.Future[ApprovalRecord]) -> None:
        self.record = record
        self.future = future
        self.timer: Timer | None = None
        self.end: ApprovalRecord | None = None  # set while its end is being written


class Broker:
    """The one place that asks. `publish` gets the events, `path` is the journal."""

    def __init__(
        self,
        world: World,
        publish: Callable[[Event], None],
        path: Path,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> None:
        self.timeout_ms = timeout_ms
        self._world = world
        self._publish = publish
        self._journal = RequestJournal(world, path)
        self._waiting: dict[str, _Waiting] = {}
        self._closed: deque[ApprovalRecord] = deque(maxlen=REMEMBERED)
        self._tasks: set[asyncio.Task[ApprovalRecord | None]] = set()
        self._stopped = False

    async def start(self) -> None:
        """Read the history; whatever a dead engine left open expires with reason `restart`.

        Raises JournalError.
        """
        try:
            found = await self._world.disk.run(self._journal.open, REMEMBERED)
        except StateDiskError as error:
            raise JournalError(error.title, hint=error.hint) from error
        now = self._world.clock.now_ms()
        for record in found:
            if record.status is Status.PENDING:
                record = replace(  # noqa: PLW2901 -- the record's next state, not another one
                    record, status=Status.EXPIRED, reason="restart", decided_at_ms=now
                )
                await self._write(records.closed_line(record))
                self._publish(ApprovalResolved(record))
            self._closed.append(record)

    async def close(self) -> None:
        """Expire what waits with reason `shutdown` and ask nobody any more."""
        self._stopped = True
        for waiting in list(self._waiting.values()):
            await self._expire(waiting, "shutdown")
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def request(
        self,
        ask: ApprovalAsk,
        timeout_ms: int | None = None,
        *,
        on_pending: Callable[[ApprovalRecord], None] | None = None,
    ) -> Outcome:
        """Put a question and wait for its end, at most `timeout_ms` (default: the broker's).

        `on_pending` is called once it is visible. Cancelling the wait closes the request with
        reason `cancelled`. Raises JournalError when it cannot be made durable and BrokerClosed
        after `close`: then nobody was asked.
        """
        self._refuse_after_close()
        now = self._world.clock.now_ms()
        timeout = self.timeout_ms if timeout_ms is None else timeout_ms
        ask = self._with_recent(ask)
        record = ApprovalRecord(self._world.ids.uuid(), ask, now, now + timeout)
        await self._write(records.requested_line(record))
        self._refuse_after_close()
        waiting = _Waiting(record, asyncio.get_running_loop().create_future())
        self._waiting[record.id] = waiting
        waiting.timer = self._world.clock.call_later(
            timeout / 1000, lambda: self._later(waiting, "timeout")
        )
        self._publish(ApprovalRequested(record))
        if on_pending is not None:
            on_pending(record)
        try:
            return Outcome(await waiting.future)
        except asyncio.CancelledError:
            self._later(waiting, "cancelled")
            raise

    async def resolve(
        self, approval_id: str, decision: Decision, by: str, reason: str = ""
    ) -> ApprovalRecord:
        """Decide a pending request; the first answer wins.

        `approval_id` may be a unique prefix, in backticks or with blanks around it. Raises
        UnknownApproval, AmbiguousApproval, AlreadyResolved, NotOffered, or JournalError (then
        nothing was decided).
        """
        record = self._find(approval_id)
        waiting = self._waiting.get(record.id)
        if waiting is None:
            raise _already(record)
        offer = record.ask.always
        if decision is Decision.ALLOW_ALWAYS and not offer.patterns:
            raise NotOffered(
                f"This request cannot be allowed for ever: {offer.refusal or 'no rule fits it'}.",
                hint="Allow it once, or deny it.",
            )
        if waiting.end is not None:  # somebody else's answer is being written at this moment
            raise _already(waiting.end)
        if self._world.clock.now_ms() >= record.expires_at_ms:
            late = await self._expire(waiting, "timeout")
            raise _already(late or record)
        return await self._close(
            waiting, self._ended(record, Status.RESOLVED, decision, by, reason)
        )

    async def cancel(self, run_id: str, reason: str) -> tuple[ApprovalRecord, ...]:
        """Expire every pending request of a run (it was aborted); the records that were closed."""
        mine = [w for w in self._waiting.values() if w.record.ask.run_id == run_id]
        closed = [await self._expire(waiting, reason) for waiting in mine]
        return tuple(record for record in closed if record is not None)

    async def record_ran(self, approval_id: str, ran: Mapping[str, object]) -> None:
        """Add what an allowed request did (pid, exit code, …) to the history.

        A full disk loses the note, not the run: the failure is logged.
        """
        try:
            await self._write(records.ran_line(approval_id, self._world.clock.now_ms(), ran))
        except JournalError as error:
            log.warning("approval history: %s", error.sentence())
        for index, record in enumerate(self._closed):
            if record.id == approval_id:
                self._closed[index] = replace(record, ran=dict(ran))

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
        if limit <= len(self._closed) or len(self._closed) < REMEMBERED:
            newest = list(self._closed)
        else:
            everything = await self._world.disk.run(self._journal.tail, limit)
            newest = [r for r in everything if r.status is not Status.PENDING]
        return tuple(reversed(newest[-limit:] if limit > 0 else []))

    def recent_matches(self, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Which of the last 100 commands a rule for `patterns` would have matched, newest first."""
        recent = [r.ask for r in self._closed if r.ask.kind is ApprovalKind.EXEC][-RECENT:]
        return tuple(dict.fromkeys(a.command for a in reversed(recent) if matched_by(a, patterns)))

    # inside

    def _refuse_after_close(self) -> None:
        if self._stopped:
            raise BrokerClosed("Nobody can be asked: the engine is stopping.")

    def _with_recent(self, ask: ApprovalAsk) -> ApprovalAsk:
        if not ask.always.patterns:
            return ask
        matches = self.recent_matches(ask.always.patterns)
        return replace(ask, always=replace(ask.always, recent_matches=matches))

    async def _expire(self, waiting: _Waiting, reason: str) -> ApprovalRecord | None:
        """End a request without a decision. It ends in memory even when the disk is full: the
        journal then still says pending, which the next start reads as expired."""
        if waiting.end is not None:
            return None
        record = self._ended(waiting.record, Status.EXPIRED, None, "", reason)
        try:
            return await self._close(waiting, record)
        except JournalError as error:
            log.warning("approval %s expires unwritten: %s", record.id, error.sentence())
            self._finish(waiting, record)
            return record

    async def _close(self, waiting: _Waiting, record: ApprovalRecord) -> ApprovalRecord:
        waiting.end = record
        writing = asyncio.ensure_future(self._write_and_finish(waiting, record))
        writing.add_done_callback(lambda task: task.cancelled() or task.exception())
        # A caller who goes away in the middle must not leave a decision half made.
        await asyncio.shield(writing)
        return record

    async def _write_and_finish(self, waiting: _Waiting, record: ApprovalRecord) -> None:
        try:
            await self._write(records.closed_line(record))
        except JournalError:
            waiting.end = None
            if record.decision and self._world.clock.now_ms() >= record.expires_at_ms:
                self._later(waiting, "timeout")
            raise
        self._finish(waiting, record)

    def _ended(
        self,
        record: ApprovalRecord,
        status: Status,
        decision: Decision | None,
        by: str,
        reason: str,
    ) -> ApprovalRecord:
        return replace(
            record,
            status=status,
            decision=decision,
            by=by,
            reason=reason,
            decided_at_ms=self._world.clock.now_ms(),
        )

    def _finish(self, waiting: _Waiting, record: ApprovalRecord) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        self._waiting.pop(record.id, None)
        self._closed.append(record)
        if not waiting.future.done():
            waiting.future.set_result(record)
        self._publish(ApprovalResolved(record))

    def _find(self, text: str) -> ApprovalRecord:
        wanted = text.strip().strip("`").strip().lower()
        everything = {r.id: r for r in self._closed}
        everything.update((key, w.record) for key, w in self._waiting.items())
        if wanted in everything:
            return everything[wanted]
        fits = [r for r in everything.values() if wanted and r.id.startswith(wanted)]
        waiting = [r for r in fits if r.status is Status.PENDING]
        fits = waiting or fits
        if not fits:
            raise UnknownApproval(
                "unknown approval id", hint="The list of waiting requests has the ids."
            )
        if len(fits) > 1:
            ids = ", ".join(record.id for record in fits)
            raise AmbiguousApproval(
                f"{wanted} fits more than one request: {ids}.",
                hint="Give more of the id.",
                details={"ids": [record.id for record in fits]},
            )
        return fits[0]

    async def _write(self, line: Mapping[str, object]) -> None:
        try:
            await self._world.disk.run(self._journal.append, line)
        except StateDiskError as error:
            raise JournalError(error.title, hint=error.hint) from error

    def _later(self, waiting: _Waiting, reason: str) -> None:
        task = asyncio.get_running_loop().create_task(
            self._expire(waiting, reason), name="approval-expiry"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _already(record: ApprovalRecord) -> AlreadyResolved:
    if record.decision is None:
        title = f"already expired ({record.reason})"
    else:
        title = f"already resolved by {record.by or 'someone'} ({record.decision.value})"
    return AlreadyResolved(title, details={"id": record.id, "status": record.status.value})
