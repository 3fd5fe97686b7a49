from __future__ import annotations

import asyncio
import errno
import json
from pathlib import Path

import pytest

from claw_engine.events import Notice
from claw_engine.sessions import index_writer
from claw_engine.sessions.agent_index import AgentIndex
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.events import SessionsChanged
from claw_engine.storage.errors import StateDiskError
from claw_engine.storage.foreign_lock import FileLocks, LockHeld, lock_path
from tests.sessions.support import Box
from tests.storage.test_foreign_lock import let_go, other_process, ticking
from tests.support.fakes import START_MS, FaultyDisk

MAIN, OTHER = "agent:main:main", "agent:main:other"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    box = Box(tmp_path)
    box.disk = FaultyDisk()
    box.__post_init__()
    return box


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every store counts as large: changes are journalled before the file is rewritten."""
    monkeypatch.setattr(index_writer, "SMALL", 0)


def agent(box: Box, locks: FileLocks | None = None, strict: int = 0) -> AgentIndex:
    return AgentIndex(
        box.world,
        "main",
        box.state.sessions_json("main"),
        box.state.sessions_journal("main"),
        locks or FileLocks(box.world),
        box.told.append,
        strict,
    )


def entry(key: str, at: int = START_MS, **more: object) -> SessionEntry:
    return SessionEntry(key, {"sessionId": key[-4:], "updatedAt": at, **more})


async def loaded(box: Box, **options: int) -> AgentIndex:
    index = agent(box, **options)  # type: ignore[arg-type]  # only `strict` is given
    await index.load()
    return index


def write_outside(box: Box, **changes: dict[str, object]) -> None:
    """Another program takes the lock, changes the file, and gives the lock back."""
    assert not lock_path(box.state.sessions_json("main")).exists()
    store = box.store()
    for key, fields in changes.items():
        store.setdefault(key, {}).update(fields)
    box.state.sessions_json("main").write_text(json.dumps(store, indent=2))


async def test_the_lock_is_held_from_the_journal_to_the_file(box: Box, large: None) -> None:
    index = await loaded(box)
    index.put(entry(MAIN))
    await index.flush()
    store, journal = box.state.sessions_json("main"), box.state.sessions_journal("main")
    before = store.read_bytes()
    index.put(entry(MAIN, label="new"))
    await index.commit()
    assert lock_path(store).exists()
    assert store.read_bytes() == before
    assert json.loads(journal.read_bytes()) == {
        "v": 1, "key": MAIN, "at": START_MS, "set": {"label": "new"},
    }  # fmt: skip
    await ticking(box.clock, box.disk, index_writer.REWRITE_S + 1)
    assert box.store()[MAIN]["label"] == "new"
    assert not lock_path(store).exists()
    assert journal.read_bytes() == b""


async def test_a_crash_loses_nothing_that_was_committed(box: Box, large: None) -> None:
    index = await loaded(box)
    index.put(entry(MAIN, label="old", gone=1))
    index.put(entry(OTHER))
    await index.flush()
    index.put(entry(MAIN, START_MS + 5, label="new"))
    index.remove(OTHER)
    index.put(entry("agent:main:made"))
    await index.commit()
    with box.state.sessions_journal("main").open("ab") as file:
        file.write(b'{"v":1,"key":"agent:main:torn"')  # the crash cut a line
    for _ in range(2):  # the second start finds the same, whether or not the first one wrote
        again = await loaded(box)
        assert {e.key: dict(e.raw) for e in again.entries()} == {
            MAIN: {"sessionId": "main", "updatedAt": START_MS + 5, "label": "new"},
            "agent:main:made": {"sessionId": "made", "updatedAt": START_MS},
        }
    await again.close()
    assert set(box.store()) == {MAIN, "agent:main:made"}
    assert box.state.sessions_journal("main").read_bytes() == b""


async def test_an_old_journal_does_not_undo_what_came_later(box: Box, large: None) -> None:
    index = await loaded(box)
    index.put(entry(MAIN))
    await index.flush()
    index.put(entry(MAIN, START_MS + 5, label="ours"))
    await index.commit()
    lock_path(box.state.sessions_json("main")).unlink()  # our engine died; another one came
    write_outside(box, **{MAIN: {"updatedAt": START_MS + 9, "label": "theirs"}})
    again = await loaded(box)
    found = again.get(MAIN)
    assert found is not None
    assert found.text("label") == "theirs"


async def test_what_another_program_wrote_is_merged_field_by_field(box: Box) -> None:
    index = await loaded(box)
    index.put(entry(MAIN, label="ours", queueMode="steer"))
    await index.flush()
    theirs = {"thinkingLevel": "high", "updatedAt": START_MS + 7}
    write_outside(box, **{MAIN: theirs, OTHER: {"sessionId": "x", "updatedAt": 9}})
    box.told.clear()
    index.put(entry(MAIN, label="renamed", queueMode="steer"))
    await index.flush()
    assert box.store() == {
        MAIN: {
            "sessionId": "main",
            "updatedAt": START_MS + 7,
            "label": "renamed",
            "queueMode": "steer",
            "thinkingLevel": "high",
        },
        OTHER: {"sessionId": "x", "updatedAt": 9},
    }
    assert index.get(OTHER) is not None
    assert any(isinstance(e, SessionsChanged) and OTHER in e.keys for e in box.told)


async def test_a_file_that_another_program_broke_is_kept_aside(box: Box) -> None:
    index = await loaded(box)
    index.put(entry(MAIN))
    await index.flush()
    box.state.sessions_json("main").write_bytes(b"{")
    index.put(entry(OTHER))
    await index.flush()
    assert set(box.store()) == {MAIN, OTHER}
    assert [p.read_bytes() for p in box.folder.iterdir() if ".broken-" in p.name] == [b"{"]


async def test_st05_a_held_lock_is_told_by_name_and_reads_go_on(box: Box) -> None:
    """ST-05: the index while another process holds its lock."""
    index = await loaded(box)
    index.put(entry(MAIN))
    await index.flush()
    with other_process(box.state.sessions_json("main")) as other:
        index.put(entry(MAIN, label="waits"))
        waiting = asyncio.ensure_future(index.flush())
        await ticking(box.clock, box.disk, 5)
        assert not waiting.done()
        reading = index.get(MAIN)
        assert reading is not None
        assert reading.text("label") == "waits"
        assert len(list(index.entries())) == 1
        await ticking(box.clock, box.disk, 6)
        with pytest.raises(LockHeld) as caught:
            await waiting
        assert (caught.value.pid, caught.value.retryable) == (other.pid, True)
        assert [n.level for n in box.notices()] == ["error"]
        assert str(other.pid) in box.notices()[0].title
        assert "label" not in box.store()[MAIN]
        let_go(other)
        await index.flush()
    assert box.store()[MAIN]["label"] == "waits"
    assert box.notices()[-1] == Notice(
        code="sessions-index-write:main", level="clear", title="Saved again."
    )


async def test_a_lock_that_outlives_us_costs_no_change(box: Box) -> None:
    index = await loaded(box)
    index.put(entry(MAIN))
    await index.flush()
    with other_process(box.state.sessions_json("main")):
        index.put(entry(MAIN, START_MS + 1, label="late"))
        closing = asyncio.ensure_future(index.close())
        await ticking(box.clock, box.disk, 12)
        await closing
    again = await loaded(box)
    found = again.get(MAIN)
    assert found is not None
    assert found.text("label") == "late"
    await again.close()
    assert box.store()[MAIN]["label"] == "late"


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
async def test_dl01_a_failing_disk_loses_no_change(
    box: Box, large: None, after: int, number: int
) -> None:
    """DL-01: the index, whichever write fails."""
    disk = box.disk
    assert isinstance(disk, FaultyDisk)
    index = await loaded(box)
    index.put(entry(MAIN, label="0"))
    await index.flush()
    disk.fail_next(after=after, error=number)
    label = "0"
    for label in map(str, range(1, 4)):
        index.put(entry(MAIN, START_MS + int(label), label=label))
        try:
            await index.commit()
            await index.flush()
        except StateDiskError:
            break
        assert box.store()[MAIN]["label"] == label
    assert isinstance(json.loads(box.state.sessions_json("main").read_bytes()), dict)
    disk.heal()
    await index.flush()
    assert box.store()[MAIN]["label"] == label
    await index.close()
    assert [p.name for p in box.folder.iterdir()] == ["sessions.json"]
    assert (await loaded(box)).get(MAIN) == index.get(MAIN)
