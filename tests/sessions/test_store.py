from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from claw_engine.messages import text_of
from claw_engine.sessions import store
from claw_engine.sessions.errors import ForeignTranscript, InvalidSessionKey
from claw_engine.sessions.generation import state_generation
from claw_engine.sessions.listing import LOOKED_AGAIN_S
from claw_engine.sessions.rows import PREVIEW_CHARS, preview_of, strip_stamp
from claw_engine.sessions.store import Sessions
from tests.sessions.support import Box, assistant, lines, result, user
from tests.support.fakes import FaultyDisk


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


async def started(box: Box) -> Sessions:
    sessions = box.sessions()
    await sessions.open()
    return sessions


async def said(sessions: Sessions, key: str) -> list[str]:
    return [text_of(m.message) for m in await sessions.history(key)]


# -- CH-01, the session half -------------------------------------------------------------------


@pytest.mark.parametrize("peer", ["9007199254740993", "Zoë:Doe 😀", "a:b:c"])
async def test_messages_of_one_peer_are_one_session_across_a_restart(box: Box, peer: str) -> None:
    """CH-01: numeric peers, names with `:` and emoji, killed in between."""
    key = f"agent:main:telegram:direct:{peer}"
    first = await started(box)
    for number in (1, 2):
        talk = await first.transcript(key if number == 1 else key.upper())
        await talk.append(user(f"q{number}"), assistant(f"a{number}"))
    del talk, first  # killed: nothing was closed or flushed
    second = await started(box)
    talk = await second.transcript(key)
    await talk.append(user("q3"), assistant("a3"))
    await second.close()
    assert await said(second, key) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert len(second.index.list()) == 1
    assert len(list(box.folder.glob("*.jsonl"))) == 1


async def test_the_index_names_a_transcript_before_it_exists(box: Box) -> None:
    sessions = await started(box)
    talk = await sessions.transcript("work")
    await talk.append(user("q"))
    assert list(box.folder.iterdir()) == []  # nothing for the disk before the first answer
    await talk.append(assistant("a"))
    assert box.store()["agent:main:work"]["sessionFile"] == talk.path.name
    await sessions.close()


async def test_an_index_that_cannot_be_saved_holds_the_transcript_back(box: Box) -> None:
    disk = FaultyDisk()
    box.disk = disk
    box.__post_init__()
    sessions = await started(box)
    talk = await sessions.transcript("work")
    disk.fail_next()
    with pytest.raises(Exception, match="full"):
        await talk.append(user("q"), assistant("a"))
    assert list(box.folder.iterdir()) == []
    disk.heal()
    await talk.flush()
    assert [e["type"] for e in lines(talk.path)] == ["session", "message", "message"]
    await sessions.close()


# -- one object a session ----------------------------------------------------------------------


async def test_everybody_gets_the_same_transcript(box: Box) -> None:
    box.golden()
    sessions = await started(box)
    asked = [sessions.transcript(key) for key in ("main", "MAIN", "agent:main:main")]
    one, *others = await asyncio.gather(*asked)
    assert all(other is one for other in others)
    assert await sessions.transcript("main") is one
    await sessions.close()


async def test_memory_is_bounded_but_a_held_or_unwritten_transcript_stays(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "KEPT_OPEN", 2)
    sessions = await started(box)
    held = await sessions.transcript("held")
    unwritten = id(await sessions.transcript("unwritten"))
    await (await sessions.transcript("unwritten")).append(user("only in memory"))
    for number in range(6):
        await (await sessions.transcript(f"s{number}")).append(user("q"), assistant("a"))
    gc.collect()
    assert len(sessions._recent) <= 3
    assert await sessions.transcript("held") is held
    assert id(await sessions.transcript("unwritten")) == unwritten
    assert await said(sessions, "unwritten") == ["only in memory"]
    assert await said(sessions, "s0") == ["q", "a"]
    await sessions.close()


async def test_a_given_up_open_does_not_spoil_it_for_others(box: Box) -> None:
    box.golden()
    sessions = await started(box)
    first = asyncio.create_task(sessions.transcript("main"))
    second = asyncio.create_task(sessions.transcript("main"))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).leaf_id == lines((await second).path)[-1]["id"]
    with pytest.raises(asyncio.CancelledError):
        await first
    await sessions.close()


# -- history and list --------------------------------------------------------------------------


async def test_history_of_an_unknown_session_is_empty_and_makes_none(box: Box) -> None:
    sessions = await started(box)
    assert await sessions.history("nobody") == ()
    assert sessions.get("nobody") is None
    with pytest.raises(InvalidSessionKey):
        await sessions.history("agent:main")
    await sessions.close()
    assert list(box.folder.iterdir()) == []


async def test_history_gives_the_newest_messages_oldest_first(box: Box) -> None:
    sessions = await started(box)
    talk = await sessions.transcript("main")
    await talk.append(user("q"), assistant("a"), result("r"), assistant("b"))
    newest = await sessions.history("main", limit=2)
    assert [text_of(m.message) for m in newest] == ["r", "b"]
    assert await sessions.history("main", limit=0) == ()
    await sessions.close()


async def test_the_list_of_a_captured_directory(box: Box) -> None:
    box.golden()
    sessions = await started(box)
    rows = await sessions.list()
    assert [row.key.removeprefix("agent:main:") for row in rows] == [
        "stop",
        "autocompact",
        "abort",
        "subagent:c4c7797d-11f0-4e2e-aa77-708e81718fba",
        "main",
        "stream",
    ]
    main = rows[4].to_wire()
    assert main == {
        "key": "agent:main:main",
        "sessionId": "c24e31eb-127c-4985-876b-5f6db8ddfad3",
        "updatedAt": 1796028425629,
        "lastMessagePreview": main["lastMessagePreview"],
        "model": "fake-1",
        "totalTokens": 16213,
        "contextTokens": 200000,
    }
    assert rows[3].display_name == "hello-sub"
    assert rows[5].last_message_preview is None  # its transcript is not in the copy
    assert [r.key for r in await sessions.list(limit=1)] == ["agent:main:stop"]
    assert [r.key for r in await sessions.list(search="HELLO-sub")] == [rows[3].key]
    talk = await sessions.transcript("main")
    await talk.append(user("[Mon 2026-11-30 08:46 UTC] what now\nplease"))
    (row,) = await sessions.list(search="agent:main:main")
    assert row.last_message_preview == "what now please"
    await sessions.close()


async def test_runs_of_cron_jobs_are_hidden(box: Box) -> None:
    sessions = await started(box)
    await sessions.index.ensure("cron:job")
    await sessions.index.ensure("cron:job:run:u1")
    assert [row.key for row in await sessions.list()] == ["agent:main:cron:job"]
    await sessions.close()


async def test_a_preview_follows_the_file(box: Box) -> None:
    sessions = await started(box)
    talk = await sessions.transcript("main")
    await talk.append(user("q"), assistant("one"))
    await sessions.close()
    again = await started(box)
    assert [r.last_message_preview for r in await again.list()] == ["one"]
    with talk.path.open("ab") as file:
        file.write(talk.path.read_bytes().splitlines(True)[-1].replace(b"one", b"three"))
    await box.clock.advance(LOOKED_AGAIN_S)
    assert [r.last_message_preview for r in await again.list()] == ["three"]
    await again.close()


async def test_damage_is_mended_and_told(box: Box) -> None:
    sessions = await started(box)
    talk = await sessions.transcript("main")
    await talk.append(user("q"), assistant("a"))
    await sessions.close()
    with talk.path.open("ab") as file:
        file.write(b'{"type":"mess')
    again = await started(box)
    assert await said(again, "main") == ["q", "a"]
    (notice,) = box.notices()
    assert notice.code == f"transcript-repaired:{talk.session_id}"
    assert "torn" in notice.text
    await again.close()


async def test_a_transcript_outside_the_folder_is_refused_and_listed(
    box: Box, tmp_path: Path
) -> None:
    sessions = await started(box)
    entry = await sessions.index.ensure("main")
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (box.folder / entry.session_file).symlink_to(secret)
    with pytest.raises(ForeignTranscript):
        await sessions.transcript("main")
    assert [r.last_message_preview for r in await sessions.list()] == [None]
    await sessions.close()
    assert secret.read_text() == "secret"


# -- pure parts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("[Mon 2026-11-30 08:46 UTC] hi", "hi"),
        ("[Mon 2026-11-30 08:46 GMT+2] hi", "hi"),
        ("[note] hi", "[note] hi"),
        ("hi [Mon 2026-11-30 08:46 UTC] x", "hi [Mon 2026-11-30 08:46 UTC] x"),
    ],
)
def test_only_a_leading_stamp_is_stripped(text: str, bare: str) -> None:
    assert strip_stamp(text) == bare


def test_a_preview_is_one_short_line() -> None:
    assert preview_of([result("tool"), assistant(""), user("a\n\n  b")]) == "a b"
    assert len(preview_of([user("x " * 10_000)])) <= PREVIEW_CHARS
    assert preview_of([]) == ""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((), "empty"),
        (("openclaw.json",), "json"),
        (("agents/main/sessions/sessions.json",), "json"),
        (("agents/ops/sessions/a.jsonl",), "json"),
        (("state/openclaw.sqlite", "openclaw.json"), "sqlite"),
        (("agents/main/agent/openclaw-agent.sqlite",), "sqlite"),
    ],
)
def test_the_generation_of_a_directory_is_recognised(
    tmp_path: Path, files: tuple[str, ...], expected: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert state_generation(tmp_path) == expected
    assert state_generation(tmp_path / "missing") == "empty"
