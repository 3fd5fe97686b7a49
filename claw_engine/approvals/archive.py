"""Requests that have ended: the newest in memory, all of them in the journal.

Finds a request by what a person typed of its id. It decides nothing and asks nobody.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from claw_engine.approvals.errors import AmbiguousApproval, UnknownApproval
from claw_engine.approvals.journal import RequestJournal
from claw_engine.approvals.model import ApprovalKind, ApprovalRecord, Status
from claw_engine.approvals.recent import matched_by
from claw_engine.world import World

REMEMBERED = 500
"""Closed requests kept in memory for `get`, `history` and what an "always" would have matched."""
RECENT = 100


class Archive:
    """Loop thread only; the file is read on the disk executor."""

    def __init__(self, world: World, journal: RequestJournal) -> None:
        self._world = world
        self._journal = journal
        self._closed: OrderedDict[str, ApprovalRecord] = OrderedDict()

    def add(self, record: ApprovalRecord) -> None:
        """Remember a request that has ended; the oldest one is left to the file."""
        self._closed[record.id] = record
        if len(self._closed) > REMEMBERED:
            self._closed.popitem(last=False)

    def get(self, approval_id: str) -> ApprovalRecord | None:
        """A request in memory by its whole id."""
        return self._closed.get(approval_id)

    def ran(self, approval_id: str, ran: Mapping[str, object]) -> ApprovalRecord | None:
        """Add what an allowed request did; the record, None when it is no longer in memory."""
        record = self._closed.get(approval_id)
        if record is None:
            return None
        self._closed[approval_id] = record = replace(record, ran=dict(ran))
        return record

    def unanswered(self, run_id: str) -> frozenset[str]:
        """Ids of a run's exec calls whose question a restart left without an answer."""
        return frozenset(
            record.ask.tool_call_id
            for record in self._closed.values()
            if record.reason == "restart" and record.ask.run_id == run_id
            if record.ask.kind is ApprovalKind.EXEC
        )

    async def history(self, limit: int) -> tuple[ApprovalRecord, ...]:
        """Newest first; more than are in memory are read from the file's end."""
        if limit <= len(self._closed) or len(self._closed) < REMEMBERED:
            newest = list(self._closed.values())
        else:
            everything = await self._world.disk.run(self._journal.tail, limit)
            newest = [r for r in everything if r.status is not Status.PENDING]
        return tuple(reversed(newest[-limit:] if limit > 0 else []))

    def recent_matches(self, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Which of the last 100 commands a rule for `patterns` would have matched, newest first."""
        asks = [r.ask for r in self._closed.values() if r.ask.kind is ApprovalKind.EXEC]
        newest = reversed(asks[-RECENT:])
        return tuple(dict.fromkeys(a.command for a in newest if matched_by(a, patterns)))

    def find(self, text: str, waiting: Iterable[ApprovalRecord]) -> ApprovalRecord:
        """A request by id or unique prefix, in backticks or with blanks around it; one that waits
        is meant before one that has ended. Raises UnknownApproval, AmbiguousApproval."""
        typed = text.strip().strip("`").strip()
        wanted = typed.lower()
        everything = {**self._closed, **{record.id: record for record in waiting}}
        for whole in (typed, wanted):
            if whole in everything:
                return everything[whole]
        fits = [r for r in everything.values() if wanted and r.id.lower().startswith(wanted)]
        fits = [r for r in fits if r.status is Status.PENDING] or fits
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
