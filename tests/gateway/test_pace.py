"""Tokens leave in beats of 75 ms, whole and in order."""

from __future__ import annotations

from claw_engine.gateway.pace import PACE_S, Pacer
from claw_engine.gateway.translate import ChatTranslator
from claw_engine.gateway.wire_events import WireEvent
from claw_engine.protocol.trace import TraceKind
from tests.gateway.rig import Tracer
from tests.support.fakes import FakeClock


class Listener:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.told: list[WireEvent] = []
        self.pacer = Pacer(self.clock, self.told.append)
        self.translator, self.tracer = ChatTranslator(), Tracer("r")

    def say(self, delta: str, call: str = "c") -> None:
        self.feed(TraceKind.TEXT, callId=call, delta=delta)

    def feed(self, kind: TraceKind, **data: object) -> None:
        for wire in self.translator.feed(self.tracer(kind, 0, **data)):
            self.pacer.put(wire)

    def deltas(self) -> list[str]:
        return [
            str(e.payload["data"]["delta"])  # type: ignore[index]  # JSON
            for e in self.told
            if e.payload.get("stream") == "assistant"
        ]


async def test_the_first_word_at_once_the_rest_in_beats() -> None:
    one = Listener()
    for n in range(10):
        one.say(f"{n} ")
    assert one.deltas() == ["0 "]
    await one.clock.advance(PACE_S)
    assert one.deltas() == ["0 ", "1 2 3 4 5 6 7 8 9 "]
    await one.clock.advance(1)
    assert one.clock.waiting == 0
    one.say("again")
    assert one.deltas()[-1] == "again"


async def test_what_follows_does_not_overtake() -> None:
    one = Listener()
    one.feed(TraceKind.RUN_STARTED)
    for n in range(3):
        one.say(f"{n}")
    one.feed(TraceKind.TOOL_STARTED, toolCallId="t", name="exec", args={})
    one.say("x", "c2")
    one.say("y", "c2")
    one.feed(TraceKind.RUN_ENDED, status="done", text="xy", error=None)
    streams = [str(e.payload.get("stream") or e.payload["state"]) for e in one.told]
    assert one.deltas() == ["0", "12", "x", "y"] or one.deltas() == ["0", "12", "xy"]
    assert streams[-1] == "final"
    numbers = [int(str(e.payload["seq"])) for e in one.told if e.name == "agent" and not e.only4]
    assert numbers == sorted(numbers)
