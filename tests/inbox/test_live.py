"""The replay for a late console: merged, ordered, bounded, forgotten in time."""

from __future__ import annotations

from claw_engine.inbox.live import OUTPUT_CHARS, LiveRuns
from claw_engine.protocol.trace import TraceEvent, TraceKind
from tests.support.fakes import FakeClock


class Story:
    def __init__(self, live: LiveRuns) -> None:
        self.live = live
        self.seq = 0

    def tell(self, kind: TraceKind, **data: object) -> None:
        self.seq += 1
        self.live.record(TraceEvent("r", "s", self.seq, 0, kind, data))


def told(live: LiveRuns) -> list[tuple[str, object]]:
    (events,) = live.snapshot()
    return [(e.kind.value, e.data.get("delta")) for e in events]


def test_deltas_merge_and_order_stays() -> None:
    live = LiveRuns(FakeClock())
    story = Story(live)
    for kind, delta in (
        (TraceKind.REASONING, "think"), (TraceKind.REASONING, "ing"),
        (TraceKind.TEXT, "a"), (TraceKind.TEXT, "b"), (TraceKind.REASONING, "more"),
    ):  # fmt: skip
        story.tell(kind, callId="c1", delta=delta)
    story.tell(TraceKind.TEXT, callId="c2", delta="next call")
    assert told(live) == [
        ("reasoning", "thinking"), ("text", "ab"), ("reasoning", "more"), ("text", "next call"),
    ]  # fmt: skip


def test_outputs_of_parallel_tools_do_not_mix() -> None:
    live = LiveRuns(FakeClock())
    story = Story(live)
    for n in range(6):
        story.tell(TraceKind.TOOL_OUTPUT, toolCallId=f"t{n % 2}", delta=str(n))
    assert told(live) == [("tool.output", "024"), ("tool.output", "135")]


def test_output_is_bounded_and_says_so() -> None:
    live = LiveRuns(FakeClock())
    story = Story(live)
    for _ in range(300):
        story.tell(TraceKind.TOOL_OUTPUT, toolCallId="t", delta="x" * 1024)
    ((_, delta),) = told(live)
    assert isinstance(delta, str)
    assert len(delta) <= 2 * OUTPUT_CHARS + 100
    assert "left out" in delta.splitlines()[0]


async def test_a_run_is_forgotten_some_seconds_after_its_end() -> None:
    clock = FakeClock()
    live = LiveRuns(clock, linger_s=5)
    Story(live).tell(TraceKind.RUN_ENDED, status="done")
    await clock.advance(4.9)
    assert len(live.snapshot()) == 1
    await clock.advance(0.2)
    assert live.snapshot() == []


def test_only_the_newest_call_keeps_its_parts() -> None:
    live = LiveRuns(FakeClock())
    story = Story(live)
    for n in range(3):
        story.tell(TraceKind.CALL_STARTED, callId=f"c{n}", parts=[{"id": "p"}], bytes=10)
    (events,) = live.snapshot()
    assert [len(e.data["parts"]) for e in events] == [0, 0, 1]  # type: ignore[arg-type]  # a list
    assert [e.data["bytes"] for e in events] == [10, 10, 10]
