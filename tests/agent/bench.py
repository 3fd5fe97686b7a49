"""A small engine around the agent: real journal, sessions, lanes, broker and disk; scripted model.

The model encodes with the real codec, so every request is checked as it would go out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from claw_engine.agent.prompt.facts import Host
from claw_engine.agent.run import AgentDeps, AgentRuntime
from claw_engine.approvals.broker import Broker
from claw_engine.approvals.store import ExecApprovals
from claw_engine.config.sections.messages import MessagesSettings, QueueSettings
from claw_engine.config.settings import Settings
from claw_engine.events import Event, EventBus
from claw_engine.inbox.builtin import builtin_commands
from claw_engine.inbox.dispatch import Dispatcher
from claw_engine.inbox.journal import Journal
from claw_engine.inbox.model import InboundMessage, Recovered
from claw_engine.inbox.ports import DispatchDeps
from claw_engine.inbox.session_commands import SessionCommands, stopping_reset
from claw_engine.lanes import Lanes
from claw_engine.messages import Message, Usage
from claw_engine.models.base import (
    Encoded,
    Finished,
    Model,
    ModelConfigError,
    ModelError,
    ModelEvent,
    ModelRef,
    Request,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Turn,
    UsageSeen,
)
from claw_engine.models.codecs import openai_chat
from claw_engine.models.rules import WireRules
from claw_engine.paths import StateDir
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.runs import Runs
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.store import Sessions
from claw_engine.tools.base import Tool, ToolContext, ToolResult
from claw_engine.tools.registry import ToolRegistry
from claw_engine.usage.calibration import Calibration
from claw_engine.usage.ledger import Ledger
from claw_engine.usage.meter import Meter
from claw_engine.world import RealDisk
from tests.support.fakes import FakeClock, fake_world

REF = ModelRef("fake", "one", "openai-completions", "http://localhost:1/v1", context_window=32_000)
HOST = Host("Linux 6.1", "x86_64", "bash")
MAIN = "agent:main:main"

Step = ModelEvent | ModelError | asyncio.Event
Script = Sequence[Step]


def says(text: str, *, usage: Usage | None = None) -> list[Step]:
    """An answer in words."""
    *words, last = text.split(" ")
    spaced = [TextDelta(f"{word} ") for word in words]
    seen = UsageSeen(usage or Usage(100, 5, 20, 0, 105))
    return [*spaced, TextDelta(last), seen, Finished("stop")]


def calls(*pairs: tuple[str, str], text: str = "Let me look.") -> list[Step]:
    """Words, then tool calls (name, arguments as JSON text)."""
    steps: list[Step] = [TextDelta(text)] if text else []
    for index, (name, arguments) in enumerate(pairs):
        steps += [ToolCallStart(index, f"t{index}", name), ToolCallDelta(index, arguments)]
    return [*steps, UsageSeen(Usage(100, 5, 20, 0, 105)), Finished("toolUse")]


class ScriptedModel:
    """Plays one script a call; an `asyncio.Event` in a script is waited for."""

    def __init__(self, scripts: Iterable[Script], ref: ModelRef = REF) -> None:
        self.ref = ref
        self.scripts = list(scripts)
        self.requests: list[Request] = []
        self.closed = 0

    def encode(self, request: Request) -> Encoded:
        assert check(request.turns) == []
        return openai_chat.encode(request, WireRules(), {})

    async def stream(self, encoded: Encoded, request: Request) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        script = self.scripts.pop(0)
        try:
            for step in script:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, ModelError):
                    raise step
                else:
                    yield step
        finally:
            self.closed += 1


def check(turns: Sequence[Turn]) -> list[str]:
    """What a strict provider would refuse about these turns."""
    problems: list[str] = []
    open_calls: list[str] = []
    previous: Turn | None = None
    for index, turn in enumerate(turns):
        if open_calls and turn.role != "tool":
            problems.append(f"{index}: calls {open_calls} have no result")
            open_calls = []
        if turn.role == "tool":
            if turn.tool_call_id not in open_calls:
                problems.append(f"{index}: orphan result {turn.tool_call_id}")
            else:
                open_calls.remove(turn.tool_call_id)
        else:
            if previous is not None and previous.role == turn.role:
                problems.append(f"{index}: two {turn.role} turns in a row")
            if not turn.tool_calls and not any(part.text.strip() for part in turn.parts):
                problems.append(f"{index}: empty {turn.role} turn")
            open_calls = [call.id for call in turn.tool_calls]
            if len(set(open_calls)) != len(open_calls) or "" in open_calls:
                problems.append(f"{index}: bad call ids {open_calls}")
        previous = turn
    if open_calls:
        problems.append(f"end: calls {open_calls} have no result")
    return problems


@dataclass
class FnTool:
    """A tool from a function."""

    name: str
    fn: Callable[[Mapping[str, object], ToolContext], Awaitable[ToolResult]]
    summary: str = "does what the test wants"
    description: str = "A tool of the test."
    parameters: Mapping[str, object] = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": [],
        }
    )

    async def run(self, args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        return await self.fn(args, ctx)


def with_queue(mode: str, **queue: object) -> Settings:
    """Settings with a queue mode, and what else of `messages.queue` a test wants."""
    rules = replace(QueueSettings(), mode=mode, **queue)
    messages = replace(MessagesSettings(), queue=rules)
    return Settings(messages=messages)


def named(name: str) -> ModelRef:
    """The one model by its name."""
    if name not in (REF.name, REF.id):
        raise ModelConfigError(f"There is no model {name}.")
    return REF


class OneModel:
    """A model source with one model, or the error of its absence."""

    def __init__(self, model: Model | ModelError) -> None:
        self._model = model

    def resolve(self, settings: Settings) -> ModelRef:
        if isinstance(self._model, ModelError):
            raise self._model
        return self._model.ref

    def model(self, ref: ModelRef) -> Model:
        assert not isinstance(self._model, ModelError)
        return self._model


class Bench:
    """Everything wired; `start` before use, `stop` after."""

    def __init__(
        self,
        root: Path,
        model: Model | ModelError,
        tools: Iterable[Tool] = (),
        *,
        settings: Settings | None = None,
        disk: RealDisk | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.disk = disk or RealDisk()
        self.world = fake_world(self.clock, self.disk)
        self.state = StateDir(root)
        self.bus = EventBus()
        self.settings = settings or with_queue("followup", debounce_ms=0)
        self.runs = Runs(self.clock, self.bus.publish)
        self.lanes = Lanes(self.clock, self.bus.publish)
        self.journal = Journal(self.world, self.state.inbox_dir)
        self.sessions = Sessions(self.world, self.state, self.bus.publish)
        self.broker = Broker(self.world, self.bus.publish, self.state.approvals_journal)
        self.meter = Meter(
            self.clock, Ledger(self.world, self.state.usage_db, lambda why: None),
            Calibration(self.world, self.state.calibration_json), lambda: self.settings.budgets,
            lambda: "UTC", self._session_id,
        )  # fmt: skip
        self.rules = ExecApprovals(self.world, self.state.exec_approvals)
        agent_deps = AgentDeps(
            world=self.world,
            state_dir=self.state,
            sessions=self.sessions,
            models=OneModel(model),
            tools=ToolRegistry(tools),
            approvals=self.broker,
            exec_approvals=self.rules,
            abort=self.runs.abort,
            meter=self.meter,
        )
        self.agent = AgentRuntime(agent_deps, HOST)
        self.on_event: Callable[[Event], None] = self.bus.publish
        deps = DispatchDeps(
            world=self.world,
            publish=self._publish,
            runs=self.runs,
            lanes=self.lanes,
            journal=self.journal,
            sessions=self.sessions,
            agent=self.agent,
            approvals=self.broker,
            settings=lambda: self.settings,
        )
        commands = builtin_commands(deps, self.meter.desk)
        self.dispatcher = Dispatcher(deps, commands)
        reset = stopping_reset(self.dispatcher.clear, self._reset)
        SessionCommands(deps, reset, named).register(commands)
        self.trace: list[TraceEvent] = []
        self._subscription = self.bus.subscribe("trace", capacity=100_000)
        self._ids = 0

    def _session_id(self, key: str) -> str:
        entry = self.sessions.get(key)
        return entry.session_id if entry is not None else ""

    async def _reset(self, key: str, reason: str) -> SessionEntry:
        return await self.sessions.reset(key)

    def _publish(self, event: Event) -> None:
        self.on_event(event)

    async def start(self) -> Recovered:
        self.state.ensure()
        await self.sessions.open()
        await self.broker.start()
        return await self.journal.open()

    async def stop(self) -> None:
        await self.dispatcher.close()
        await self.broker.close()
        await self.meter.close()
        await self.sessions.close()
        await self.journal.close()
        self.disk.close()
        self._pairs_are_complete()

    def _pairs_are_complete(self) -> None:
        """Whatever a run did: each call's end was told once, after its start."""
        told: dict[tuple[str, object], list[TraceKind]] = {}
        while (unread := self._subscription.get_nowait()) is not None:
            assert isinstance(unread, TraceEvent)
            self.trace.append(unread)
        for event in self.trace:
            if event.kind in (TraceKind.TOOL_STARTED, TraceKind.TOOL_ENDED):
                call = (event.run_id, event.data["toolCallId"])
                told.setdefault(call, []).append(event.kind)
        wrong = {
            call: kinds for call, kinds in told.items()
            if kinds != [TraceKind.TOOL_STARTED, TraceKind.TOOL_ENDED] * (len(kinds) // 2)
        }  # fmt: skip  # scripts use an id again in a later round
        assert wrong == {}, wrong

    def message(
        self, text: str, key: str = MAIN, *, id_: str = "", source: str = "console"
    ) -> InboundMessage:
        self._ids += 1
        run_id = id_ or f"run-{self._ids}"
        return InboundMessage(run_id, key, "main", text, source, self.clock.now_ms())

    async def send(self, text: str, key: str = MAIN, **more: str) -> str:
        message = self.message(text, key, **more)
        await self.dispatcher.submit(message)
        return message.id

    async def until(self, kind: TraceKind, run_id: str | None = None, **data: object) -> TraceEvent:
        """The next event of a kind (and run, and with these data) that was not consumed yet."""
        async with asyncio.timeout(10):
            async for event in self._subscription:
                assert isinstance(event, TraceEvent)
                self.trace.append(event)
                right_run = run_id in (None, event.run_id)
                if event.kind is kind and right_run and data.items() <= event.data.items():
                    return event
        raise AssertionError("the bus was closed")

    def kinds(self, run_id: str) -> list[str]:
        return [event.kind.value for event in self.trace if event.run_id == run_id]

    async def messages(self, key: str = MAIN) -> list[Message]:
        transcript = await self.sessions.transcript(key)
        return [stored.message for stored in transcript.messages()]
