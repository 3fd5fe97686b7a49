"""When a restart comes: after its delay, after what runs, not too soon after the last."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from claw_engine.events import EventBus
from claw_engine.restarts import DEFER_S, Restarts, leave_note, quiet, take_note
from claw_engine.runs import Run, Runs, RunState
from claw_engine.world import RealDisk
from tests.support.fakes import FakeClock


class Place:
    """Runs on a clock of the test, and the restarts that were begun."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.bus = EventBus()
        self.runs = Runs(self.clock, self.bus.publish)
        self.restarts = Restarts(self.clock)
        self.begun: list[str] = []
        self.restarts.attach(self.runs, self.bus, self.begun.append)

    def run(self, run_id: str, state: RunState = RunState.STREAMING) -> Run:
        made = self.runs.create(
            run_id, session_key=run_id, agent_id="main", lane="main", settings=None
        )
        if state is not RunState.QUEUED:
            self.runs.set_state(made, state, "test")
        return made


@pytest.fixture
def place() -> Place:
    return Place()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_restart_waits_for_its_delay_and_for_runs(place: Place) -> None:
    run = place.run("r")
    place.run("waits", RunState.QUEUED)  # the next engine has that one
    answer = place.restarts.request("why", 2000)
    assert (answer["ok"], answer["delayMs"], answer["coalesced"]) == (True, 2000, False)
    assert place.restarts.request("again", 0)["coalesced"] is True
    await place.clock.advance(1.9)
    await place.clock.advance(0.2)
    await settled()
    assert place.begun == []
    place.runs.set_state(run, RunState.DONE, "stop")
    await settled()
    assert place.begun == ["why"]


async def test_what_runs_too_long_does_not_keep_it(place: Place) -> None:
    place.run("r")
    place.restarts.request("why", 0)
    await place.clock.advance(1)
    await settled()
    await place.clock.advance(DEFER_S - 2)
    await settled()
    assert place.begun == []
    await place.clock.advance(3)
    await settled()
    assert place.begun == ["why"]


async def test_the_next_one_waits_for_half_a_minute(place: Place) -> None:
    place.restarts.request("one", 0)
    await place.clock.advance(1)
    await settled()
    assert place.begun == ["one"]
    place.restarts.detach()
    assert place.restarts.request("nobody there")["ok"] is False
    place.restarts.attach(place.runs, place.bus, place.begun.append)
    answer = place.restarts.request("two", 0)
    assert 25_000 < int(str(answer["cooldownMsApplied"])) <= 30_000
    await place.clock.advance(20)
    await settled()
    assert place.begun == ["one"]
    await place.clock.advance(11)
    await settled()
    assert place.begun == ["one", "two"]


async def test_a_stop_cuts_the_wait_short(place: Place) -> None:
    place.run("r")
    hurry = asyncio.Event()
    waiting = asyncio.create_task(quiet(place.runs, place.bus, place.clock, 30.0, hurry))
    await settled()
    hurry.set()
    assert await waiting is False


def test_a_note_is_taken_once(tmp_path: Path) -> None:
    disk, path = RealDisk(), tmp_path / "restart-sentinel.json"
    assert take_note(disk, path) is None
    leave_note(disk, path, {"message": "m"})
    assert take_note(disk, path) == {"message": "m"}
    assert take_note(disk, path) is None
    path.write_text("{torn")
    assert take_note(disk, path) is None and not path.exists()
    disk.close()
