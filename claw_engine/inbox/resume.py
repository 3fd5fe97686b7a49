"""What becomes of runs that a restart cut short, by `claw.resume`: ask, auto or never.

Their transcripts are made truthful first, whatever the policy (`recovery`). A run that is taken up
again is a new turn under its old id: the model reads what was asked and which calls' outcome is
unknown; no call is spawned again by us. Until somebody decides the journal keeps the run open.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.agent.record import RESUMED_FIELD
from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.events import Notice
from claw_engine.inbox.entry import Entry
from claw_engine.inbox.model import Accepted, InboundMessage, Mark
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.queue_modes import batch_text
from claw_engine.inbox.recovery import Interrupted, settle_interrupted
from claw_engine.inbox.talks import Talks
from claw_engine.protocol.names import RESUME_NOTE as RESUME_NOTE

log = logging.getLogger("claw.inbox")

NOTICE = "runs-interrupted"
_SHOWN = 200


class _Waiting(Struct, eq=False):
    """A run that waits for a decision, with all messages it was to answer."""

    lead: InboundMessage
    members: list[InboundMessage]
    since_ms: int

    def to_json(self) -> dict[str, object]:
        return {
            "runId": self.lead.id,
            "sessionKey": self.lead.session_key,
            "messages": [message.id for message in self.members],
            "text": self.lead.text[:_SHOWN],
            "source": self.lead.source,
            "receivedAtMs": self.lead.received_ms,
            "interruptedAtMs": self.since_ms,
        }


class Resumes:
    """Loop thread only. `entries` are the dispatcher's: a waiting run reads as interrupted."""

    def __init__(
        self, deps: DispatchDeps, talks: Talks, entries: MutableMapping[str, Entry]
    ) -> None:
        self._deps = deps
        self._talks = talks
        self._entries = entries
        self._waiting: dict[str, _Waiting] = {}

    async def take_up(self, interrupted: Sequence[Accepted]) -> None:
        """Make the transcripts truthful, then do what the policy says. Never raises."""
        policy = self._deps.settings().resume
        again: list[str] = []
        ended: list[InboundMessage] = []
        for accepted in sorted(interrupted, key=lambda a: a.seq):
            message = accepted.message
            found = await settle_interrupted(self._deps, message, keep_open=policy != "never")
            entry = self._entries[message.id] = Entry(message)
            entry.settle(found.result)
            if found.result.status != "interrupted":
                continue
            if policy == "never":
                ended.append(message)
                continue
            lead = self._join(message, found)
            if policy == "auto" and not found.resumed and lead not in again:
                again.append(lead)
        for run_id in again:
            try:
                self._resume(self._waiting.pop(run_id))
            except ClawError as error:
                log.error("run not resumed: runId=%s %s", run_id, error)
        self._tell(ended)

    def _join(self, message: InboundMessage, found: Interrupted) -> str:
        """Messages that one run was to answer wait as one."""
        waiting = self._waiting.get(found.lead_id)
        if waiting is None:
            now = self._deps.world.clock.now_ms()
            self._waiting[found.lead_id] = _Waiting(message, [message], now)
        else:
            waiting.members.append(message)
            if message.id == found.lead_id:
                waiting.lead = message
        return found.lead_id

    def rows(self) -> list[dict[str, object]]:
        """What waits for a decision, oldest first."""
        return [waiting.to_json() for waiting in self._waiting.values()]

    async def decide(self, run_id: str, action: Literal["resume", "discard"]) -> None:
        """Take a run up again, or let it be. Raises InvalidRequest, StateDiskError."""
        waiting = self._waiting.pop(run_id, None)
        if waiting is None:
            raise InvalidRequest(f"No interrupted run {run_id} waits for a decision.")
        if action == "resume":
            self._resume(waiting)
        else:
            try:
                for message in waiting.members:
                    await self._deps.journal.mark(message.id, Mark.INTERRUPTED.value, "discarded")
            except ClawError:
                self._waiting[run_id] = waiting
                raise
        if not self._waiting:
            self._clear()

    def _resume(self, waiting: _Waiting) -> None:
        lead = waiting.lead
        members = [message for message in waiting.members if message.id != lead.id]
        texts = [message.text for message in (lead, *members)]
        now = self._deps.world.clock.now_ms()
        extra = {**lead.extra, RESUMED_FIELD: True}
        entries = [
            Entry(replace(lead, received_ms=now, extra=extra)),
            *(Entry(message) for message in members),
        ]
        for entry in entries:
            self._entries[entry.id] = entry
        log.info("run resumed: runId=%s sessionKey=%s", lead.id, lead.session_key)
        text = f"{RESUME_NOTE}\n\n{batch_text(texts)}"
        self._talks.start(entries[0], entries[1:], text=text)

    def _tell(self, ended: Sequence[InboundMessage]) -> None:
        waiting = [each.lead for each in self._waiting.values()]
        count = len(waiting) or len(ended)
        if not count:
            return
        keys = sorted({message.session_key for message in (waiting or ended)})
        what = f"{count} run{'s were' if count > 1 else ' was'} interrupted by the restart"
        if waiting:
            title = f"{what} and {'wait' if count > 1 else 'waits'} for you."
            hint = "Nothing was repeated. runs.interrupted lists them, runs.resume decides."
        else:
            title = f"{what}."
            hint = "Nothing was repeated. Send the message again if it is still wanted."
        now = self._deps.world.clock.now_ms()
        self._deps.publish(Notice(NOTICE, "warn", title, hint, ", ".join(keys), bool(waiting), now))

    def _clear(self) -> None:
        self._deps.publish(Notice(NOTICE, "clear", "", ts=self._deps.world.clock.now_ms()))
