"""A recorded run, told again up to a moment: its events, its calls, and the conversation they
make. Pure: what time it is, somebody else says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from claw_tui.store.blocks import Block, BlockKind, CallNode
from claw_tui.store.conversation import Conversation
from claw_tui.store.requests import CallInfo, call_from, cost_from, usage_from
from claw_tui.store.turns import run_of
from claw_tui.store.wire import Json, flag, maybe_num, num, obj, objs, text
from claw_tui.store.words import took

LONGEST_GAP_MS = 3_000
"""In which nothing happened: a longer one (a wait for the operator) is played as this."""
SAID_STATES = {
    "parked": "waits for the operator",
    "compacting": "compacts the context",
    "backing_off": "waits before it tries again",
}
"""States of a run that are steps of their own in a past one."""


class PastRun(Struct, frozen=True):
    """A row of `trace.list`. Times in ms since the epoch, spans in ms."""

    id: str
    session: str = ""
    parent: str = ""
    source: str = ""
    cause: str = ""
    title: str = ""
    model: str = ""
    status: str = ""
    stop_reason: str = ""
    started_ms: int = 0
    ended_ms: int | None = None
    queue_ms: int = 0
    parked_ms: int = 0
    calls: int = 0
    tools: int = 0
    body_bytes: int = 0
    estimated: int = 0
    sent: int = 0
    output: int = 0
    cached: int = 0
    cost: float | None = None
    error: str = ""

    @property
    def duration_ms(self) -> int | None:
        return None if self.ended_ms is None else max(0, self.ended_ms - self.started_ms)


def run_from(raw: object) -> PastRun:
    data = obj(raw)
    usage = usage_from(data.get("usage"))
    return PastRun(
        text(data, "id"),
        text(data, "sessionKey"),
        text(data, "parentId"),
        text(data, "source"),
        text(data, "cause"),
        text(data, "title"),
        text(data, "model"),
        text(data, "status"),
        text(data, "stopReason"),
        num(data, "startedMs"),
        maybe_num(data, "endedMs"),
        num(data, "queueMs"),
        num(data, "parkedMs"),
        num(data, "calls"),
        num(data, "tools"),
        num(data, "bodyBytes"),
        num(data, "estimatedTokens"),
        usage.sent if usage else 0,
        usage.output if usage else 0,
        usage.cache_read if usage else 0,
        cost_from(data),
        text(data, "error"),
    )


class PastTalk(Conversation):
    """A conversation that also tells its calls and waits, which a live one keeps to itself."""

    known: Mapping[str, CallInfo] = field(default_factory=dict)
    """Calls of the run by the id that its events use."""
    calls: dict[str, Block] = field(default_factory=dict)

    def _call_started(self, run_id: str, ts: int, data: Json) -> None:
        super()._call_started(run_id, ts, data)
        label = text(data, "callId")
        stored = self.known.get(label)
        node = CallNode(
            stored.id if stored is not None else f"{run_of(run_id)}/{label}",
            len(self.calls) + 1,
            text(data, "cause"),
            num(data, "tokens"),
            not flag(data, "estimated", True),
            cost=stored.cost if stored is not None else None,
        )
        block = Block(f"call:{run_id}:{label}", BlockKind.CALL, run_id, ts, call=node)
        self.calls[label] = self._add(block)

    def _call_ended(self, run_id: str, ts: int, data: Json) -> None:
        super()._call_ended(run_id, ts, data)
        block = self.calls.get(text(data, "callId"))
        if block is None or block.call is None:
            return
        node, usage = block.call, usage_from(data.get("usage"))
        if usage is not None:
            node.tokens, node.measured = usage.sent or node.tokens, bool(usage.sent)
            node.output, node.cached = usage.output, usage.cache_read
        node.ttft_ms = maybe_num(data, "ttftMs")
        node.duration_ms = maybe_num(data, "durationMs")
        node.error = text(obj(data.get("error")), "message")
        block.touch()

    def _run_started(self, run_id: str, ts: int, data: Json) -> None:
        self._cut_tools(run_id)  # taken up again: whoever ran them is gone
        super()._run_started(run_id, ts, data)
        if num(data, "waitMs") >= 100:
            self._note(run_id, ts, f"queued for {took(num(data, 'waitMs'))}")

    def _step(self, run_id: str, ts: int, kind: str, data: Json) -> None:
        super()._step(run_id, ts, kind, data)
        words = SAID_STATES.get(text(data, "new")) if kind == "run.state" else None
        if words:
            why = text(data, "reason")
            self._note(run_id, ts, f"{words}: {why}" if why else words)


class Replay(Struct):
    """The events of a run and how many of them have happened. `times` are ms since the first
    one, long gaps shortened."""

    run: PastRun
    calls: tuple[CallInfo, ...] = ()
    events: Sequence[Json] = ()
    times: Sequence[int] = ()
    talk: PastTalk = field(default_factory=lambda: PastTalk(""))
    done: int = 0
    at_ms: int = 0

    @property
    def whole_ms(self) -> int:
        return self.times[-1] if self.times else 0

    @property
    def at_end(self) -> bool:
        return self.done >= len(self.events)

    @property
    def wall_ms(self) -> int:
        """When the newest event that has happened happened."""
        return num(self.events[self.done - 1], "ts") if self.done else self.run.started_ms

    def _begin(self) -> None:
        known = {call.id.rpartition("/")[2].partition("@")[0]: call for call in self.calls}
        generation = self.talk.generation + 1
        self.talk = PastTalk(self.run.session, known=known, generation=generation)
        self.done = 0

    def steps_to(self, step: int) -> Iterator[None]:
        """Bring the conversation to the state after `step` events; a pause after each event, for
        whoever must not hold up a loop."""
        step = max(0, min(len(self.events), step))
        if step < self.done or not self.talk.key:
            self._begin()
        while self.done < step:
            event = self.events[self.done]
            self.done += 1
            self.talk.apply(
                text(event, "runId", self.run.id),
                self.done,
                num(event, "ts"),
                text(event, "kind"),
                obj(event.get("data")),
            )
            yield
        self.at_ms = self.times[step - 1] if step else 0

    def to(self, step: int) -> None:
        for _ in self.steps_to(step):
            pass

    def advance(self, ms: int) -> bool:
        """Let `ms` of the run go by; whether anything happened."""
        at = min(self.whole_ms, self.at_ms + ms)
        step = self.done
        while step < len(self.events) and self.times[step] <= at:
            step += 1
        moved = step != self.done
        if moved:
            self.to(step)
        self.at_ms = at
        return moved


def replay_from(raw: Json) -> Replay:
    """A replay from the answer of `trace.run`; nothing of it has happened yet."""
    events, run = objs(raw.get("events")), run_from(raw.get("run"))
    if run.status == "interrupted" and events and text(events[-1], "kind") != "run.ended":
        # Its engine died and told no end: without one its tools would seem to run for ever.
        told = {"status": "interrupted"}
        events = [*events, {**events[-1], "kind": "run.ended", "data": told}]
    times: list[int] = []
    at, last = 0, num(events[0], "ts") if events else 0
    for event in events:
        at += min(LONGEST_GAP_MS, max(0, num(event, "ts") - last))
        last = max(last, num(event, "ts"))
        times.append(at)
    calls = tuple(call_from(row) for row in objs(raw.get("calls")))
    return Replay(run, calls, events, times)
