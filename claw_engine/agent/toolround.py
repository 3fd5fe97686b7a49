"""The tool calls of one answer, side by side; each ends as ok, error, skipped or aborted.

No call can take another's result with it: there is no shared task group. Results come back in
call order. After an abort every call still has an outcome that says what is known. When somebody
speaks meanwhile, calls that have not done anything yet are skipped. Knows no particular tool.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from claw_engine.agent.checks import CallChecks
from claw_engine.agent.parking import Parking
from claw_engine.agent.steering import Steering
from claw_engine.agent.steps import Steps
from claw_engine.approvals.model import ApprovalRecord, Status
from claw_engine.messages import TextBlock, ToolCallBlock, ToolResultMessage
from claw_engine.protocol.trace import TraceKind
from claw_engine.runs import AbortScope, RunState
from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from claw_engine.world import Clock

log = logging.getLogger("claw.agent")

SHOWN_CHARS = 8_000
"""Characters of a result that the trace carries (agent digest §1.5)."""
KEPT_CHARS = 400_000
"""Characters of a result that the transcript keeps (agent digest §3.3)."""
TAIL_CHARS = 4_000
SETTLE_SECONDS = 10.0
"""How long a stopped call may take to clean up before the run ends without it."""

SKIPPED = (
    "Skipped: the user sent a new message before this call did anything. It did not run; read "
    "the message and call again if it is still needed."
)
STOPPED_WAITING = (
    "The run was stopped before this call began: it still waited for the operator, and nothing "
    "was done."
)

ToolStatus = Literal["ok", "error", "skipped", "aborted"]
MakeContext = Callable[
    [str, str, Callable[[str], None], Callable[[ApprovalRecord], None]], ToolContext
]
"""(tool call id, why, output, on_approval) -> context."""


class Outcome(Struct):
    """What became of one call; times in ms. `duration_ms` leaves out the waits for the operator."""

    call: ToolCallBlock
    status: ToolStatus = "skipped"
    text: str = "The run was stopped before this call began; nothing was done."
    details: Mapping[str, object] | None = None
    decision: str | None = None
    approval: Mapping[str, object] = field(default_factory=dict)
    """How the last question about this call ended; kept with the result."""
    told_start: bool = False
    told_end: bool = False
    """What the trace has heard of it: a call that was given up may end after its run."""
    duration_ms: int = 0
    tail: list[str] = field(default_factory=list)
    tail_chars: int = 0
    waiting: int = 0
    """How many of its waits for the operator are open: then it has done nothing yet."""
    given_up: bool = False
    """It was stopped during such a wait."""
    skip: bool = False
    waited_s: float = 0.0
    waits: int = 0
    wait_began: float = 0.0

    def message(self, now_ms: int) -> ToolResultMessage:
        """The result as the transcript keeps it."""
        text = self.text
        if len(text) > KEPT_CHARS:
            text = f"{text[:KEPT_CHARS]}\n[cut: {len(self.text)} characters in all]"
        details = {**self.approval, **(self.details or {})}
        if self.waited_s:  # else a reader would count the operator's time as the call's own
            details.setdefault("durationMs", self.duration_ms)
        return ToolResultMessage(
            self.call.id, self.call.name, (TextBlock(text),), self.status != "ok", now_ms,
            details or None,
        )  # fmt: skip

    def summary(self) -> dict[str, object]:
        """A row for the final answer's `meta.toolCalls`."""
        return {
            "id": self.call.id,
            "name": self.call.name,
            "status": self.status,
            "durationMs": self.duration_ms,
            "exitCode": self.exit_code,
        }

    @property
    def exit_code(self) -> int | None:
        code = (self.details or {}).get("exitCode")
        return code if isinstance(code, int) else None


class ToolRound:
    """Runs calls for one run."""

    def __init__(
        self, checks: CallChecks, make_context: MakeContext, steps: Steps, parking: Parking,
        scope: AbortScope, clock: Clock, steering: Steering | None = None,
    ) -> None:  # fmt: skip
        self._checks = checks
        self._make_context = make_context
        self._steps = steps
        self._parking = parking
        self._scope = scope
        self._clock = clock
        self._steering = steering or Steering()
        self._begun_to_wait = asyncio.Event()

    async def run(self, outcomes: Sequence[Outcome], why: str, call_id: str) -> None:
        """Runs the calls of fresh `outcomes` and fills them in; also when it is cancelled."""
        if self._steering.pending:
            # Said while the model was still writing these calls: none of them has begun.
            for outcome in outcomes:
                outcome.text = SKIPPED
            self.tell_unbegun(outcomes, call_id)
            return
        self._steps.state(RunState.TOOL, "tool calls")
        self._parking.begin(len(outcomes))
        tasks = [asyncio.create_task(self._one(outcome, why, call_id)) for outcome in outcomes]
        try:
            await self._finish(tasks, outcomes)
            await self._parking.back()  # skipped calls leave their wait without it
        except asyncio.CancelledError:
            await self._settle(tasks, outcomes)
            raise
        self._steps.state(RunState.BETWEEN_TOOLS, "tool calls ended")

    def tell_unbegun(self, outcomes: Sequence[Outcome], call_id: str) -> None:
        """A start and an end for calls that never began, so that the trace has a pair for each."""
        for outcome in outcomes:
            if not outcome.told_start:
                self._began(outcome, call_id)
                self._ended(outcome)

    async def _finish(self, tasks: list[asyncio.Task[None]], outcomes: Sequence[Outcome]) -> None:
        """Wait for all calls; once one has ended, words from outside skip those that wait."""
        while waited := {task for task in tasks if not task.done()}:
            between = len(waited) < len(tasks) and self._steering.pending
            self._begun_to_wait.clear()
            if between:
                for task, outcome in zip(tasks, outcomes, strict=True):
                    if outcome.waiting and not outcome.skip and not task.done():
                        outcome.skip = True
                        task.cancel()
            steered = self._steering.pending
            stir = self._begun_to_wait.wait() if steered else self._steering.arrived()
            signal = asyncio.create_task(stir)
            try:
                await asyncio.wait({*waited, signal}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                signal.cancel()

    async def _settle(self, tasks: list[asyncio.Task[None]], outcomes: Sequence[Outcome]) -> None:
        for task in tasks:
            task.cancel()
        late = set(tasks)
        limit = asyncio.create_task(self._clock.sleep(SETTLE_SECONDS))
        while late and not limit.done():
            await asyncio.wait({*late, limit}, return_when=asyncio.FIRST_COMPLETED)
            late = {task for task in late if not task.done()}
        limit.cancel()
        for task, outcome in zip(tasks, outcomes, strict=True):
            if task in late:
                log.error("tool did not stop: tool=%s id=%s", outcome.call.name, outcome.call.id)
                outcome.status = "aborted"
                outcome.text = "The call was told to stop but had not stopped when the run ended."
                self._ended(outcome)

    async def _one(self, outcome: Outcome, why: str, call_id: str) -> None:
        call = outcome.call
        began = self._clock.monotonic()
        self._began(outcome, call_id)
        try:
            result = await self._execute(outcome, why)
            outcome.status = "error" if result.is_error else "ok"
            outcome.text, outcome.details = result.text, result.details
        except ToolError as error:
            outcome.status, outcome.text = "error", error.sentence()
        except asyncio.CancelledError:
            if outcome.skip and not self._scope.aborted:
                outcome.status, outcome.text = "skipped", SKIPPED
                return
            outcome.status, outcome.text = "aborted", self._stopped_text(outcome)
            raise
        except Exception as error:
            log.exception("tool failed: tool=%s", call.name)
            outcome.status = "error"
            outcome.text = f"The tool {call.name} failed inside: {type(error).__name__}: {error}"
        finally:
            elapsed = self._clock.monotonic() - began
            outcome.duration_ms = max(0, int((elapsed - outcome.waited_s) * 1000))
            self._ended(outcome)
            self._parking.call_ended()

    async def _execute(self, outcome: Outcome, why: str) -> ToolResult:
        call = outcome.call
        if call.error is not None:
            raise ToolError(call.error)
        began = self._clock.monotonic()
        cleared = await self._checks.before(call.name, call.arguments, call.id)

        def output(delta: str) -> None:
            _keep_tail(outcome, delta)
            self._steps.tell(TraceKind.TOOL_OUTPUT, toolCallId=call.id, delta=delta)

        def on_approval(record: ApprovalRecord) -> None:
            self._tell_approval(outcome, record)

        context = self._make_context(call.id, why, output, on_approval)
        wait, begun = context.operator_wait, self._begun_to_wait.set

        def noted() -> _Wait:
            return _Wait(outcome, wait(), begun, self._clock)

        notes = (*context.notes, *cleared.notes)
        try:
            result = await cleared.tool.run(
                cleared.args, replace(context, operator_wait=noted, notes=notes)
            )
        except ToolError as error:
            result = ToolResult(error.sentence(), is_error=True)
        elapsed = int((self._clock.monotonic() - began) * 1000)
        return await self._checks.after(cleared, call.id, result, elapsed)

    def _tell_approval(self, outcome: Outcome, record: ApprovalRecord) -> None:
        common = {"toolCallId": outcome.call.id, "approvalId": record.id}
        if record.status is Status.PENDING:
            self._steps.tell(TraceKind.TOOL_WAITING, **common, expiresAtMs=record.expires_at_ms)
            return
        outcome.decision = record.decision.value if record.decision else None
        outcome.approval = {
            "approvalId": record.id, "decision": outcome.decision, "decidedBy": record.by,
            **({"reason": record.reason} if record.reason else {}),
        }  # fmt: skip
        self._steps.tell(
            TraceKind.TOOL_DECIDED, **common, decision=outcome.decision, by=record.by,
            reason=record.reason,
        )  # fmt: skip

    def _stopped_text(self, outcome: Outcome) -> str:
        if outcome.given_up:
            return STOPPED_WAITING
        reason = self._scope.reason.value if self._scope.reason else "cancelled"
        text = f"The call was stopped before it finished ({reason}); its effect may be partial."
        tail = "".join(outcome.tail)[-TAIL_CHARS:]
        return f"{text}\nOutput so far:\n{tail}" if tail.strip() else text

    def _began(self, outcome: Outcome, call_id: str) -> None:
        call, outcome.told_start = outcome.call, True
        self._steps.tell(
            TraceKind.TOOL_STARTED, callId=call_id, toolCallId=call.id, name=call.name,
            args=dict(call.arguments),
        )  # fmt: skip

    def _ended(self, outcome: Outcome) -> None:
        if outcome.told_end:
            return
        outcome.told_end = True
        self._steps.tell(
            TraceKind.TOOL_ENDED,
            toolCallId=outcome.call.id,
            name=outcome.call.name,
            status=outcome.status,
            text=outcome.text[:SHOWN_CHARS],
            exitCode=outcome.exit_code,
            durationMs=outcome.duration_ms,
            waitedMs=int(outcome.waited_s * 1000),
            decision=outcome.decision,
        )


class _Wait:
    """A call's wait for the operator and for its place after it, noted on its outcome."""

    __slots__ = ("_begun", "_clock", "_inner", "_outcome")

    def __init__(
        self, outcome: Outcome, inner: AbstractAsyncContextManager[None],
        begun: Callable[[], None], clock: Clock,
    ) -> None:  # fmt: skip
        self._outcome = outcome
        self._clock = clock
        self._inner = inner
        self._begun = begun

    async def __aenter__(self) -> None:
        outcome = self._outcome
        outcome.waiting += 1
        outcome.waits += 1
        if outcome.waits == 1:
            outcome.wait_began = self._clock.monotonic()
        self._begun()
        await self._inner.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        outcome = self._outcome
        outcome.waiting -= 1
        outcome.given_up = kind is not None and issubclass(kind, asyncio.CancelledError)
        try:
            await self._inner.__aexit__(kind, error, trace)
        finally:
            outcome.waits -= 1
            if not outcome.waits:
                outcome.waited_s += self._clock.monotonic() - outcome.wait_began


def _keep_tail(outcome: Outcome, delta: str) -> None:
    outcome.tail.append(delta)
    outcome.tail_chars += len(delta)
    # Trimmed rarely, so that a chatty tool costs a constant amount per chunk.
    if outcome.tail_chars > 16 * TAIL_CHARS:
        kept = "".join(outcome.tail)[-TAIL_CHARS:]
        outcome.tail[:] = [kept]
        outcome.tail_chars = len(kept)
