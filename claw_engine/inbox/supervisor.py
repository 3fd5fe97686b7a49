"""One run from its place in the lanes to its written end.

The supervisor outlives the run's task whatever happens to it: it alone cancels it, tells the end
to everybody whose message it answered, gives the place back, marks the journal and updates the
session's index entry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from claw_engine.agent.ports import REPORT_FIELD, RunError, RunResult
from claw_engine.agent.record import RUN_IDS_FIELD
from claw_engine.agent.run import Execution
from claw_engine.agent.steps import Steps
from claw_engine.errors import ClawError
from claw_engine.inbox.entry import Entry, started
from claw_engine.inbox.model import InboundMessage, Mark
from claw_engine.inbox.overrides import message_for, settings_for
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.queue_modes import batch_text, overflow_text
from claw_engine.inbox.stalls import StallWatch
from claw_engine.lanes import WAIT_WARNING_MS, Ticket
from claw_engine.protocol.trace import TraceKind
from claw_engine.runs import AbortReason, Run, RunState
from claw_engine.sessions.entry import SessionEntry
from claw_engine.tools.policy.circumstances import EXTERNAL_FIELD
from claw_engine.world import Timer

log = logging.getLogger("claw.inbox")


class Case(Struct, eq=False):
    """One supervised run. `members` are the messages it answers, its own first; of `summarized`
    ones only a line; `lost` counts what left no line."""

    lead: Entry
    members: list[Entry]
    ticket: Ticket
    on_free: Callable[[Case], None]
    behind: Callable[[], Sequence[str]]
    summarized: frozenset[Entry] = frozenset()
    lost: int = 0
    text: str | None = None
    execution: Execution | None = None
    begun: bool = False
    marks: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def run(self) -> Run:
        return started(self.lead)[0]


class Supervisor:
    """Launches runs and sees each of them to its end; loop thread only.

    `on_end` is told of every message that a run answered.
    """

    def __init__(self, deps: DispatchDeps, on_end: Callable[[Entry, RunResult], None]) -> None:
        self._deps = deps
        self._on_end = on_end
        self._stalls = StallWatch(deps.world.clock, deps.publish)
        self._tasks: set[asyncio.Task[None]] = set()

    def launch(self, case: Case) -> None:
        """See a case through: it has its ticket, and runs when it is its turn."""
        case.run.cancel = None
        task = asyncio.create_task(self._supervise(case), name=f"supervise:{case.lead.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def join(self, case: Case, entry: Entry, cause: str) -> None:
        """From here on the case's run answers this message too."""
        run, steps = started(entry)
        entry.lead, run.cancel = case.lead, None
        if entry not in case.members:
            case.members.append(entry)
        self._deps.runs.join(run, case.run)
        self._mark_started(case, entry)
        steps.tell(
            TraceKind.RUN_STARTED, model="", provider="", isAI=True, cause=cause,
            waitMs=max(0, self._deps.world.clock.now_ms() - run.created_ms),
            answeredBy=case.lead.id, messages=[entry.id],
        )  # fmt: skip

    async def _supervise(self, case: Case) -> None:
        run = case.run
        result = RunResult("failed", "error")
        unwatch = None
        warn = self._warn_later(case)
        try:
            work = asyncio.create_task(self._work(case), name=f"run:{run.id}")
            run.cancel = _canceller(work)
            if run.scope.aborted:
                work.cancel()
            unwatch = self._stalls.watch(run, case.behind)
            await asyncio.wait([work])
            result = self._outcome(case, work)
            self._tell_end(case, result)
            case.ticket.release()
            case.on_free(case)
            if run.scope.reason is not None:
                # Usually none is left: a stopped tool closes its own question.
                await self._deps.approvals.cancel(run.id, run.scope.reason.value)
            await self._write_down(case, result)
        finally:
            if warn is not None:
                warn.cancel()
            if unwatch is not None:
                unwatch()
            case.ticket.release()
            case.on_free(case)
            for entry in case.members:
                self._on_end(entry, result)

    async def _work(self, case: Case) -> RunResult:
        wait_ms = await case.ticket.acquire()
        message = self._begin(case)
        # A run uses the configuration of the moment it begins, not of when it was queued.
        entry = self._deps.sessions.get(case.run.session_key)
        case.run.settings = settings_for(self._deps.settings(), entry)
        case.execution = self._deps.agent.open(
            case.run, message_for(message, entry), case.ticket, started(case.lead)[1],
            lambda: self._all_marked(case),
        )  # fmt: skip
        return await case.execution.execute(wait_ms)

    def _begin(self, case: Case) -> InboundMessage:
        """Settle who is answered, and what the model reads of it."""
        case.begun = True
        members = tuple(case.members)
        ids = [entry.id for entry in members]
        self._mark_started(case, case.lead)
        for entry in members:
            if entry is not case.lead:
                self.join(case, entry, "collected")
        whole = [e.message.text for e in members if e not in case.summarized]
        short = [e.message.text for e in members if e in case.summarized]
        text = case.text
        if text is None:
            text = batch_text(whole, overflow_text(short, case.lost))
        first = case.lead.message
        thinking = next((e.message.thinking for e in reversed(members) if e.message.thinking), None)
        extra = {**first.extra, RUN_IDS_FIELD: ids} if len(ids) > 1 else first.extra
        told = next((x for e in members if (x := e.message.extra.get(EXTERNAL_FIELD))), None)
        if told:
            extra = {**extra, EXTERNAL_FIELD: told}  # one such message binds the whole run
        if any(entry.message.source != first.source for entry in members):
            first = replace(first, source="mixed")
        return replace(first, text=text, thinking=thinking, extra=extra)

    def _mark_started(self, case: Case, entry: Entry) -> None:
        mark = self._deps.journal.mark_soon(entry.id, Mark.STARTED.value)
        mark.add_done_callback(_look)
        case.marks.append(mark)

    async def _all_marked(self, case: Case) -> None:
        """Before anything with an effect: no restart may do it twice."""
        marks = tuple(case.marks)
        if not marks:
            return
        await asyncio.gather(*map(asyncio.shield, marks))
        await self._deps.journal.sync()
        del case.marks[: len(marks)]

    def _outcome(self, case: Case, work: asyncio.Task[RunResult]) -> RunResult:
        if work.cancelled():
            reason = case.run.scope.reason or AbortReason.SHUTDOWN
            never_began = RunResult("aborted", reason.value, error=case.lead.why)
            return case.execution.result if case.execution is not None else never_began
        error = work.exception()
        if error is None:
            return work.result()
        log.error("run crashed: runId=%s", case.run.id, exc_info=error)
        why = RunError(f"The run failed inside: {error!r}", "The log has the details.")
        return RunResult("failed", "error", error=why)

    def _tell_end(self, case: Case, result: RunResult) -> None:
        _, steps = started(case.lead)
        self._tell_footer(case, steps)
        steps.state(RunState(result.status), result.stop_reason)
        steps.tell(TraceKind.RUN_ENDED, **ended_data(result))
        for entry in case.members if case.begun else ():
            if entry is not case.lead:
                run, voice = started(entry)
                self._deps.runs.set_state(run, RunState(result.status), result.stop_reason)
                # The answer stands under the run that gave it, once.
                end = ended_data(replace(result, text=""))
                voice.tell(TraceKind.RUN_ENDED, **end, answeredBy=case.lead.id)

    def _tell_footer(self, case: Case, steps: Steps) -> None:
        """What the run cost, where its session wants to know (`/usage`)."""
        books = case.execution.books if case.execution is not None else None
        entry = self._deps.sessions.get(case.run.session_key)
        if books is not None and entry is not None:
            line = books.footer(entry.text("responseUsage"))
            if line:
                steps.notice("info", line)

    async def _write_down(self, case: Case, result: RunResult) -> None:
        if not case.begun and case.run.scope.reason is AbortReason.SHUTDOWN:
            return  # it is still in the journal and runs after the next start
        detail = result.stop_reason if result.status != "done" else ""
        try:
            # Started together, so they share one write.
            journal = self._deps.journal
            ids = [entry.id for entry in case.members]
            if len(ids) == 1:
                await journal.mark(ids[0], result.status, detail)
            else:
                marks = [journal.mark_soon(id_, result.status, detail) for id_ in ids]
                await asyncio.gather(*marks)
            if case.execution is not None:
                now = self._deps.world.clock.now_ms()
                await self._deps.sessions.update(
                    case.run.session_key, lambda entry: _updated(entry, result, now)
                )
        except (ClawError, OSError) as error:
            log.error("run end not recorded: runId=%s %s", case.run.id, error)

    def _warn_later(self, case: Case) -> Timer | None:
        """Tell a sender who waits long in the lanes, and behind whom."""
        if case.ticket.place == "running":  # nobody was in its way
            return None

        def look() -> None:
            if case.ticket.place not in ("session", "global"):
                return
            lanes = self._deps.lanes
            ahead = lanes.blockers(case.lead.id)
            behind = "the lanes are paused" if lanes.paused else f"behind {', '.join(ahead)}"
            log.warning(
                "lane wait exceeded: lane=%s runId=%s queueAhead=%d",
                case.ticket.lane, case.lead.id, len(ahead),
            )  # fmt: skip
            words = f"Waiting for a place in lane {case.ticket.lane}: {behind}."
            started(case.lead)[1].notice("info", words)

        return self._deps.world.clock.call_later(WAIT_WARNING_MS / 1000, look)


def ended_data(result: RunResult) -> dict[str, object]:
    """`data` of `run.ended`."""
    return {
        "status": result.status,
        "stopReason": result.stop_reason,
        "text": result.text,
        "error": result.error.to_json() if result.error else None,
        "durationMs": result.duration_ms,
        "usage": result.usage_json(),
    }


def _updated(entry: SessionEntry, result: RunResult, now_ms: int) -> SessionEntry:
    fields: dict[str, object] = {
        "updatedAt": now_ms,
        "abortedLastRun": result.status == "aborted",
    }
    if result.model:
        provider, _, model = result.model.partition("/")
        fields |= {"modelProvider": provider, "model": model}
    if result.context_window:
        fields["contextTokens"] = result.context_window
    usage = result.usage
    if usage.total:
        fields |= {
            "inputTokens": usage.input,
            "outputTokens": usage.output,
            "cacheRead": usage.cache_read,
            "cacheWrite": usage.cache_write,
            "totalTokens": usage.total,
            "totalTokensFresh": True,  # else OpenClaw takes the number for a stale one
        }
    if (report := result.report) is not None and not _is_kept(entry.raw.get(REPORT_FIELD), report):
        fields[REPORT_FIELD] = {**report, "sessionId": entry.session_id}
    return entry.replace(**fields)


def _is_kept(kept: object, report: Mapping[str, object]) -> bool:
    """Whether the session has that report already: one is made anew only after a change."""
    return isinstance(kept, Mapping) and kept.get("generatedAt") == report["generatedAt"]


def _canceller(task: asyncio.Task[RunResult]) -> Callable[[], None]:
    def cancel() -> None:
        task.cancel()

    return cancel


def _look(task: asyncio.Future[None]) -> None:
    # Awaited before the first tool; a run without tools never looks, so the error is told here.
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("run start not recorded: %s", error)
