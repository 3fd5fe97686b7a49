"""One question to a model: encode, stream, collect; bounded retries of what may pass by itself.

Every call is told with its cause, parts, usage and end. Errors are judged by the model room from
the transport alone; nothing here reads a message to guess one (case CO-03).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

from claw_engine.agent.collect import Collector
from claw_engine.agent.ports import Tracer, usage_json
from claw_engine.agent.prompt.report import SizeBook, rows
from claw_engine.agent.steps import Steps
from claw_engine.models.base import Encoded, Model, ModelError, ModelErrorKind, Piece, Request
from claw_engine.protocol.trace import CallCause, TraceKind
from claw_engine.runs import Run, RunState
from claw_engine.trace.noted import Tokens
from claw_engine.trace.ports import Call, CallEnd, PieceLike
from claw_engine.trace.records import CallUsage
from claw_engine.world import Clock

if TYPE_CHECKING:
    from claw_engine.agent.books import Books

log = logging.getLogger("claw.agent")

RETRY_DELAYS_MS = (1_000, 2_000, 4_000)
"""Waits before the second, third and fourth attempt, unless the provider names its own."""
SILENT_ATTEMPTS = 2
"""Attempts at a provider that keeps silent: each of them already cost a long wait."""
LONGEST_RETRY_AFTER_MS = 60_000
"""A provider that asks for more patience than this fails the run instead."""


class Asker:
    """Asks on behalf of one run; `current` is the answer that is arriving, for an abort."""

    def __init__(
        self, model: Model, steps: Steps, clock: Clock, book: SizeBook, run: Run,
        tracer: Tracer | None = None, books: Books | None = None,
    ) -> None:  # fmt: skip
        self._model = model
        self._steps = steps
        self._clock = clock
        self._book = book
        self._run = run
        self._tracer = tracer
        self._books = books
        self._calls = 0
        self.call_id = ""
        self.current: Collector | None = None

    @property
    def ratio(self) -> float:
        """By what token estimates for this model are multiplied."""
        return self._books.ratio if self._books is not None else 1.0

    async def ask(self, request: Request, cause: CallCause) -> Collector:
        """The complete answer. Raises ModelError when retries are used up or useless."""
        for attempt, delay in enumerate((*RETRY_DELAYS_MS, None), start=1):
            try:
                return await self._once(
                    request, cause if attempt == 1 else CallCause.RETRY, attempt
                )
            except ModelError as error:
                wait = delay if error.retry_after_ms is None else error.retry_after_ms
                if delay is None or wait is None or not error.retryable:
                    raise
                silent = error.kind is ModelErrorKind.TIMEOUT and attempt >= SILENT_ATTEMPTS
                if silent or wait > LONGEST_RETRY_AFTER_MS:
                    raise
                self._steps.tell(
                    TraceKind.RETRY, reason=error.title, delayMs=wait, attempt=attempt + 1
                )
                self._steps.state(RunState.BACKING_OFF, error.kind.value)
                await self._clock.sleep(wait / 1000)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, request: Request, cause: CallCause, attempt: int) -> Collector:
        encoded = self._model.encode(request)
        books, ratio = self._books, self.ratio
        parts, tokens = rows(encoded, self._book, ratio)
        ticket = await books.admit(tokens, cause.value) if books is not None else None
        # What led to it: the call before it in this run, for the first one the run's own parent.
        parent = f"{self._run.id}/{self.call_id}" if self._calls else self._run.parent_id
        self._calls += 1
        call_id = self.call_id = f"call-{self._calls}"
        self._steps.state(RunState.CONNECTING, cause.value)
        self._steps.tell(
            TraceKind.CALL_STARTED,
            callId=call_id,
            cause=cause.value,
            model=request.model.name,
            parts=parts,
            bytes=len(encoded.body),
            tokens=round(tokens * ratio),
            ratio=ratio,
            estimated=True,
        )
        self._trace(encoded, request, (call_id, cause, parent, attempt), tokens)
        watch = _Watch(self._clock)
        answer = self.current = Collector()
        error: ModelError | None = None
        ended = "aborted"
        stream = self._model.stream(encoded, request)
        try:
            async for event in stream:
                if not watch.streaming:
                    watch.streaming = True
                    self._steps.state(RunState.STREAMING, "first event")
                text, reasoning = answer.take(event)
                if text:
                    watch.first()
                    self._steps.tell(TraceKind.TEXT, callId=call_id, delta=text)
                elif reasoning:
                    watch.first()
                    self._steps.tell(TraceKind.REASONING, callId=call_id, delta=reasoning)
            if not answer.stop_reason:
                raise ModelError(
                    "The model's answer broke off before its end.", kind=ModelErrorKind.CUT
                )
            ended = answer.stop_reason
        except ModelError as failure:
            error, ended = failure, "error"
            log.warning("model call failed: model=%s kind=%s", request.model.name, failure.kind)
            raise
        finally:
            # Closing the generator closes its connection now, not at the next collection.
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
            usage = usage_json(answer.usage) if answer.usage is not None else None
            spent = None
            if books is not None and ticket is not None:
                spent = books.settle(
                    ticket, tokens, answer, call_id=call_id, cause=cause.value, status=ended,
                    silent=not watch.streaming,
                )  # fmt: skip
            self._steps.tell(
                TraceKind.CALL_ENDED,
                callId=call_id,
                stopReason=ended,
                usage=usage,
                spent=spent.to_json() if spent is not None else None,
                ttftMs=watch.ttft_ms,
                durationMs=watch.elapsed_ms(),
                error={"kind": error.kind.value, "message": error.title} if error else None,
            )
            self._trace_end(
                call_id, answer, ended, error, watch.ttft_ms, spent.cost if spent else None
            )
        return answer

    def _trace(
        self, encoded: Encoded, request: Request,
        made: tuple[str, CallCause, str | None, int], tokens: int,
    ) -> None:  # fmt: skip
        if self._tracer is None:
            return
        run, ref = self._run, request.model
        call = Call(
            run.id, run.session_key, run.agent_id, *made, ref.name, ref.provider, ref.api,
            self._clock.now_ms(), tokens, self.ratio,
        )  # fmt: skip
        self._tracer.begin_call(call, encoded.body, encoded.pieces, self._sizes)

    def _sizes(self, piece: PieceLike) -> Tokens:
        assert isinstance(piece, Piece)
        found, _ = self._book.rows(piece)
        return {str(row["id"]): int(str(row["tokens"])) for row in found}

    def _trace_end(
        self, call_id: str, answer: Collector, ended: str, error: ModelError | None,
        ttft_ms: int | None, cost: float | None,
    ) -> None:  # fmt: skip
        if self._tracer is None:
            return
        usage = answer.usage
        counted = usage and CallUsage(
            usage.input, usage.output, usage.cache_read, usage.cache_write
        )
        status: Literal["ok", "error", "aborted"] = (
            "error" if error is not None else "aborted" if ended == "aborted" else "ok"
        )
        end = CallEnd(
            status, ended, self._clock.now_ms(), ttft_ms, answer.text, answer.reasoning,
            answer.raw_calls(), counted or None, cost, error.title if error is not None else None,
        )  # fmt: skip
        self._tracer.end_call(self._run.id, call_id, end)


class _Watch:
    __slots__ = ("_clock", "_start", "streaming", "ttft_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = clock.monotonic()
        self.ttft_ms: int | None = None
        self.streaming = False

    def first(self) -> None:
        if self.ttft_ms is None:
            self.ttft_ms = self.elapsed_ms()

    def elapsed_ms(self) -> int:
        return int((self._clock.monotonic() - self._start) * 1000)
