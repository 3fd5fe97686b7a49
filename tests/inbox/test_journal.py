from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from claw_engine.inbox.journal import Journal
from claw_engine.inbox.ledger import JournalTooNew
from claw_engine.inbox.model import InboundMessage, Recovered
from claw_engine.storage.errors import StateDiskError, StateDiskFull
from claw_engine.storage.text import to_line
from claw_engine.world import RealDisk
from tests.storage.faults import HalfLineDisk
from tests.support.fakes import FakeClock, fake_world


def message(name: str, text: str = "hello", **options: object) -> InboundMessage:
    extra = {"n": 1, **options}
    return InboundMessage(name, "agent:main:main", "main", text, "console", 5, "low", extra)


def journal(folder: Path, disk: RealDisk | None = None, durability: str = "power") -> Journal:
    return Journal(fake_world(FakeClock(), disk or RealDisk()), folder, durability)


async def opened(folder: Path, disk: RealDisk | None = None) -> tuple[Journal, Recovered]:
    made = journal(folder, disk)
    return made, await made.open()


def kinds(folder: Path) -> list[str]:
    lines = (folder / "journal.jsonl").read_bytes().splitlines()
    return [json.loads(line)["kind"] for line in lines]


class Gate(RealDisk):
    """Records each append and holds it until the test lets it go."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []
        self.fsyncs: list[bool] = []
        self.hold: asyncio.Event | None = None
        self.entered = asyncio.Event()

    async def run(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.hold is not None and fn.__name__ == "_append":
            self.entered.set()
            await self.hold.wait()
        return await super().run(fn, *args, **kwargs)

    def append(self, path: Path, data: bytes, *, fsync: bool, mode: int = 0o600) -> None:
        self.batches.append([json.loads(line)["id"] for line in data.splitlines()])
        self.fsyncs.append(fsync)
        super().append(path, data, fsync=fsync, mode=mode)


# -- acknowledged = durable --------------------------------------------------------------------


async def test_accept_returns_after_the_record_is_on_disk(tmp_path: Path) -> None:
    disk = Gate()
    inbox, recovered = await opened(tmp_path, disk)
    assert recovered == Recovered()
    disk.hold = asyncio.Event()
    wait = asyncio.create_task(inbox.accept(message("r1")))
    await disk.entered.wait()
    assert not wait.done()
    disk.hold.set()
    accepted = await wait
    assert disk.fsyncs == [True]
    assert (tmp_path / "journal.jsonl").stat().st_mode & 0o777 == 0o600
    *_, line = (tmp_path / "journal.jsonl").read_bytes().splitlines()
    assert json.loads(line) == {
        "v": 1,
        "seq": accepted.seq,
        "ts": accepted.ts,
        "kind": "accepted",
        "id": "r1",
        "msg": {
            "sessionKey": "agent:main:main",
            "agentId": "main",
            "text": "hello",
            "source": "console",
            "receivedMs": 5,
            "thinking": "low",
            "extra": {"n": 1},
        },
    }


async def test_what_arrives_during_an_fsync_shares_the_next(tmp_path: Path) -> None:
    disk = Gate()
    inbox, _ = await opened(tmp_path, disk)
    disk.hold = asyncio.Event()
    waits = [asyncio.create_task(inbox.accept(message("r0")))]
    await disk.entered.wait()
    waits += [asyncio.create_task(inbox.accept(message(f"r{n}"))) for n in range(1, 40)]
    await asyncio.sleep(0)
    disk.hold.set()
    accepted = await asyncio.gather(*waits)
    assert [len(batch) for batch in disk.batches] == [1, 39]
    assert [a.seq for a in accepted] == sorted(a.seq for a in accepted)


async def test_process_durability_writes_without_fsync(tmp_path: Path) -> None:
    disk = Gate()
    inbox = journal(tmp_path, disk, "process")
    await inbox.open()
    await inbox.accept(message("r1"))
    assert disk.fsyncs == [False]
    assert kinds(tmp_path) == ["opened", "accepted"]


@pytest.mark.parametrize(
    ("mark", "fsync"),
    [("started", False), ("aborted", True), ("failed", True), ("done", False)],
)
async def test_every_mark_but_started_and_done_is_safe_from_a_power_cut(
    tmp_path: Path, mark: str, fsync: bool
) -> None:
    disk = Gate()
    inbox, _ = await opened(tmp_path, disk)
    await inbox.accept(message("r1"))
    await inbox.mark("r1", mark)
    assert disk.fsyncs == [True, fsync]


async def test_a_start_is_safe_from_a_power_cut_once_that_is_asked_for(tmp_path: Path) -> None:
    disk = Gate()
    inbox, _ = await opened(tmp_path, disk)
    await inbox.accept(message("r1"))
    await inbox.mark("r1", "started")
    await inbox.sync()
    assert disk.fsyncs == [True, False, True]
    assert kinds(tmp_path) == ["opened", "accepted", "started"]


async def test_giving_up_the_wait_keeps_the_message(tmp_path: Path) -> None:
    inbox, _ = await opened(tmp_path)
    wait = asyncio.create_task(inbox.accept(message("r1")))
    await asyncio.sleep(0)
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    await inbox.close()
    _, recovered = await opened(tmp_path)
    assert [a.id for a in recovered.not_started] == ["r1"]


# -- idempotency -------------------------------------------------------------------------------


async def test_one_id_is_accepted_once(tmp_path: Path) -> None:
    disk = Gate()
    inbox, _ = await opened(tmp_path, disk)
    first, twin = await asyncio.gather(inbox.accept(message("r1")), inbox.accept(message("r1")))
    assert (twin.seq, twin.ts, twin.message) == (first.seq, first.ts, first.message)
    assert (first.repeat, twin.repeat) == (False, True)
    await inbox.mark("r1", "started")
    again = await inbox.accept(message("r1"))
    assert (again.seq, again.repeat, again.state) == (first.seq, True, "started")
    await inbox.mark("r1", "done", "ok")
    again = await inbox.accept(message("r1"))
    assert (again.seq, again.repeat, again.state) == (first.seq, True, "done")
    assert kinds(tmp_path) == ["opened", "accepted", "started", "done"]
    assert inbox.pending() == ()


async def test_finished_ids_are_remembered_across_restarts_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_engine.inbox.ledger.REMEMBERED", 3)
    inbox, _ = await opened(tmp_path)
    for n in range(5):
        await inbox.accept(message(f"r{n}"))
        await inbox.mark(f"r{n}", "done")
    again, recovered = await opened(tmp_path)
    assert recovered == Recovered()
    assert [(await again.accept(message(f"r{n}"))).repeat for n in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]


async def test_a_mark_for_a_message_that_is_not_open_is_ignored(tmp_path: Path) -> None:
    inbox, _ = await opened(tmp_path)
    await inbox.mark("nobody", "done")
    await inbox.accept(message("r1"))
    await inbox.mark("r1", "failed")
    await inbox.mark("r1", "done")
    assert kinds(tmp_path) == ["opened", "accepted", "failed"]
    with pytest.raises(ValueError, match="sideways"):
        await inbox.mark("r1", "sideways")


# -- recovery ----------------------------------------------------------------------------------


async def test_a_dead_engine_leaves_what_was_not_begun_and_what_was_cut_short(
    tmp_path: Path,
) -> None:
    inbox, _ = await opened(tmp_path)
    first = {name: await inbox.accept(message(name, f"text of {name}")) for name in "abcde"}
    await inbox.mark("b", "started")
    for name, end in (("c", "done"), ("d", "aborted")):
        await inbox.mark(name, "started")
        await inbox.mark(name, end)
    again, recovered = await opened(tmp_path)
    assert recovered == Recovered((first["a"], first["e"]), (first["b"],))
    assert recovered.not_started[0].message == first["a"].message
    assert [a.id for a in again.pending()] == ["a", "b", "e"]
    new = await again.accept(message("f"))
    assert new.seq > max(a.seq for a in first.values()) + 5
    await again.mark("b", "interrupted")
    _, third = await opened(tmp_path)
    assert ([a.id for a in third.not_started], third.interrupted) == (["a", "e", "f"], ())


async def test_seq_grows_across_restarts_even_when_nothing_is_left(tmp_path: Path) -> None:
    seen = []
    for n in range(4):
        inbox, _ = await opened(tmp_path)
        seen.append((await inbox.accept(message(f"r{n}"))).seq)
        await inbox.mark(f"r{n}", "done")
    assert seen == sorted(set(seen))


async def test_opening_compacts(tmp_path: Path) -> None:
    inbox, _ = await opened(tmp_path)
    for n in range(20):
        await inbox.accept(message(f"r{n}", "x" * 1000))
        await inbox.mark(f"r{n}", "started")
        await inbox.mark(f"r{n}", "done")
    await inbox.accept(message("open"))
    await inbox.mark("open", "started")
    size = (tmp_path / "journal.jsonl").stat().st_size
    await opened(tmp_path)
    assert (tmp_path / "journal.jsonl").stat().st_size < size / 5
    assert kinds(tmp_path) == ["opened", *["settled"] * 20, "accepted", "started"]
    before = (tmp_path / "journal.jsonl").read_bytes()
    await opened(tmp_path)
    assert (tmp_path / "journal.jsonl").read_bytes() == before


async def test_a_long_journal_is_compacted_while_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_engine.inbox.journal.COMPACT_BYTES", 20_000)
    inbox, _ = await opened(tmp_path)
    await inbox.accept(message("keep"))
    for n in range(60):
        await inbox.accept(message(f"r{n}", "x" * 1000))
        await inbox.mark(f"r{n}", "done")
    assert (tmp_path / "journal.jsonl").stat().st_size < 40_000
    _, recovered = await opened(tmp_path)
    assert [a.id for a in recovered.not_started] == ["keep"]


async def test_a_crash_at_any_byte_of_the_last_record(tmp_path: Path) -> None:
    inbox, _ = await opened(tmp_path / "whole")
    await inbox.accept(message("r1"))
    path = tmp_path / "whole" / "journal.jsonl"
    before = path.read_bytes()
    await inbox.accept(message("r2", "é漢"))
    after = path.read_bytes()
    for cut in range(len(before), len(after) + 1):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        (folder / "journal.jsonl").write_bytes(after[:cut])
        again, recovered = await opened(folder)
        complete = cut >= len(after) - 1
        assert [a.id for a in recovered.not_started] == (["r1", "r2"] if complete else ["r1"])
        assert bool(recovered.repairs) is (len(before) < cut < len(after))
        assert (await again.accept(message("r2"))).repeat is complete


@pytest.mark.parametrize("bad", [b"\0" * 200 + b"\n", b'{"v":1\n', b'{"v":1,"seq":2}\n', b"7\n"])
async def test_unreadable_lines_are_told_and_the_old_file_is_kept(
    tmp_path: Path, bad: bytes
) -> None:
    inbox, _ = await opened(tmp_path)
    await inbox.accept(message("r1"))
    path = tmp_path / "journal.jsonl"
    old = path.read_bytes()
    await inbox.accept(message("r2"))
    damaged = old + bad + path.read_bytes()[len(old) :]
    path.write_bytes(damaged)
    _, recovered = await opened(tmp_path)
    assert [a.id for a in recovered.not_started] == ["r1", "r2"]
    (backup,) = tmp_path.glob("journal.jsonl.bak-*")
    assert backup.read_bytes() == damaged
    assert backup.name in recovered.repairs[0]


async def test_a_journal_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(to_line({"v": 2, "seq": 1, "kind": "accepted", "id": "x"}))
    before = path.read_bytes()
    with pytest.raises(JournalTooNew):
        await journal(tmp_path).open()
    assert path.read_bytes() == before


# -- disk errors -------------------------------------------------------------------------------


@pytest.mark.parametrize("short", [0, 1, 60])
@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, StateDiskFull), (errno.EIO, StateDiskError)]
)
async def test_a_full_disk_refuses_the_message_and_keeps_nothing_of_it(
    tmp_path: Path, number: int, kind: type[StateDiskError], short: int
) -> None:
    disk = HalfLineDisk()
    inbox, _ = await opened(tmp_path, disk)
    await inbox.accept(message("r1"))
    before = (tmp_path / "journal.jsonl").read_bytes()
    disk.broken, disk.short, disk.error = True, short, number
    results = await asyncio.gather(
        inbox.accept(message("r2")),
        inbox.accept(message("r2")),
        inbox.accept(message("r3")),
        return_exceptions=True,
    )
    assert [type(r) for r in results] == [kind] * 3
    assert (tmp_path / "journal.jsonl").read_bytes() == before
    disk.broken = False
    again = await inbox.accept(message("r2"))
    assert not again.repeat
    _, recovered = await opened(tmp_path)
    assert [a.id for a in recovered.not_started] == ["r1", "r2"]


async def test_a_mark_that_failed_goes_out_with_the_next_batch(tmp_path: Path) -> None:
    disk = HalfLineDisk()
    inbox, _ = await opened(tmp_path, disk)
    await inbox.accept(message("r1"))
    disk.broken, disk.short = True, 10
    with pytest.raises(StateDiskFull):
        await inbox.mark("r1", "done")
    disk.broken = False
    await inbox.accept(message("r2"))
    assert kinds(tmp_path) == ["opened", "accepted", "done", "accepted"]


async def test_a_mark_owed_at_the_end_is_written_by_close(tmp_path: Path) -> None:
    disk = HalfLineDisk()
    inbox, _ = await opened(tmp_path, disk)
    await inbox.accept(message("r1"))
    disk.broken = True
    with pytest.raises(StateDiskFull):
        await inbox.mark("r1", "done")
    await inbox.close()  # still full: told in the log, not raised
    disk.broken = False
    await inbox.close()
    assert kinds(tmp_path) == ["opened", "accepted", "done"]


async def test_a_journal_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(StateDiskError) as caught:
        await journal(tmp_path).open()
    assert "journal.jsonl" in caught.value.title


async def test_a_compaction_that_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_engine.inbox.journal.COMPACT_BYTES", 500)

    class NoReplace(RealDisk):
        full = False

        def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, "full", str(path))
            super().replace(path, data, mode=mode)

    disk = NoReplace()
    inbox, _ = await opened(tmp_path, disk)
    disk.full = True
    for n in range(10):
        await inbox.accept(message(f"r{n}"))
    _, recovered = await opened(tmp_path)
    assert [a.id for a in recovered.not_started] == [f"r{n}" for n in range(10)]
