from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from claw_engine.storage.errors import StateDiskError
from claw_engine.storage.foreign_lock import (
    MAX_HOLD_S,
    STEP_S,
    FileLocks,
    LockHeld,
    lock_path,
    sweep,
)
from claw_engine.world import RealDisk, World
from tests.support.fakes import START_MS, FakeClock, fake_world

# What OpenClaw does: exclusive create, then {pid, createdAt} inside.
OTHER = """
import datetime, json, os, sys
path = sys.argv[1]
fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
at = datetime.datetime.fromtimestamp(int(sys.argv[2]) / 1000, datetime.UTC).isoformat()
os.write(fd, json.dumps({"pid": os.getpid(), "createdAt": at}).encode())
print("held", flush=True)
sys.stdin.readline()
os.unlink(path)
print("released", flush=True)
"""


@contextmanager
def other_process(target: Path, created_ms: int = START_MS) -> Iterator[subprocess.Popen[str]]:
    """A second process that holds OpenClaw's lock on `target` until it reads a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(lock_path(target)), str(created_ms)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "released\n"


async def ticking(clock: FakeClock, disk: RealDisk, seconds: float) -> None:
    """Let time pass in small steps; the disk finishes its work in each."""
    for _ in range(round(seconds / STEP_S)):
        for _ in range(3):
            await disk.run(lambda: None)
        await clock.advance(STEP_S)


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def disk() -> RealDisk:
    return RealDisk()


@pytest.fixture
def world(clock: FakeClock, disk: RealDisk) -> World:
    return fake_world(clock, disk)


def put(path: Path, value: object, age_s: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    at = START_MS / 1000 - age_s
    os.utime(path, (at, at))
    return path


async def test_a_lock_says_who_holds_it_and_goes_with_its_last_share(
    tmp_path: Path, world: World
) -> None:
    target, locks = tmp_path / "deep" / "a.jsonl", FileLocks(world)
    first = await locks.acquire(target)
    (tmp_path / "same").symlink_to(tmp_path / "deep")
    second = await locks.acquire(tmp_path / "same" / "a.jsonl")
    file = lock_path(target)
    assert json.loads(file.read_text()) == {
        "pid": os.getpid(),
        "createdAt": "2026-11-30T08:40:00.000Z",
        "by": "claw-tui",
    }
    assert file.stat().st_mode & 0o777 == 0o600
    await locks.release(first)
    await locks.release(first)
    assert file.exists()
    await locks.release(second)
    assert list(file.parent.iterdir()) == []


async def test_a_lock_of_another_process_is_waited_for(
    tmp_path: Path, world: World, clock: FakeClock, disk: RealDisk
) -> None:
    target, locks = tmp_path / "a.jsonl", FileLocks(world)
    with other_process(target) as other:
        waiting = asyncio.ensure_future(locks.acquire(target))
        await ticking(clock, disk, 5)
        assert not waiting.done()
        let_go(other)
        await ticking(clock, disk, 2)
        assert waiting.done()
        hold = await waiting
    assert json.loads(lock_path(target).read_text())["pid"] == os.getpid()
    await locks.release(hold)
    assert not lock_path(target).exists()


async def test_st05_the_error_names_the_process_and_may_be_retried(
    tmp_path: Path, world: World, clock: FakeClock, disk: RealDisk
) -> None:
    """ST-05: the error itself."""
    target, locks = tmp_path / "sessions.json", FileLocks(world)
    with other_process(target) as other:
        waiting = [asyncio.ensure_future(locks.acquire(target)) for _ in range(3)]
        await ticking(clock, disk, 11)
        for one in waiting:
            with pytest.raises(LockHeld) as caught:
                await one
            assert caught.value.pid == other.pid
            assert f"process {other.pid}" in str(caught.value)
            assert (caught.value.retryable, caught.value.code) == (True, "UNAVAILABLE")
        let_go(other)
    await locks.release(await locks.acquire(target))


async def test_the_waits_between_tries_grow(tmp_path: Path) -> None:
    naps: list[float] = []

    class Noted(FakeClock):
        async def sleep(self, seconds: float) -> None:
            naps.append(seconds)
            await super().sleep(seconds)

    clock = Noted()
    disk = RealDisk()
    locks = FileLocks(fake_world(clock, disk))
    target = tmp_path / "a.jsonl"
    with other_process(target):
        waiting = asyncio.ensure_future(locks.acquire(target))
        await ticking(clock, disk, 11)
        with pytest.raises(LockHeld):
            await waiting
    assert naps[:3] == pytest.approx([STEP_S, 2 * STEP_S, 3 * STEP_S])
    assert 8.5 < sum(naps) < 10.01


NOW = "2026-11-30T08:39:00.000Z"
HALF_HOUR_AGO = "2026-11-30T08:09:59.000Z"
STALE = [
    ("dead process", {"createdAt": NOW}, 0, True),
    ("our number, another life", {"pid": os.getpid(), "createdAt": NOW}, 0, True),
    ("too old", {"pid": 1, "createdAt": HALF_HOUR_AGO}, 0, True),
    ("alive", {"pid": 1, "createdAt": NOW}, 0, False),
    ("no date, new", {"pid": 1}, 60, False),
    ("no date, old", {"pid": 1}, 1801, True),
    ("torn, new", "{", 60, False),
    ("torn, old", "{", 1801, True),
    ("empty, made just now", "", 9, False),
    ("empty, its maker stopped", "", 11, True),
]


@pytest.mark.parametrize(
    ("value", "age", "stale"), [s[1:] for s in STALE], ids=[s[0] for s in STALE]
)
async def test_stale_locks_are_taken_over(
    tmp_path: Path, world: World, value: object, age: float, stale: bool
) -> None:
    if isinstance(value, dict) and "pid" not in value:
        value = {**value, "pid": dead_pid()}
    target, locks = tmp_path / "a.jsonl", FileLocks(world, timeout_s=0)
    file = put(lock_path(target), value, age)
    before = file.read_text()
    if stale:
        await locks.release(await locks.acquire(target))
        assert list(tmp_path.iterdir()) == []
    else:
        with pytest.raises(LockHeld):
            await locks.acquire(target)
        assert file.read_text() == before


async def test_the_watchdog_takes_away_what_is_held_too_long(
    tmp_path: Path, world: World, clock: FakeClock, disk: RealDisk
) -> None:
    target, locks, lost = tmp_path / "a.jsonl", FileLocks(world), list[str]()
    short = await locks.acquire(target, on_lost=lambda: lost.append("short"))
    long = await locks.acquire(target, max_hold_s=900, on_lost=lambda: lost.append("long"))
    await clock.advance(MAX_HOLD_S + 60)
    await disk.run(lambda: None)
    assert (short.lost, long.lost, lost) == (True, False, ["short"])
    assert lock_path(target).exists()
    await clock.advance(900)
    assert lost == ["short", "long"]
    again = await locks.acquire(target)  # in the queue behind the removal
    assert lock_path(target).exists()
    await locks.release(long)
    assert lock_path(target).exists()
    await locks.release(again)


async def test_a_lock_that_is_not_ours_any_more_stays(tmp_path: Path, world: World) -> None:
    target, locks = tmp_path / "a.jsonl", FileLocks(world)
    hold = await locks.acquire(target)
    lock_path(target).unlink()
    put(lock_path(target), {"pid": 1, "createdAt": NOW})
    await locks.release(hold)
    assert json.loads(lock_path(target).read_text())["pid"] == 1


async def test_release_and_acquire_never_overlap(tmp_path: Path, world: World) -> None:
    target, locks, inside = tmp_path / "a.jsonl", FileLocks(world), 0

    async def use() -> None:
        nonlocal inside
        for _ in range(20):
            async with locks.hold(target):
                assert json.loads(lock_path(target).read_text())["pid"] == os.getpid()
                inside += 1
                await asyncio.sleep(0)

    await asyncio.gather(*(use() for _ in range(5)))
    assert inside == 100
    assert list(tmp_path.iterdir()) == []


async def test_two_processes_never_hold_it_at_once(tmp_path: Path) -> None:
    """Both add one to a number fifty times; a lock that does not exclude loses some."""
    script = """
import asyncio, sys
from pathlib import Path
from claw_engine.storage.foreign_lock import FileLocks
from claw_engine.world import real_world
async def main():
    locks, path = FileLocks(real_world()), Path(sys.argv[1])
    for _ in range(50):
        async with locks.hold(path):
            path.write_text(str(int(path.read_text()) + 1))
asyncio.run(main())
"""
    target = tmp_path / "number.jsonl"
    target.write_text("0")
    both = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(target))
        for _ in range(2)
    ]
    assert [await process.wait() for process in both] == [0, 0]
    assert target.read_text() == "100"
    assert list(tmp_path.iterdir()) == [target]


async def test_close_leaves_no_lock(tmp_path: Path, world: World) -> None:
    locks = FileLocks(world)
    await locks.acquire(tmp_path / "a.jsonl")
    await locks.acquire(tmp_path / "sessions.json")
    await locks.close()
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_cannot_be_written_is_a_disk_error(
    tmp_path: Path, world: World
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateDiskError):
        await FileLocks(world).acquire(tmp_path / "file" / "a.jsonl")


def test_sweep_removes_ours_and_stale_ones_only(tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "main" / "sessions"
    keep = [
        put(folder / "live.jsonl.lock", {"pid": 1, "createdAt": NOW}),
        put(folder / "new.jsonl.lock", "{", 60),
        put(folder / "mine.lock", {"pid": 1, "createdAt": NOW, "by": "claw-tui"}),
    ]
    gone = [
        put(folder / "dead.jsonl.lock", {"pid": dead_pid(), "createdAt": NOW}),
        put(folder / "old.jsonl.lock", {"pid": 1, "createdAt": HALF_HOUR_AGO}),
        put(folder / "sessions.json.lock", {"pid": 1, "createdAt": NOW, "by": "claw-tui"}),
    ]
    assert set(sweep(tmp_path, START_MS)) == set(gone)
    assert set(folder.iterdir()) == set(keep)
