"""The loop: ask the model, run the tools it calls, ask again, until it answers in words.

What a person adds half-way enters after a round of tools, or when the answer is complete.
Before every call the turns are fitted to the window and then, as the last step before the wire,
calls and results are paired (case TR-03). An answer without a visible word is asked for once more
and then becomes a failure that is told once (case PR-03).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from claw_engine.agent.ask import Asker
from claw_engine.agent.collect import Collector
from claw_engine.agent.context.guard import fit
from claw_engine.agent.context.pairing import repair
from claw_engine.agent.ports import RunResult
from claw_engine.agent.prompt.fence import Fencer
from claw_engine.agent.prompt.report import SizeBook
from claw_engine.agent.record import Recorder, stamped, steered_message
from claw_engine.agent.steering import Steering
from claw_engine.agent.steps import Steps
from claw_engine.agent.toolround import Outcome, ToolRound
from claw_engine.errors import ClawError
from claw_engine.messages import Block, ToolResultMessage, Usage
from claw_engine.models.base import Request, Turn
from claw_engine.parts import Part, PartKind
from claw_engine.protocol.trace import CallCause, TraceKind
from claw_engine.runs import RunState
from claw_engine.world import World

EMPTY_RETRIES = 1
_NUDGE = Turn(
    "user",
    (
        Part(
            "nudge",
            PartKind.USER,
            "section:nudge",
            "Your last answer held no text your user can read. Answer in plain text, or call a "
            "tool through the tool interface, not as written markup.",
            "nudge",
        ),
    ),
)


class EmptyAnswer(ClawError):
    """The model said nothing that can be shown, twice."""

    def __init__(self, *, markup: bool) -> None:
        hint = (
            "It wrote tool calls as text: this model or server does not support tools."
            if markup
            else "Ask again, or choose another model."
        )
        super().__init__("The model gave no readable answer.", hint=hint)


class Loop:
    """One run's model ⇄ tools loop, and what is left over when it is stopped."""

    def __init__(
        self, asker: Asker, tools: ToolRound, recorder: Recorder, steps: Steps, world: World,
        book: SizeBook, fencer: Fencer, before_tools: Callable[[], Awaitable[object]],
        steering: Steering | None = None, run_id: str = "", timezone: str = "UTC",
    ) -> None:  # fmt: skip
        self._asker = asker
        self._tools = tools
        self._recorder = recorder
        self._steps = steps
        self._world = world
        self._book = book
        self._fencer = fencer
        self._before_tools = before_tools
        self._steering = steering or Steering()
        self._run_id = run_id
        self._timezone = timezone
        self._usage = Usage()
        self._round: list[Outcome] = []
        self._done: list[Outcome] = []

    async def run(
        self, request: Request, turns: list[Turn], window: int, cause: CallCause = CallCause.TURN
    ) -> RunResult:
        """The final answer; `cause` is that of the first call.

        Raises ModelError, EmptyAnswer, what recording raises, and CancelledError; afterwards
        `leftovers` holds what is not in the transcript yet.
        """
        empty = 0
        self._steering.start()
        while True:
            turns = self._fitted(request, turns, window)
            asked = [*turns, _NUDGE] if empty else turns
            # Fenced last: nothing that trims or pairs turns has to know the marks.
            turns_now = self._fencer.fence(repair(asked))
            answer = await self._asker.ask(replace(request, turns=turns_now), cause)
            self._count(answer.usage)
            calls = answer.tool_calls(self._world.ids)
            if calls:
                self._round = [Outcome(call) for call in calls]
                turns += await self._keep(answer, "toolUse", calls)
                await self._before_tools()
                await self._tools.run(self._round, answer.text.strip(), self._asker.call_id)
                turns += await self._keep_results()
                turns += await self._steered()
                cause, empty = CallCause.TOOL_ROUND, 0
            elif answer.text.strip():
                if self._steering.close():
                    return await self._final(answer)
                # Somebody spoke while the answer came: it stands, and the talk goes on.
                turns += await self._keep(answer, answer.stop_reason, ())
                turns += await self._steered()
                cause, empty = CallCause.STEER, 0
            elif empty < EMPTY_RETRIES:
                empty += 1
                cause = CallCause.RETRY
                reason = "tool call written as text" if answer.saw_markup else "empty answer"
                self._steps.tell(TraceKind.RETRY, reason=reason, delayMs=0, attempt=empty + 1)
            else:
                raise EmptyAnswer(markup=answer.saw_markup)

    def partial(self) -> RunResult:
        """What can be said of a run that did not reach its end."""
        current = self._asker.current
        text = current.text if current is not None else ""
        return RunResult("failed", "error", text, None, self._usage, tool_calls=self._summaries())

    def leftovers(self) -> tuple[tuple[Block, ...], Usage | None, list[ToolResultMessage]]:
        """Partial answer, its usage, and results of calls that the transcript holds already."""
        now = self._world.clock.now_ms()
        self._tools.tell_unbegun(self._round, self._asker.call_id)
        results = [outcome.message(now) for outcome in self._round]
        self._done += self._round
        self._round = []
        current, self._asker.current = self._asker.current, None
        if current is None:
            return (), None, results
        return current.blocks(), current.usage, results

    def _fitted(self, request: Request, turns: list[Turn], window: int) -> list[Turn]:
        fixed = [*request.system, *(tool.part for tool in request.tools)]
        # A model whose provider counts more than we estimate holds less. Never the other way: one
        # that counts nonsense must not make us send too much.
        fitted = fit(
            turns,
            int(window / max(1.0, self._asker.ratio)),
            sum(len(part.text) for part in fixed),
            sum(self._book.tokens(part) for part in fixed),
            self._book.tokens,
        )
        if fitted.left_out:
            # Of a long talk only the end was read: nobody has counted the rest.
            many = f"oldest {fitted.left_out}" if self._recorder.whole else "older"
            self._steps.notice(
                "warn",
                f"The conversation is longer than the model's window of {window} tokens: the "
                f"{many} messages were left out.",
            )
        return fitted.turns

    async def _keep(self, answer: Collector, stop: str, calls: Sequence[object]) -> list[Turn]:
        # From here on the writer has it: an abort must not record it a second time.
        self._asker.current = None
        content = answer.blocks(tuple(outcome.call for outcome in self._round) if calls else ())
        return await self._recorder.add(self._recorder.assistant(content, stop, answer.usage))

    async def _keep_results(self) -> list[Turn]:
        now = self._world.clock.now_ms()
        finished, self._round = self._round, []
        self._done += finished
        return await self._recorder.add(*(outcome.message(now) for outcome in finished))

    async def _steered(self) -> list[Turn]:
        """What was said meanwhile, as user turns."""
        if not self._steering.pending:
            return []
        said = [
            steered_message(
                words.before + stamped(words.text, words.received_ms, self._timezone),
                words.received_ms, words.run_id, self._run_id,
            )
            for words in self._steering.take()
        ]  # fmt: skip
        return await self._recorder.add(*said)

    async def _final(self, answer: Collector) -> RunResult:
        if answer.saw_markup:
            self._steps.notice(
                "warn", "The model wrote a tool call as text; it was not run and is not shown."
            )
        if answer.stop_reason == "length":
            self._steps.notice("warn", "The answer reached the model's length limit.")
        self._steps.state(RunState.DELIVERING, "answer complete")
        await self._keep(answer, answer.stop_reason, ())
        return RunResult(
            "done", answer.stop_reason, answer.text, None, self._usage,
            tool_calls=self._summaries(),
        )  # fmt: skip

    def _summaries(self) -> tuple[dict[str, object], ...]:
        return tuple(outcome.summary() for outcome in (*self._done, *self._round))

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self._usage = replace(usage, output=self._usage.output + usage.output)
