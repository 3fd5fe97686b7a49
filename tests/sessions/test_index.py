from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path

import pytest

from claw_engine.sessions.entry import SessionEntry, transcript_path
from claw_engine.sessions.errors import ForeignTranscript
from claw_engine.sessions.events import SessionsChanged
from claw_engine.storage.errors import StateDiskFull
from tests.sessions.support import Box
from tests.support.fakes import START_MS, FaultyDisk

IDS = ("a1", "b2", "c3")


def header(session_id: str, **extra: object) -> str:
    line = {"type": "session", "version": 3, "id": session_id, "timestamp": "", "cwd": "/", **extra}
    return json.dumps(line) + "\n"


def three_transcripts(box: Box) -> None:
    for number, session_id in enumerate(IDS):
        path = box.folder / f"{session_id}.jsonl"
        path.write_text(header(session_id))
        os.utime(path, (1_000 + number, 1_000 + number))


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


# -- ST-01 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"{", b"\0" * 64], ids=["empty", "brace", "nul"])
async def test_a_broken_index_is_moved_aside_and_rebuilt_with_one_warning(
    box: Box, content: bytes
) -> None:
    """ST-01: empty, `{`, NUL bytes."""
    three_transcripts(box)
    (box.folder / "b2.jsonl").write_text(header("b2", sessionKey="agent:main:work"))
    (box.folder / "gone.jsonl.deleted.2026-11-30T08-49-01.062Z").write_text(header("gone"))
    path = box.state.sessions_json("main")
    path.write_bytes(content)
    index = box.index()
    await index.load_all()
    assert {e.session_id: e.key for e in index.list()} == {
        "a1": "agent:main:recovered:a1",
        "b2": "agent:main:work",
        "c3": "agent:main:recovered:c3",
    }
    aside = [p for p in box.folder.iterdir() if ".broken-" in p.name]
    assert [p.read_bytes() for p in aside] == [content]
    assert aside[0].name == "sessions.json.broken-2026-11-30T08-40-00.000Z"
    assert set(box.store()) == {e.key for e in index.list()}
    warnings = box.notices()
    assert [(n.level, n.sticky) for n in warnings] == [("warn", True)]
    assert aside[0].name in warnings[0].text
    await index.close()
    again = box.index()
    await again.load_all()
    assert len(again.list()) == 3
    assert len(box.notices()) == 1


async def test_two_broken_files_in_one_moment_are_both_kept(box: Box) -> None:
    path = box.state.sessions_json("main")
    for content in (b"{", b"["):
        path.write_bytes(content)
        index = box.index()
        await index.load_all()
        await index.close()
    kept = {p.read_bytes() for p in box.folder.iterdir() if ".broken-" in p.name}
    assert kept == {b"{", b"["}


async def test_entries_before_the_fault_are_saved(box: Box) -> None:
    three_transcripts(box)
    text = json.dumps(
        {
            "agent:main:main": {"sessionId": "a1", "updatedAt": 5, "label": "Home"},
            "agent:main:x": {"sessionId": "b2"},
        },
        indent=2,
    )
    box.state.sessions_json("main").write_text(text[:-30])
    index = box.index()
    await index.load_all()
    main = index.get("main")
    assert main is not None
    assert (main.session_id, main.text("label")) == ("a1", "Home")
    assert sorted(e.session_id for e in index.list()) == ["a1", "b2", "c3"]
    await index.close()


async def test_a_bom_is_read_over(box: Box) -> None:
    """ST-01: a BOM before valid JSON."""
    three_transcripts(box)
    data = b"\xef\xbb\xbf" + json.dumps({"agent:main:main": {"sessionId": "a1"}}).encode()
    box.state.sessions_json("main").write_bytes(data)
    index = box.index()
    await index.load_all()
    assert [e.session_id for e in index.list()] == ["a1"]
    assert box.notices() == []
    await index.close()
    assert box.state.sessions_json("main").read_bytes() == data


async def test_a_missing_index_beside_transcripts_is_rebuilt(box: Box) -> None:
    three_transcripts(box)
    index = box.index()
    await index.load_all()
    assert len(index.list()) == 3
    assert "missing" in box.notices()[0].title
    await index.close()


async def test_a_fresh_directory_is_silent_and_nothing_is_written(box: Box) -> None:
    index = box.index()
    await index.load_all()
    assert index.list() == ()
    await index.close()
    assert box.told == []
    assert list(box.folder.iterdir()) == []


async def test_thousands_of_transcripts_are_rebuilt(box: Box) -> None:
    for number in range(2_000):
        (box.folder / f"s{number}.jsonl").write_text(header(f"s{number}"))
    box.state.sessions_json("main").write_bytes(b"")
    index = box.index()
    await index.load_all()
    assert len(index.list()) == 2_000
    await index.close()


# -- ST-03 -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a1.jsonl", "a1.jsonl"),
        ("/home/olduser/.openclaw/agents/main/sessions/b2.jsonl", "b2.jsonl"),
        ("C:\\Users\\old\\sessions\\b2.jsonl", "b2.jsonl"),
        ("../../../etc/b2.jsonl", "b2.jsonl"),
        ("sub/b2.jsonl", "sub/b2.jsonl"),
        (None, "the-id.jsonl"),
        ("", "the-id.jsonl"),
        ("/etc/passwd", "the-id.jsonl"),
        ("a\0.jsonl", "the-id.jsonl"),
        (7, "the-id.jsonl"),
    ],
)
def test_a_transcript_is_found_in_the_current_folder(
    tmp_path: Path, written: object, name: str
) -> None:
    """ST-03: bare names, foreign paths, no name."""
    entry = SessionEntry("k", {"sessionId": "the-id", "sessionFile": written})
    assert transcript_path(tmp_path, entry) == tmp_path / name


@pytest.mark.parametrize("fields", [{}, {"sessionId": "../x"}, {"sessionId": 4}])
def test_an_entry_that_names_no_file_has_none(tmp_path: Path, fields: dict[str, object]) -> None:
    with pytest.raises(ForeignTranscript):
        transcript_path(tmp_path, SessionEntry("k", fields))


def test_a_symlink_out_of_the_folder_is_never_opened(tmp_path: Path) -> None:
    """ST-03: nothing outside the folder is opened."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    (tmp_path / "secret").write_text("x")
    (folder / "a.jsonl").symlink_to(tmp_path / "secret")
    with pytest.raises(ForeignTranscript, match="leads out"):
        transcript_path(folder, SessionEntry("k", {"sessionId": "a"}))


async def test_reading_rewrites_nothing_and_use_rewrites_one_entry(box: Box) -> None:
    """ST-03: only the session that is used is rewritten."""
    box.golden()
    path = box.state.sessions_json("main")
    before = path.read_bytes()
    index = box.index()
    await index.load_all()
    assert len(index.list()) == 6
    await index.close()
    assert path.read_bytes() == before

    await index.update("main", lambda e: e.replace(totalTokens=7))
    await index.close()
    expected = json.loads(before)
    expected["agent:main:main"].update(totalTokens=7, updatedAt=1796028425629)
    assert json.loads(path.read_bytes()) == expected
    assert b"".join(before.split(b'"agent:main:stream"')[1:]) == b"".join(
        path.read_bytes().split(b'"agent:main:stream"')[1:]
    )


# -- entries -----------------------------------------------------------------------------------


async def test_a_session_is_made_once_and_found_in_any_spelling(box: Box) -> None:
    index = box.index()
    first = await index.ensure("Telegram:Direct:9007199254740993")
    assert await index.ensure("agent:main:telegram:direct:9007199254740993") is first
    assert first.raw == {
        "sessionId": first.session_id,
        "updatedAt": START_MS,
        "sessionFile": f"{first.session_id}.jsonl",
        "chatType": "direct",
    }
    await index.flush()
    assert box.state.sessions_json("main").stat().st_mode & 0o777 == 0o600
    again = box.index()
    await again.load_all()
    found = again.get("TELEGRAM:direct:9007199254740993")
    assert found is not None
    assert found.session_id == first.session_id


async def test_updates_wait_for_each_other_and_are_written_once(box: Box) -> None:
    box.disk = FaultyDisk()
    box.__post_init__()
    index = box.index()
    for number in range(5):
        await index.update("main", lambda e, n=number: e.replace(totalTokens=n))
    assert isinstance(box.disk, FaultyDisk)
    assert box.disk.writes == 0
    await box.clock.advance(0.2)
    await index.flush()
    assert box.disk.writes == 1
    assert box.store()["agent:main:main"]["totalTokens"] == 4


async def test_an_update_that_changes_nothing_writes_nothing(box: Box) -> None:
    index = box.index()
    entry = await index.ensure("main")
    await index.flush()
    box.told.clear()
    await box.clock.advance(60)
    assert await index.update("main", lambda e: e) is entry
    assert box.told == []
    changed = await index.update("main", lambda e: e.replace(label="x"))
    assert changed.updated_at == START_MS + 60_000
    assert box.told == [SessionsChanged(frozenset({"agent:main:main"}))]
    await index.close()


async def test_the_newest_of_two_spellings_wins_and_use_heals_the_key(box: Box) -> None:
    store = {
        "agent:main:Work": {"sessionId": "old", "updatedAt": 1},
        "Agent:Main:WORK": {"sessionId": "new", "updatedAt": 2},
        "agent:main": {"sessionId": "malformed"},
    }
    path = box.state.sessions_json("main")
    path.write_text(json.dumps(store, indent=2))
    index = box.index()
    await index.load_all()
    assert [e.session_id for e in index.list()] == ["new"]
    await index.update("work", lambda e: e.replace(label="W"))
    await index.close()
    assert set(box.store()) == {"agent:main:work", "agent:main"}


async def test_a_full_disk_is_told_once_and_healed_later(box: Box) -> None:
    disk = FaultyDisk()
    box.disk = disk
    box.__post_init__()
    index = box.index()
    await index.ensure("main")
    disk.fail_next(error=errno.ENOSPC)
    for _ in range(2):
        with pytest.raises(StateDiskFull):
            await index.flush()
    assert [(n.code, n.level) for n in box.notices()] == [("sessions-index-write:main", "error")]
    await index.close()  # does not raise
    disk.heal()
    await index.update("main", lambda e: e.replace(label="later"))
    await index.flush()
    assert box.store()["agent:main:main"]["label"] == "later"
    assert box.notices()[-1].level == "clear"
    assert [p.name for p in box.folder.iterdir()] == ["sessions.json"]


async def test_the_sliced_order_is_the_order_of_the_list(box: Box) -> None:
    index = box.index()
    for number in range(600):
        await index.ensure(f"agent:{'ops' if number % 2 else 'main'}:s{number}")
        if number % 7 == 0:
            await box.clock.advance(1)
    assert tuple(await index.newest_first()) == index.list()
    await index.close()


async def test_two_agents_have_two_files(box: Box) -> None:
    index = box.index()
    await asyncio.gather(index.ensure("main"), index.ensure("agent:ops:main"))
    await index.close()
    again = box.index()
    await again.load_all()
    assert {e.key for e in again.list()} == {"agent:main:main", "agent:ops:main"}
