"""What a dead engine left running: found, told apart, stopped. All processes are real."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from claw_engine.events import Event, Notice
from claw_engine.tools.exec.orphans import Reaped, find
from claw_engine.tools.exec.processes import Mark, ProcessId, Seen, look, of_user
from claw_engine.tools.exec.roster import Listed, Roster, listed_from_json, machine
from claw_engine.tools.exec.table import ProcessTable
from claw_engine.world import RealClock, RealDisk, RealIds, RealSpawn, World

RUN, CALL = f"run-of-test-{os.getpid()}", "call-1"


class Grave:
    """Starts processes as a dead engine would have left them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "processes.json"
        self.disk = RealDisk()
        self.world = World(RealClock(), RealIds(), self.disk, RealSpawn())
        self.news: list[Event] = []
        self.table = ProcessTable(self.world, self.news.append, self.path)
        self._children: list[subprocess.Popen[bytes]] = []

    def start(
        self, text: str = "echo up; exec sleep 60", *, run: str | None = RUN, call: str = CALL
    ) -> Seen:
        """A process in a session of its own that has said something."""
        marks = {} if run is None else {"CLAW_RUN_ID": run, "CLAW_CALL_ID": call}
        child = subprocess.Popen(
            ["/bin/sh", "-c", text],
            env={"PATH": "/usr/bin:/bin", **marks},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        seen = look(child.pid)
        assert seen is not None
        return seen

    def bury(self, seen: Seen) -> None:
        """End it here and now, and reap it."""
        os.kill(seen.id.pid, signal.SIGKILL)
        next(child for child in self._children if child.pid == seen.id.pid).wait()

    def write(self, *leaders: ProcessId, where: str | None = None, call: str = CALL) -> None:
        rows = [
            Listed(f"s-{id_.pid}", Mark(id_, RUN, call), "agent:main:main", "x", "/", 1).to_json()
            for id_ in leaders
        ]
        place = machine() if where is None else where
        self.path.write_text(json.dumps({"version": 1, "machine": place, "processes": rows}))

    def notices(self) -> Mapping[str, Notice]:
        return {news.code: news for news in self.news if isinstance(news, Notice)}

    def close(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()
            assert child.stdout is not None
            child.stdout.close()
        self.disk.close()


@pytest.fixture
def grave(tmp_path: Path) -> Iterator[Grave]:
    made = Grave(tmp_path)
    yield made
    made.close()


async def test_a_listed_process_is_stopped_and_told(grave: Grave) -> None:
    seen = grave.start()
    grave.write(seen.id)
    reaped = await grave.table.reap()
    assert reaped.stopped == (f"{seen.id.pid} (sleep)",)
    assert look(seen.id.pid) is None
    notice = grave.notices()["orphans-stopped"]
    assert notice.title == "1 process of an engine that died: stopped."
    assert str(seen.id.pid) in notice.text
    assert json.loads(grave.path.read_text())["processes"] == []


async def test_a_listed_process_that_cleared_its_environment_too(grave: Grave) -> None:
    seen = grave.start("exec env -i sh -c 'echo up; exec sleep 60'")
    grave.write(seen.id)
    await grave.table.reap()
    assert look(seen.id.pid) is None


async def test_what_a_cut_off_run_left_is_stopped_by_its_environment(grave: Grave) -> None:
    seen = grave.start(call="any-call")
    await grave.table.reap({RUN})
    assert look(seen.id.pid) is None


async def test_one_that_ignores_term_is_killed(grave: Grave) -> None:
    seen = grave.start("trap '' TERM; echo up; while :; do sleep 0.05; done")
    grave.write(seen.id)
    reaped = await grave.table.reap()
    assert reaped.survived == ()
    assert look(seen.id.pid) is None


async def test_children_go_with_it(grave: Grave) -> None:
    """One cleared its environment and ignores TERM, so only the leader's session proves it."""
    script = (
        "env -i sh -c 'trap \"\" TERM; echo $$ > pid; echo up; while :; do /bin/sleep 0.05; done' &"
        " setsid sleep 60 & wait"
    )
    seen = grave.start(f"cd {grave.path.parent}; {script}")
    child = int((grave.path.parent / "pid").read_text())
    grave.write(seen.id)
    reaped = await grave.table.reap()
    assert len(reaped.stopped) >= 3
    assert look(child) is None
    assert find([], {RUN}).ours == ()


async def test_a_reused_number_is_left_alone(grave: Grave) -> None:
    seen = grave.start(run=None)
    grave.write(ProcessId(seen.id.pid, seen.id.started - 1))
    reaped = await grave.table.reap()
    assert reaped.stopped == ()
    assert look(seen.id.pid) is not None


@pytest.mark.parametrize("where", ["another boot", ""])
async def test_numbers_of_another_boot_or_machine_mean_nothing(grave: Grave, where: str) -> None:
    seen = grave.start(run=None)
    grave.write(seen.id, where=where)
    assert (await grave.table.reap()).stopped == ()
    assert look(seen.id.pid) is not None


async def test_other_runs_are_reported_and_left_alone(grave: Grave) -> None:
    """A daemon that a command of a finished run left on purpose, or another engine's child."""
    other = grave.start(run="someone-elses-run")
    listed = grave.start()
    grave.write(listed.id)
    reaped = await grave.table.reap()
    assert f"{other.id.pid} (sleep)" in reaped.unsure
    assert look(other.id.pid) is not None
    assert look(listed.id.pid) is None
    assert grave.notices()["orphans-unsure"].level == "info"


async def test_another_call_of_a_finished_run_is_left_alone(grave: Grave) -> None:
    daemon, listed = grave.start(call="call-0"), grave.start()
    grave.write(listed.id)
    await grave.table.reap()
    assert look(daemon.id.pid) is not None
    assert look(listed.id.pid) is None


async def test_members_of_a_dead_leaders_session_are_only_reported(grave: Grave) -> None:
    leader = grave.start("env -i sh -c 'echo up; exec sleep 60' & exec sleep 60")
    member = next(
        seen for seen in of_user() if seen.session == leader.id.pid and seen.id != leader.id
    )
    grave.bury(leader)
    grave.write(leader.id)
    reaped = await grave.table.reap()
    assert reaped.stopped == ()
    assert any(name.startswith(f"{member.id.pid} ") for name in reaped.unsure)
    assert look(member.id.pid) is not None
    os.kill(member.id.pid, signal.SIGKILL)


async def test_we_and_what_we_run_in_are_never_touched(grave: Grave) -> None:
    me = look(os.getpid())
    assert me is not None
    grave.write(me.id)
    found = find(await Roster(grave.world, grave.path, list).load(), ())
    assert me.id not in [seen.id for seen in found.ours]
    parent = look(os.getppid())
    assert parent is None or parent.id not in [seen.id for seen in found.ours]


async def test_a_clean_start_looks_at_nothing_and_writes_nothing(grave: Grave) -> None:
    other = grave.start()
    assert await grave.table.reap() == Reaped()
    assert look(other.id.pid) is not None
    assert not grave.path.exists()


BROKEN = [b"", b"{", b"[]", b'{"processes": 5}', b'{"processes": [5, {}, {"pid": true}]}', b"\xff"]


@pytest.mark.parametrize("data", BROKEN)
async def test_a_damaged_list_is_no_obstacle(grave: Grave, data: bytes) -> None:
    grave.path.write_bytes(data)
    await grave.table.reap()
    await grave.table.close()
    assert json.loads(grave.path.read_text())["processes"] == []


@pytest.mark.parametrize(
    "row", [None, {}, {"pid": 1, "runId": "r"}, {"pid": -5, "runId": "r"}, {"pid": 9, "runId": 3}]
)
def test_rows_that_name_no_process_are_none(row: object) -> None:
    assert listed_from_json(row) is None


def test_a_row_round_trips() -> None:
    row = Listed("a-b", Mark(ProcessId(12, 34), "r", "c"), "k", "sleep 'ü'", "/x", 99)
    assert listed_from_json(json.loads(json.dumps(row.to_json()))) == row


async def test_the_loop_goes_on_while_it_looks(grave: Grave) -> None:
    seen = grave.start("trap '' TERM; echo up; while :; do sleep 0.05; done")
    grave.write(seen.id)
    ticks = 0

    async def count() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    counting = asyncio.create_task(count())
    await grave.table.reap()
    counting.cancel()
    assert ticks > 20
