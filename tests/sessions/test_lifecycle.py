from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from claw_engine.errors import InvalidRequest
from claw_engine.messages import text_of
from claw_engine.sessions.archive import stamp
from claw_engine.sessions.edits import patched, reset_entry
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.errors import SessionEnded
from claw_engine.sessions.keys import canonical
from claw_engine.sessions.maintenance import DAY_MS, Deed, Limits
from claw_engine.sessions.routing import Origin, Peer, Routes
from claw_engine.sessions.store import IDLE_S, KEPT_OPEN, Sessions
from claw_engine.storage.errors import StateDiskFull
from claw_engine.storage.foreign_lock import lock_path
from tests.sessions.support import Box, assistant, lines, user
from tests.support.fakes import START_MS, FaultyDisk

STAMP = "2026-11-30T08-40-00.000Z"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


async def talked(sessions: Sessions, key: str = "main", text: str = "hi") -> Path:
    talk = await sessions.transcript(key)
    await talk.append(user(text), assistant("hello"))
    return talk.path


async def test_a_reset_keeps_settings_and_archives_the_talk(box: Box) -> None:
    sessions = box.sessions()
    old_path = await talked(sessions)
    old_talk = await sessions.transcript("main")
    await sessions.update(
        "main",
        lambda e: e.replace(
            thinkingLevel="high", label="Home", model="m", totalTokens=9, inputTokens=9,
            compactionCount=4, memoryFlushAt=1, queueMode="steer", skillsSnapshot={"a": 1},
            systemSent=True, abortedLastRun=True, systemPromptReport={"x": 1},
        ),
    )  # fmt: skip
    before = old_path.read_bytes()
    entry = await sessions.reset("main")
    assert entry.session_id != old_path.stem
    assert {k: v for k, v in entry.raw.items() if k not in ("sessionId", "sessionFile")} == {
        "updatedAt": START_MS,
        "systemSent": False,
        "abortedLastRun": False,
        "chatType": "direct",
        "thinkingLevel": "high",
        "label": "Home",
        "model": "m",
        "skillsSnapshot": {"a": 1},
        "inputTokens": 0,
        "outputTokens": 0,
        "totalTokens": 0,
        "totalTokensFresh": True,
    }
    archived = box.folder / f"{old_path.name}.reset.{STAMP}"
    assert archived.read_bytes() == before
    assert not old_path.exists()
    with pytest.raises(SessionEnded):
        await old_talk.append(user("too late"))
    assert await sessions.history("main") == ()
    await talked(sessions, text="anew")
    await sessions.close()
    assert sorted(p.suffix for p in box.folder.iterdir()) == [".000Z", ".json", ".jsonl"]
    again = box.sessions()
    await again.open()
    assert [text_of(m.message) for m in await again.history("main")] == ["anew", "hello"]
    await again.close()


async def test_a_reset_of_a_captured_session_changes_one_entry(box: Box) -> None:
    box.golden()
    store = box.state.sessions_json("main")
    before = json.loads(store.read_bytes())
    sessions = box.sessions()
    await sessions.open()
    path = (await sessions.transcript("main")).path
    await sessions.reset("main")
    await sessions.close()
    after = json.loads(store.read_bytes())
    assert {k: v for k, v in after.items() if k != "agent:main:main"} == {
        k: v for k, v in before.items() if k != "agent:main:main"
    }
    assert (box.folder / f"{path.name}.reset.{STAMP}").exists()


async def test_a_reset_before_the_first_answer_leaves_no_file(box: Box) -> None:
    sessions = box.sessions()
    await (await sessions.transcript("main")).append(user("only"))
    await sessions.reset("main")
    await sessions.close()
    assert [p.name for p in box.folder.iterdir()] == ["sessions.json"]


async def test_a_full_disk_at_a_reset_keeps_the_talk(box: Box) -> None:
    disk = FaultyDisk()
    box.disk = disk
    box.__post_init__()
    sessions = box.sessions()
    path = await talked(sessions)
    before = path.read_bytes()
    disk.fail_next()
    with pytest.raises(StateDiskFull):
        await sessions.reset("main")
    assert path.read_bytes() == before
    disk.heal()
    await sessions.close()
    assert path.read_bytes() == before or not path.exists()


async def test_deleting_archives_and_the_main_session_stays(box: Box) -> None:
    sessions = box.sessions()
    path = await talked(sessions, "work")
    kept = await talked(sessions, "kept")
    assert await sessions.delete("work") == (box.folder / f"{path.name}.deleted.{STAMP}",)
    assert await sessions.delete("kept", keep_transcript=True) == ()
    assert await sessions.delete("work") is None
    for key in ("main", "agent:ops:main", "global"):
        with pytest.raises(InvalidRequest):
            await sessions.delete(key)
    await sessions.close()
    assert kept.exists()
    assert box.store() == {}


async def test_a_transcript_that_another_session_means_stays(box: Box) -> None:
    sessions = box.sessions()
    path = await talked(sessions, "work")
    await sessions.update("twin", lambda e: e.replace(sessionFile=path.name))
    assert await sessions.delete("work") == ()
    assert path.exists()
    await sessions.close()


async def test_a_fork_begins_with_what_the_parent_said(box: Box) -> None:
    sessions = box.sessions()
    path = await talked(sessions, "slack:channel:c")
    entry = await sessions.fork("slack:channel:c", "slack:channel:c:thread:t")
    talk = await sessions.transcript(entry.key)
    assert [text_of(m.message) for m in talk.messages()] == ["hi", "hello"]
    head = lines(talk.path)[0]
    assert head["parentSession"] == str(path)
    assert (head["id"], head["sessionKey"]) == (entry.session_id, entry.key)
    assert entry.raw["forkedFromParent"] is True
    assert (await sessions.fork("slack:channel:c", entry.key)).session_id == entry.session_id
    await sessions.update("slack:channel:c", lambda e: e.replace(totalTokens=100_001))
    empty = await sessions.fork("slack:channel:c", "slack:channel:c:thread:u")
    assert (await sessions.transcript(empty.key)).messages() == ()
    big = await sessions.fork("slack:channel:c", "slack:channel:c:thread:v", max_tokens=0)
    assert len((await sessions.transcript(big.key)).messages()) == 2
    await sessions.close()


async def test_a_hold_is_given_back_at_the_end(box: Box) -> None:
    sessions = box.sessions()
    async with await sessions.hold("main") as hold:
        assert hold.held
        assert lock_path(hold.transcript.path).exists()
    assert not lock_path(hold.transcript.path).exists()
    await sessions.hold("main")
    await sessions.close()
    assert list(box.folder.glob("*.lock")) == []


async def test_ch01_one_peer_has_one_session_across_a_restart(box: Box) -> None:
    """CH-01: two messages, a restart, a third."""
    routes = Routes(dm_scope="per-channel-peer")
    peer = Peer("direct", str(2**63 - 1))  # named "Zoë: 🦀", which no key depends on
    keys = set()
    for start in range(2):
        sessions = box.sessions()
        await sessions.open()
        for number in range(2 - start):
            key = routes.route(Origin("telegram", peer=peer)).session_key
            keys.add(str(key))
            await talked(sessions, str(key), f"message {start}{number}")
            await box.clock.advance(5)
        await sessions.close()
    assert keys == {f"agent:main:telegram:direct:{2**63 - 1}"}
    (path,) = box.folder.glob("*.jsonl")
    users = [e for e in lines(path)[1:] if e["message"]["role"] == "user"]  # type: ignore[index]
    assert len(users) == 3
    assert len(box.store()) == 1


async def test_unused_transcripts_leave_memory(box: Box) -> None:
    sessions = box.sessions()
    for number in range(KEPT_OPEN + 8):
        await talked(sessions, f"s{number}")
    assert len(sessions._recent) == KEPT_OPEN
    await box.clock.advance(IDLE_S / 2)
    await sessions.transcript("s39")
    waiting = await sessions.transcript("fresh")
    await waiting.append(user("no answer yet"))
    await box.clock.advance(IDLE_S / 2 + 1)
    assert {p.stem for p in sessions._recent} == {
        (await sessions.transcript(k)).session_id for k in ("s39", "fresh")
    }
    await box.clock.advance(2 * IDLE_S)
    assert [t.session_id for t, _ in sessions._recent.values()] == [waiting.session_id]
    await sessions.close()


# -- patch -------------------------------------------------------------------------------------

SUB = "agent:main:subagent:u1"
GOOD: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("main", {"thinkingLevel": "HIGH"}, {"thinkingLevel": "high"}),
    ("main", {"thinkingLevel": None}, {}),
    ("main", {"responseUsage": "on"}, {"responseUsage": "tokens"}),
    ("main", {"label": " Home "}, {"label": "Home"}),
    ("main", {"model": "p/m/x"}, {"providerOverride": "p", "modelOverride": "m/x"}),
    ("main", {"model": None}, {}),
    ("main", {"queueMode": "steer", "queueCap": 3}, {"queueMode": "steer", "queueCap": 3}),
    ("main", {"execAsk": "always", "execNode": "pi"}, {"execAsk": "always", "execNode": "pi"}),
    (SUB, {"spawnedBy": "agent:main:main", "spawnDepth": 1},
     {"spawnedBy": "agent:main:main", "spawnDepth": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "fields", "expected"), GOOD)
def test_settings_are_patched(
    key: str, fields: dict[str, object], expected: dict[str, object]
) -> None:
    wanted = canonical(key)
    new = patched(SessionEntry(str(wanted)), wanted, fields, ())
    assert new.raw == expected


BAD: list[tuple[str, dict[str, object]]] = [
    ("main", {"thinkingLevel": "very"}),
    ("main", {"sendPolicy": 3}),
    ("main", {"label": ""}),
    ("main", {"label": "x" * 65}),
    ("main", {"label": "Taken"}),
    ("main", {"model": "m"}),
    ("main", {"queueCap": 0}),
    ("main", {"queueCap": True}),
    ("main", {"sessionId": "x"}),
    ("main", {"spawnDepth": 1}),
    (SUB, {"spawnDepth": -1}),
    (SUB, {"spawnDepth": 2}),
    (SUB, {"spawnedBy": None}),
]


@pytest.mark.parametrize(("key", "fields"), BAD)
def test_what_cannot_be_is_refused(key: str, fields: dict[str, object]) -> None:
    wanted = canonical(key)
    entry = SessionEntry(str(wanted), {"spawnDepth": 1, "spawnedBy": "agent:main:main"})
    with pytest.raises(InvalidRequest):
        patched(entry, wanted, fields, [SessionEntry("other", {"label": "Taken"})])


async def test_a_patch_that_fails_changes_nothing(box: Box) -> None:
    sessions = box.sessions()
    await sessions.patch("a", {"label": "one"})
    with pytest.raises(InvalidRequest):
        await sessions.patch("b", {"thinkingLevel": "low", "label": "one"})
    found = sessions.get("b")
    assert found is None or "thinkingLevel" not in found.raw
    assert (await sessions.patch("a", {"label": None})).text("label") == ""
    await sessions.close()


def test_a_reset_drops_what_belongs_to_the_old_talk() -> None:
    entry = SessionEntry("k", {"sessionId": "a", "strange": 1, "cliSessionIds": {"x": "y"}})
    assert set(reset_entry(entry, "b", 7).raw) == {
        "sessionId", "updatedAt", "systemSent", "abortedLastRun", "inputTokens", "outputTokens",
        "totalTokens", "totalTokensFresh", "sessionFile",
    }  # fmt: skip


# -- cleanup -----------------------------------------------------------------------------------


def put(path: Path, age_ms: int, size: int = 10) -> Path:
    path.write_bytes(b"x" * size)
    at = (START_MS - age_ms) / 1000
    os.utime(path, (at, at))
    return path


def dl03(box: Box) -> tuple[set[str], set[str]]:
    """The folder of case DL-03; names that must stay and names that must go."""
    stay, go = set[str](), set[str]()
    for number in range(300):
        days = number % 60 + 1
        at = START_MS - days * DAY_MS - 1000
        reason = ("reset", "deleted", "bak")[number % 3]
        name = f"id{number}.jsonl.{reason}.{stamp(at)}"
        put(box.folder / name, days * DAY_MS)
        (go if days >= 30 else stay).add(name)
    live = put(box.folder / "sessions.json.123.0f0f0f0f.tmp", 30_000)
    dead = put(box.folder / "sessions.json.124.0f0f0f0f.tmp", 2 * DAY_MS)
    torn = put(box.folder / f"a.jsonl.torn-{START_MS - 40 * DAY_MS}", 0)
    notes = [
        put(box.folder / name, 90 * DAY_MS)
        for name in ("notes.txt", "my.jsonl.reset.txt", "x.tmp", "plan.jsonl.bak", "a.lock")
    ]
    (box.folder / "link").symlink_to("/etc")
    old = f"z.jsonl.reset.{stamp(START_MS - 50 * DAY_MS)}"
    (box.folder / old).symlink_to("/etc/hostname")
    stay |= {live.name, "link", old, *(n.name for n in notes)}
    return stay, go | {dead.name, torn.name}


@pytest.mark.parametrize(("enforce", "dry_run"), [(False, False), (True, True), (True, False)])
async def test_dl03_only_old_leftovers_of_our_kind_go(
    box: Box, enforce: bool, dry_run: bool
) -> None:
    """DL-03: enforced, dry, and only warned about."""
    sessions = box.sessions()
    await sessions.open()
    stay, go = dl03(box)
    (told,) = await sessions.cleanup(Limits(enforce=enforce), dry_run=dry_run)
    assert {a.target for a in told.actions} == go
    assert {a.deed for a in told.actions} == {Deed.DELETE}
    assert (told.done, told.failed) == (enforce and not dry_run, ())
    assert told.freed_bytes == 10 * len(go)
    left = {p.name for p in box.folder.iterdir()}
    assert left == (stay if told.done else stay | go)
    assert Path("/etc/hostname").exists()
    await sessions.close()


async def test_old_and_surplus_sessions_are_archived_but_never_active_ones(box: Box) -> None:
    sessions = box.sessions()
    paths = {}
    for number in range(6):
        key = f"s{number}"
        paths[key] = await talked(sessions, key)
        await box.clock.advance(3600)
    old = START_MS - 31 * DAY_MS
    for key in ("s0", "s1"):
        await sessions.update(key, lambda e: e.replace(updatedAt=old))
    (told,) = await sessions.cleanup(
        Limits(enforce=True, max_entries=3), dry_run=False, active=["s1"]
    )
    assert [(a.deed, a.target) for a in told.actions] == [
        (Deed.REMOVE, "agent:main:s0"),
        (Deed.REMOVE, "agent:main:s2"),
        (Deed.REMOVE, "agent:main:s3"),
    ]
    assert set(box.store()) == {"agent:main:s1", "agent:main:s4", "agent:main:s5"}
    for key, path in paths.items():
        gone = key in ("s0", "s2", "s3")
        assert path.exists() is not gone
        assert bool(list(box.folder.glob(f"{path.name}.deleted.*"))) is gone
    await sessions.close()


async def test_a_disk_budget_takes_archives_then_orphans_then_the_oldest(box: Box) -> None:
    sessions = box.sessions()
    paths = [await talked(sessions, f"s{number}", "t" * 5000) for number in range(3)]
    for number in range(3):
        at = START_MS + number
        await sessions.update(f"s{number}", partial(SessionEntry.replace, updatedAt=at))
    await sessions.index.flush()
    name = "old.jsonl.reset.2026-11-20T10-00-00.000Z"
    put(box.folder / name, 10 * DAY_MS, 5000)
    orphan = put(box.folder / "orphan.jsonl", DAY_MS, 5000)
    limits = Limits(enforce=True, max_disk=14_000, high_water=13_000)
    (told,) = await sessions.cleanup(limits, dry_run=False, active=["s0"])
    assert [(a.deed, a.target) for a in told.actions] == [
        (Deed.DELETE, name),
        (Deed.DELETE, orphan.name),
        (Deed.DROP, "agent:main:s1"),
    ]
    assert [p.exists() for p in paths] == [True, False, True]
    assert set(box.store()) == {"agent:main:s0", "agent:main:s2"}
    await sessions.close()


async def test_a_large_store_is_copied_at_most_once_a_day(box: Box) -> None:
    sessions = box.sessions()
    await talked(sessions)
    limits = Limits(enforce=True, rotate_bytes=10)
    for day in range(6):
        for _ in range(2):
            await sessions.cleanup(limits, dry_run=False)
        await box.clock.advance(86_400 + 1)
        assert len(list(box.folder.glob("sessions.json.bak.*"))) == min(day + 1, 3)
    assert set(box.store()) == {"agent:main:main"}
    await sessions.close()
