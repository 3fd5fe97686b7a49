"""The outbox: bounded, merging, numbered late (case GW-01)."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from claw_engine.gateway.outbox import Outbox, Outgoing
from claw_engine.gateway.translate import trace_event
from claw_engine.gateway.wire_events import Delivery, WireEvent
from claw_engine.protocol.trace import TraceKind
from tests.gateway.rig import Tracer


def outbox(soft: int = 1000, hard: int = 2000) -> tuple[Outbox, list[str]]:
    closed: list[str] = []
    return Outbox(lambda: closed.append("slow"), soft_limit=soft, hard_limit=hard), closed


def delta(cost: int = 100) -> WireEvent:
    return WireEvent("agent", {}, cost, Delivery.DROPPABLE)


def must(name: str = "chat", cost: int = 100) -> WireEvent:
    return WireEvent(name, {}, cost)


def seqs(items: list[Outgoing | bytes]) -> list[int | None]:
    return [item.seq for item in items if isinstance(item, Outgoing)]


def test_a_slow_client_gets_one_gap_and_every_must_deliver() -> None:
    box, closed = outbox(soft=5_000, hard=10_000)
    for _ in range(500):
        box.put(delta())
    for name in ("exec.approval.requested", "chat", "agent"):
        box.put(must(name))
    items = box.take(1 << 20)
    names = [item.event.name for item in items if isinstance(item, Outgoing)]
    assert names[-3:] == ["exec.approval.requested", "chat", "agent"]
    numbers = [n for n in seqs(items) if n is not None]
    gaps = [b - a for a, b in pairwise(numbers) if b != a + 1]
    first_gap = numbers[0] - 1
    assert [g for g in [first_gap, *(g - 1 for g in gaps)] if g] == [1]
    box.put(must())
    assert seqs(box.take()) == [numbers[-1] + 1]
    assert closed == []


def test_must_deliver_over_the_hard_limit_gives_the_connection_up() -> None:
    box, closed = outbox(soft=1000, hard=2000)
    for _ in range(30):
        box.put(must())
    assert closed == ["slow"]
    assert box.closed
    assert box.take() == []


def test_one_huge_answer_fits_when_nothing_else_waits() -> None:
    box, closed = outbox(hard=2000)
    box.put_line(b"x" * 5000)
    assert closed == []
    assert box.take() == [b"x" * 5000]


def test_trace_deltas_of_one_run_and_call_merge_and_the_text_is_whole() -> None:
    box, _ = outbox(soft=1 << 20, hard=1 << 21)
    a, b = Tracer("a"), Tracer("b")
    for n in range(50):
        box.put(trace_event(a(TraceKind.TEXT, callId="c1", delta=f"{n} ")))
        box.put(trace_event(b(TraceKind.TEXT, callId="c1", delta="b")))
    items = [i.event.payload for i in box.take(1 << 20) if isinstance(i, Outgoing)]
    texts = {str(p["runId"]): p["data"]["delta"] for p in items}  # type: ignore[index]  # JSON
    assert len(items) == 2
    assert texts == {"a": "".join(f"{n} " for n in range(50)), "b": "b" * 50}


def test_a_delta_does_not_jump_over_another_event_of_its_run() -> None:
    box, _ = outbox()
    t = Tracer("a")
    box.put(trace_event(t(TraceKind.TEXT, callId="c1", delta="one")))
    box.put(trace_event(t(TraceKind.TOOL_STARTED, toolCallId="t", name="exec", args={})))
    box.put(trace_event(t(TraceKind.TEXT, callId="c1", delta="two")))
    kinds = [i.event.payload["kind"] for i in box.take() if isinstance(i, Outgoing)]
    assert kinds == ["text", "tool.started", "text"]


async def test_events_do_not_overtake_an_answer_that_is_being_encoded() -> None:
    box, _ = outbox()
    box.put(must("first"))
    slot = box.reserve()
    box.put(must("second"))
    first = box.take()
    assert [i.event.name for i in first if isinstance(i, Outgoing)] == ["first"]
    assert box.take() == []
    waiting = asyncio.create_task(box.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    box.fill(slot, b"answer")
    assert await waiting
    answer, second = box.take()
    assert answer == b"answer"
    assert isinstance(second, Outgoing)
    assert (second.event.name, second.seq) == ("second", 2)
    assert box.cost == 0


def test_a_shared_event_is_encoded_once_and_numbered_for_each() -> None:
    event = WireEvent("tick", {"ts": 1})
    assert json.loads(event.line(1)) == {
        "type": "event", "event": "tick", "payload": {"ts": 1}, "seq": 1,
    }  # fmt: skip
    assert json.loads(event.line(None)) == {"type": "event", "event": "tick", "payload": {"ts": 1}}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("droppable"), st.integers(1, 400)),
            st.tuples(st.just("must"), st.integers(1, 60)),
            st.tuples(st.just("targeted"), st.integers(1, 60)),
            st.tuples(st.just("take"), st.integers(1, 2000)),
        ),
        max_size=120,
    )
)
def test_numbers_skip_exactly_one_for_a_stretch_of_losses(steps: list[tuple[str, int]]) -> None:
    box, closed = outbox(soft=1000, hard=100_000)
    sent_must, got_must, numbers = 0, 0, [0]
    dropped_stretches = 0
    before = box.cost
    for step, size in steps:
        before = box.cost
        match step:
            case "droppable":
                box.put(delta(size))
                dropped_stretches += before + size > 1000
            case "must":
                box.put(must(cost=size))
                sent_must += 1
            case "targeted":
                box.put(WireEvent("trace", {}, size, numbered=False))
            case _:
                for item in box.take(size):
                    assert isinstance(item, Outgoing)
                    got_must += item.event.name == "chat"
                    if item.seq is not None:
                        numbers.append(item.seq)
    for item in box.take(1 << 30):
        assert isinstance(item, Outgoing)
        got_must += item.event.name == "chat"
        if item.seq is not None:
            numbers.append(item.seq)
    steps_between = [b - a for a, b in pairwise(numbers)]
    assert all(step in (1, 2) for step in steps_between)
    assert steps_between.count(2) <= dropped_stretches
    assert got_must == sent_must
    assert box.cost == 0
    assert closed == []


class FakePipe:
    """Takes bytes as long as it is open."""

    def __init__(self) -> None:
        self.open = True
        self.lines: list[bytes] = []
        self.flushes = 0

    def write_event(self, body: bytes, tail: bytes) -> None:
        self.lines.append(body + tail + b"\n")

    def flush_soon(self) -> None:
        self.flushes += 1


@given(st.lists(st.sampled_from(["event", "line", "shut", "open", "write", "reserve", "fill"])))
def test_the_way_past_the_queue_keeps_order_and_numbers(steps: list[str]) -> None:
    box, _ = outbox(soft=1 << 20, hard=1 << 20)
    pipe = box.pipe = FakePipe()
    slots, said, wanted = [], 0, []

    def write() -> None:
        for item in box.take():
            line = item if isinstance(item, bytes) else item.event.line(item.seq)
            pipe.lines.append(line)

    for step in steps:
        match step:
            case "event":
                box.put(WireEvent("e", {"n": said}))
                wanted.append(said)
                said += 1
            case "line":
                box.put_line(b'{"payload":{"n":%d}}\n' % said)
                wanted.append(said)
                said += 1
            case "reserve":
                slots.append((box.reserve(), said))
                wanted.append(said)
                said += 1
            case "fill" if slots:
                slot, number = slots.pop()
                box.fill(slot, b'{"payload":{"n":%d}}\n' % number)
            case "write":
                write()
            case _:
                pipe.open = step == "open"
    for slot, number in slots:
        box.fill(slot, b'{"payload":{"n":%d}}\n' % number)
    write()
    frames = [json.loads(line) for line in pipe.lines]
    assert [frame["payload"]["n"] for frame in frames] == wanted
    numbers = [frame["seq"] for frame in frames if "seq" in frame]
    assert numbers == list(range(1, len(numbers) + 1))
    assert box.cost == 0


def test_who_keeps_up_is_written_to_at_once_and_who_does_not_has_a_queue() -> None:
    box, _ = outbox()
    pipe = box.pipe = FakePipe()
    box.put(must())
    assert (len(pipe.lines), pipe.flushes, box.cost) == (1, 1, 0)
    pipe.open = False
    box.put(must())
    assert (len(pipe.lines), box.cost) == (1, 100)
    pipe.open = True
    box.put(must())  # behind the one that waits
    assert (len(pipe.lines), box.cost) == (1, 200)
