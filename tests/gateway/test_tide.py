"""Events for many clients leave together, for few at once."""

from __future__ import annotations

from claw_engine.gateway.outbox import Outbox
from claw_engine.gateway.tide import EACH_S, FEW, MOST_S, TOGETHER, Tide
from claw_engine.gateway.wire_events import WireEvent
from tests.support.fakes import FakeClock


class Pipe:
    open = True

    def __init__(self) -> None:
        self.written = 0
        self.flushes = 0

    def write_event(self, body: bytes, tail: bytes) -> None:
        self.written += 1

    def flush_soon(self) -> None:
        self.flushes += 1


class Crowd:
    def __init__(self, size: int) -> None:
        self.clock = FakeClock()
        self.tide = Tide(self.clock, lambda: size)
        self.boxes = [Outbox(lambda: None, rouse=self.tide.rouse) for _ in range(size)]
        self.pipes = [Pipe() for _ in self.boxes]
        for box, pipe in zip(self.boxes, self.pipes, strict=True):
            box.pipe = pipe

    def say(self) -> None:
        for box in self.boxes:
            box.put(WireEvent("e", {}))

    @property
    def flushes(self) -> list[int]:
        return [pipe.flushes for pipe in self.pipes]


async def test_a_few_clients_are_written_to_at_each_event() -> None:
    crowd = Crowd(FEW)
    crowd.say()
    crowd.say()
    assert crowd.flushes == [2] * FEW
    assert crowd.clock.waiting == 0


async def test_many_are_written_to_once_for_several_events() -> None:
    crowd = Crowd(20)
    crowd.say()
    crowd.say()
    assert crowd.flushes == [0] * 20
    await crowd.clock.advance(0)
    assert crowd.flushes == [1] * 20  # the first after a quiet time do not wait
    crowd.say()
    await crowd.clock.advance(0)
    crowd.say()
    assert crowd.flushes == [1] * 20
    await crowd.clock.advance(20 * EACH_S)
    assert crowd.flushes == [2] * 20
    assert [pipe.written for pipe in crowd.pipes] == [4] * 20


async def test_others_get_a_turn_between_hundreds() -> None:
    crowd = Crowd(3 * TOGETHER)
    crowd.say()
    turns = []

    def look() -> None:
        turns.append(sum(crowd.flushes))
        if turns[-1] < 3 * TOGETHER:
            crowd.clock.call_later(0, look)

    crowd.clock.call_later(0, look)
    await crowd.clock.advance(MOST_S)
    assert turns == [TOGETHER, 2 * TOGETHER, 3 * TOGETHER]


async def test_what_comes_while_a_tide_runs_is_not_forgotten() -> None:
    crowd = Crowd(2 * TOGETHER)
    crowd.say()
    crowd.clock.call_later(0, crowd.say)  # after the first half
    await crowd.clock.advance(MOST_S)
    await crowd.clock.advance(MOST_S)
    assert all(crowd.flushes)
    assert crowd.clock.waiting == 0
    crowd.say()
    crowd.tide.cancel()
    assert all(count >= 2 for count in crowd.flushes)
