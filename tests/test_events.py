"""The bus: a publisher never waits, deltas merge, an overflow leaves one marker."""

from __future__ import annotations

import asyncio

from claw_engine.events import EventBus, Notice, Resync
from claw_engine.protocol.trace import TraceEvent, TraceKind, trace_from_json


def delta(text: str, call: str = "c", run: str = "r", seq: int = 1) -> TraceEvent:
    return TraceEvent(run, "s", seq, 0, TraceKind.TEXT, {"callId": call, "delta": text})


def test_deltas_of_one_part_merge_and_others_do_not() -> None:
    bus = EventBus()
    box = bus.subscribe("trace")
    for event in (delta("a"), delta("b", seq=2), delta("x", call="d", seq=3), delta("c", seq=4)):
        bus.publish(event)
    got = []
    while (event := box.get_nowait()) is not None:
        assert isinstance(event, TraceEvent)
        got.append((event.data["callId"], event.data["delta"], event.seq))
    assert got == [("c", "ab", 2), ("d", "x", 3), ("c", "c", 4)]


def test_overflow_leaves_exactly_one_resync_with_the_count() -> None:
    bus = EventBus()
    box = bus.subscribe("notice", capacity=3)
    for n in range(9):
        bus.publish(Notice(str(n), "info", "t"))
    seen = [box.get_nowait() for _ in range(box.pending)]
    assert isinstance(seen[0], Resync)
    assert sum(e.dropped if isinstance(e, Resync) else 1 for e in seen if e) == 9
    assert sum(isinstance(e, Resync) for e in seen) == 1


async def test_iterator_ends_after_close_with_what_was_queued() -> None:
    bus = EventBus()
    box = bus.subscribe("notice")
    bus.publish(Notice("a", "info", "t"))
    box.close()
    bus.publish(Notice("b", "info", "t"))
    assert [e async for e in box] == [Notice("a", "info", "t")]


async def test_a_waiting_reader_wakes() -> None:
    bus = EventBus()
    box = bus.subscribe("notice")
    reader = asyncio.create_task(anext(box))
    await asyncio.sleep(0)
    bus.publish(Notice("a", "info", "t"))
    assert await reader == Notice("a", "info", "t")


def test_trace_event_survives_the_wire() -> None:
    event = delta("ä\n")
    assert trace_from_json(event.to_json()) == event
