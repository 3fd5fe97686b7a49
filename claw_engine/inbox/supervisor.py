"""One run from its place in the lanes to its written end.

The supervisor outlives the run's task whatever happens to it: it alone cancels it, tells the end,
gives the place back, marks the journal and updates the session's index entry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from claw_engine.agent.ports import RunError, RunResult
from claw_engine.agent.run import Execution
from claw_engine.agent.steps import Emit, Steps
from claw_engine.errors import ClawError
from claw_engine.inbox.model import InboundMessage, Mark
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.lanes import Ticket
from claw_engine.protocol.trace import TraceKind
from claw_engine.runs import AbortReason, Run, RunState
from claw_engine.sessions.entry import SessionEntry

log = logging.getLogger("claw.inbox")

OnEnd = Callable[[RunResult], None]


@dataclass(eq=False, slots=True)
class _Case:
    """One supervised run."""

    message: InboundMessage
    run: Run
    ticket: Ticket
    steps: Steps
    execution: Execution | None = None


class Supervisor:
    """Launches runs and sees each of them to its end; loop thread only."""

    def __init__(self, deps: DispatchDeps, emit: Emit) -> None:
        self._deps = deps
        self._emit = emit
        self._tasks: set[asyncio.Task[None]] = set()

    def launch(self, message: InboundMessage, on_end: OnEnd, lane: str = "main") -> None:
        """Take a place in the lanes now and run when it is the message's turn."""
        deps = self._deps
        run = deps.runs.create(
            message.id,
            session_key=message.session_key,
            agent_id=message.agent_id,
            lane=lane,
            settings=deps.settings(),
        )
        ticket = deps.lanes.enqueue(run.id, run.session_key, lane)
        steps = Steps(run, deps.runs, deps.world.clock, self._emit)
        steps.tell(
            TraceKind.RUN_QUEUED, message=message.text, source=message.source, lane=lane,
            waitingBehind=deps.lanes.waiting_behind(ticket),
        )  # fmt: skip
        case = _Case(message, run, ticket, steps)
        task = asyncio.create_task(self._supervise(case, on_end), name=f"supervise:{run.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _supervise(self, case: _Case, on_end: OnEnd) -> None:
        run = case.run
        result = RunResult("failed", "error")
        try:
            work = asyncio.create_task(self._work(case), name=f"run:{run.id}")
            run.cancel = _canceller(work)
            if run.scope.aborted:
                work.cancel()
            await asyncio.wait([work])
            result = self._outcome(case, work)
            self._tell_end(case, result)
            case.ticket.release()
            if run.scope.reason is not None:
                # Usually none is left: a stopped tool closes its own question.
                await self._deps.approvals.cancel(run.id, run.scope.reason.value)
            await self._write_down(case, result)
        finally:
            case.ticket.release()
            on_end(result)

    async def _work(self, case: _Case) -> RunResult:
        wait_ms = await case.ticket.acquire()
        # A run uses the configuration of the moment it begins, not of when it was queued.
        case.run.settings = self._deps.settings()
        started = asyncio.ensure_future(self._deps.journal.mark(case.run.id, Mark.STARTED.value))
        started.add_done_callback(_look)
        execution = case.execution = self._deps.agent.open(
            case.run, case.message, case.ticket, case.steps, lambda: asyncio.shield(started)
        )
        return await execution.execute(wait_ms)

    def _outcome(self, case: _Case, work: asyncio.Task[RunResult]) -> RunResult:
        if work.cancelled():
            reason = case.run.scope.reason or AbortReason.SHUTDOWN
            never_began = RunResult("aborted", reason.value)
            return case.execution.result if case.execution is not None else never_began
        error = work.exception()
        if error is None:
            return work.result()
        log.error("run crashed: runId=%s", case.run.id, exc_info=error)
        why = RunError(f"The run failed inside: {error!r}", "The log has the details.")
        return RunResult("failed", "error", error=why)

    def _tell_end(self, case: _Case, result: RunResult) -> None:
        case.steps.state(RunState(result.status), result.stop_reason)
        case.steps.tell(TraceKind.RUN_ENDED, **ended_data(result))

    async def _write_down(self, case: _Case, result: RunResult) -> None:
        never_began = case.execution is None
        if never_began and case.run.scope.reason is AbortReason.SHUTDOWN:
            return  # it is still in the journal and runs after the next start
        detail = result.stop_reason if result.status != "done" else ""
        try:
            await self._deps.journal.mark(case.run.id, result.status, detail)
            if not never_began:
                now = self._deps.world.clock.now_ms()
                await self._deps.sessions.update(
                    case.run.session_key, lambda entry: _updated(entry, result, now)
                )
        except (ClawError, OSError) as error:
            log.error("run end not recorded: runId=%s %s", case.run.id, error)


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
            "totalTokens": usage.total,
        }
    return entry.replace(**fields)


def _canceller(task: asyncio.Task[RunResult]) -> Callable[[], None]:
    def cancel() -> None:
        task.cancel()

    return cancel


def _look(task: asyncio.Future[None]) -> None:
    # Awaited before the first tool; a run without tools never looks, so the error is told here.
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("run start not recorded: %s", error)
