"""How long ended commands are kept, and what names they get."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from claw_engine.events import Event
from claw_engine.runs import AbortScope
from claw_engine.tools.exec.job import Job
from claw_engine.tools.exec.run import attend
from claw_engine.tools.exec.running import start
from claw_engine.tools.exec.slugs import slug
from claw_engine.tools.exec.table import KEPT_ENDED, Keep, ProcessTable
from claw_engine.world import real_world
from tests.support.fakes import FakeClock, FaultyDisk, fake_world

KEY = "agent:main:main"
RUN = f"run-of-table-{os.getpid()}"


def job(folder: Path, text: str, call: str = "c-1") -> Job:
    return Job(("/bin/sh", "-c", text), str(folder), {"PATH": "/usr/bin:/bin"}, RUN, call, None)


async def test_an_ended_command_is_forgotten_after_its_time(tmp_path: Path) -> None:
    clock = FakeClock()
    world = fake_world(clock)
    news: list[Event] = []
    table = ProcessTable(world, news.append, tmp_path / "processes.json")
    running = await start(world, job(tmp_path, "exit 0"), lambda _: None)
    entry = table.adopt(running, session_key=KEY, command="exit 0", keep=Keep(cleanup_ms=1))
    await running.wait()
    await table.kill(entry, "only waits")
    await clock.advance(59)  # one minute is the least
    assert table.get(KEY, entry.id) is entry
    await clock.advance(2)
    assert table.get(KEY, entry.id) is None
    await table.close()
    assert clock.waiting == 0


async def test_only_so_many_ended_commands_are_kept(tmp_path: Path) -> None:
    world = real_world()
    table = ProcessTable(world, lambda _: None, tmp_path / "processes.json")
    names = []
    for number in range(KEPT_ENDED + 5):
        running = await start(world, job(tmp_path, ":", f"c-{number}"), lambda _: None)
        entry = table.adopt(running, session_key=KEY, command=":", keep=Keep())
        names.append(entry.id)
        await running.wait()
        await table.kill(entry, "only waits")
    kept = [entry.id for entry in table.of_session(KEY)]
    assert kept == names[5:]
    await table.close()


async def test_a_full_disk_loses_the_note_not_the_command(tmp_path: Path) -> None:
    disk = FaultyDisk()
    world = fake_world(disk=disk)
    table = ProcessTable(world, lambda _: None, tmp_path / "processes.json")
    disk.fail_next()
    running = await start(world, job(tmp_path, "exit 4"), lambda _: None)
    entry = table.adopt(running, session_key=KEY, command="exit 4", keep=Keep())
    await table.written()
    assert (await running.wait()).returncode == 4
    await table.kill(entry, "only waits")
    assert entry.status == "failed"
    await table.close()


async def test_kill_all_may_be_limited_to_a_session(tmp_path: Path) -> None:
    world = real_world()
    table = ProcessTable(world, lambda _: None, tmp_path / "processes.json")
    entries = []
    for key in (KEY, "agent:main:other"):
        running = await start(world, job(tmp_path, "sleep 60", key), lambda _: None)
        entries.append(table.adopt(running, session_key=key, command="sleep 60", keep=Keep()))
    assert await table.kill_all("session stop", KEY) == [entries[0].id]
    assert (entries[0].ended, entries[1].ended) == (True, False)
    assert table.running == 1
    await table.close()
    assert entries[1].ended
    assert entries[1].stopped_by == "shutdown"


async def test_attending_a_command_leaves_it_untouched_when_the_time_is_over(
    tmp_path: Path,
) -> None:
    world = real_world()
    running = await start(world, job(tmp_path, "sleep 60"), lambda _: None)
    assert await attend(world, running, AbortScope(), 0.01) is None
    assert running.ran is None
    running.stop()
    running.stop()
    assert (await asyncio.wait_for(running.wait(), 10)).stopped


@given(st.lists(st.integers(0, 2**32), max_size=60))
def test_names_are_two_words_and_never_twice(numbers: list[int]) -> None:
    taken: set[str] = set()
    for number in numbers:
        name = slug(number, taken)
        assert name not in taken
        assert len(name.split("-")) == 2
        taken.add(name)


def test_when_all_names_are_taken_a_number_helps() -> None:
    taken = {slug(0, ()), *(slug(number, ()) for number in range(32 * 32))}
    assert len(taken) == 1024
    assert slug(5, taken) not in taken
