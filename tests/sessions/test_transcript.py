from __future__ import annotations

import asyncio
import errno
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_engine.messages import Message, TextBlock, ToolResultMessage, text_of
from claw_engine.sessions.entries import Entry, StoredMessage, parse, read_entry
from claw_engine.sessions.guard import MAX_RESULT_CHARS, capped
from claw_engine.sessions.transcript import Transcript
from claw_engine.sessions.tree import Tree
from claw_engine.storage.errors import StateDiskError, StateDiskFull
from claw_engine.storage.text import to_line
from claw_engine.world import RealDisk
from tests.sessions.support import GOLDEN, assistant, lines, result, user
from tests.storage.faults import HalfLineDisk
from tests.support.fakes import FakeClock, fake_world

SESSIONS = GOLDEN / "agents" / "main" / "sessions"
CAPTURES = sorted(SESSIONS.glob("*.jsonl"))


def transcript(path: Path, disk: RealDisk | None = None, **options: Any) -> Transcript:
    world = fake_world(FakeClock(), disk or RealDisk())
    return Transcript(world, path, path.stem, "/ws", session_key="agent:main:main", **options)


async def opened(path: Path, disk: RealDisk | None = None, **options: Any) -> Transcript:
    made = transcript(path, disk, **options)
    await made.open()
    return made


def texts(messages: tuple[StoredMessage, ...]) -> list[str]:
    return [text_of(m.message) for m in messages]


# -- golden ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.name[:8])
async def test_captured_transcripts_are_read_and_not_touched(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    read = await opened(copy)
    assert read.repairs == ()
    assert copy.read_bytes() == path.read_bytes()
    assert read.leaf_id == lines(path)[-1]["id"]
    assert read.messages()
    await read.append(user("next"), assistant("answer"))
    grown = copy.read_bytes()
    assert grown.startswith(path.read_bytes())
    added = [json.loads(line) for line in grown[path.stat().st_size :].splitlines()]
    assert [a["message"]["role"] for a in added] == ["user", "assistant"]
    assert added[0]["parentId"] == lines(path)[-1]["id"]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


async def test_a_plain_capture_gives_its_messages_in_order() -> None:
    path = next(SESSIONS.glob("c24e31eb*.jsonl"))
    read = await opened(path)
    raw = [e for e in lines(path) if e["type"] == "message"]
    assert [m.entry_id for m in read.messages()] == [e["id"] for e in raw]
    assert read.messages() == read.history()
    assert texts(read.messages())[:2] == [
        "[Mon 2026-11-30 08:46 UTC] hi there #plain",
        "Hello from the fake model.",
    ]
    assert read.messages()[0].timestamp == 1796028397162


async def test_a_compacted_capture_begins_with_its_summary() -> None:
    path = next(SESSIONS.glob("6aa2bed6*.jsonl"))
    read = await opened(path)
    raw = lines(path)
    ids = [str(e["id"]) for e in raw if e["type"] == "message"]
    context = read.messages()
    assert context[0].kind == "compaction"
    assert "A summary of the earlier conversation stood here." in texts(context)[0]
    assert [m.entry_id for m in context[1:]] == ids[ids.index("c73c653e") :]
    assert [m.entry_id for m in read.history()] == ids


async def test_a_branch_that_was_left_is_not_part_of_the_talk() -> None:
    path = next(SESSIONS.glob("6e4352da*.jsonl"))
    read = await opened(path)
    parents = {e["id"]: e["parentId"] for e in lines(path)[1:]}
    on_path, at = [], read.leaf_id
    while at is not None:
        on_path.append(at)
        at = parents[at]
    assert {m.entry_id for m in read.history()} < set(on_path)
    assert "fd542049" not in {m.entry_id for m in read.history()}


async def test_a_second_header_in_the_middle_is_read_over() -> None:
    path = next(SESSIONS.glob("de68f413*.jsonl"))
    read = await opened(path)
    assert [m.message.__class__.__name__ for m in read.history()] == [
        "UserMessage",
        "AssistantMessage",
    ]


# -- first append ------------------------------------------------------------------------------


async def test_nothing_is_written_before_the_first_answer(tmp_path: Path) -> None:
    disk = HalfLineDisk()
    path = tmp_path / "deep" / "s1.jsonl"
    order: list[str] = []

    async def index_first() -> None:
        order.append("index")
        assert not path.exists()

    talk = await opened(path, disk, before_first_write=index_first)
    await talk.append_custom("model-snapshot", {"provider": "fake"})
    (first,) = await talk.append(user("hello"))
    assert not path.exists()
    assert not talk.settled
    assert texts(talk.messages()) == ["hello"]
    (second,) = await talk.append(assistant("hi"))
    assert order == ["index"]
    assert disk.appends == [("s1.jsonl", True)]
    assert talk.settled
    assert path.stat().st_mode & 0o777 == 0o600
    head, custom, one, two = lines(path)
    assert head == {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "2026-11-30T08:40:00.000Z",
        "cwd": "/ws",
        "sessionKey": "agent:main:main",
    }
    assert (custom["type"], custom["parentId"]) == ("custom", None)
    assert (one["id"], one["parentId"]) == (first, custom["id"])
    assert (two["id"], two["parentId"]) == (second, first)
    await talk.append(user("again"))
    assert disk.appends[1:] == [("s1.jsonl", False)]
    assert order == ["index"]


async def test_a_file_without_an_answer_is_not_grown_by_a_lone_question(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(to_line({"type": "session", "version": 3, "id": "s1", "cwd": "/x"}))
    size = path.stat().st_size
    talk = await opened(path)
    await talk.append(user("q"))
    assert path.stat().st_size == size
    await talk.append(assistant("a"))
    assert [e["type"] for e in lines(path)] == ["session", "message", "message"]
    assert lines(path)[0]["cwd"] == "/x"


async def test_process_durability_never_waits_for_the_platter(tmp_path: Path) -> None:
    disk = HalfLineDisk()
    talk = await opened(tmp_path / "s1.jsonl", disk, durability="process")
    await talk.append(user("q"), assistant("a"), result("r"))
    assert disk.appends == [("s1.jsonl", False)]


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    talk = await opened(path)
    await talk.append(user("q", provenance={"kind": "x"}), assistant("a"), result("r"))
    await talk.append_entry("compaction", {"summary": "S", "firstKeptEntryId": talk.leaf_id})
    await talk.append(user("more"))
    await talk.close()
    again = await opened(path)
    assert again.repairs == ()
    assert again.messages() == talk.messages()
    assert again.history() == talk.history()
    assert texts(again.messages())[1:] == ["r", "more"]


# -- crash and damage --------------------------------------------------------------------------


async def test_a_crash_at_any_byte_of_the_last_record_keeps_the_rest(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    talk = await opened(whole)
    await talk.append(user("q"), assistant("a"))
    before = whole.read_bytes()
    await talk.append(assistant("last é"))
    after = whole.read_bytes()
    for cut in range(len(before), len(after) + 1):
        path = tmp_path / f"cut{cut}.jsonl"
        path.write_bytes(after[:cut])
        read = await opened(path)
        complete = cut >= len(after) - 1
        assert texts(read.messages()) == ["q", "a", "last é"][: 3 if complete else 2]
        assert path.read_bytes() == (after if complete else before)
        torn = len(before) < cut < len(after)
        assert bool(read.repairs) is torn
        if torn and not complete:
            (kept,) = tmp_path.glob(f"cut{cut}.jsonl.torn-*")
            assert kept.read_bytes() == after[len(before) : cut]
        await read.append(user("next"))
        assert texts((await opened(path)).messages())[-1] == "next"


HEAD = {"type": "session", "version": 3, "id": "s1", "timestamp": "T", "cwd": "/x"}
ONE = {
    "type": "message",
    "id": "00000001",
    "parentId": None,
    "timestamp": "2026-11-30T08:40:00.000Z",
    "message": {"role": "user", "content": [{"type": "text", "text": "q", "textSignature": "s"}]},
    "odd": {"x": 1},
}
TWO = {
    "type": "message",
    "id": "00000002",
    "parentId": "00000001",
    "timestamp": "T",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
}


@pytest.mark.parametrize(
    "data",
    [
        to_line(ONE) + to_line(TWO),
        b"garbage\n" + to_line(HEAD) + to_line(ONE) + to_line(TWO),
        to_line(ONE) + to_line(HEAD) + to_line(TWO),
        b"\0" * 512 + b"\n" + to_line(ONE) + to_line(TWO),
    ],
    ids=["headless", "garbage-first", "header-second", "nul-first"],
)
async def test_a_file_that_lost_its_header_gets_one_and_is_kept(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(data)
    read = await opened(path)
    assert texts(read.messages()) == ["q", "a"]
    (backup,) = tmp_path.glob("s1.jsonl.bak-*")
    assert backup.read_bytes() == data
    assert backup.name in read.repairs[-1]
    head, *rest = lines(path)
    assert (head["type"], head["version"], head["id"]) == ("session", 3, "s1")
    assert rest == [ONE, TWO]
    assert (await opened(path)).repairs == ()


async def test_entries_without_ids_get_them_once(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    old = [{k: v for k, v in e.items() if k not in ("id", "parentId")} for e in (ONE, TWO)]
    path.write_bytes(b"".join(map(to_line, [{**HEAD, "version": 1}, *old])))
    read = await opened(path)
    assert texts(read.messages()) == ["q", "a"]
    head, one, two = lines(path)
    assert head["version"] == 3
    assert two["parentId"] == one["id"]
    assert (await opened(path)).repairs == ()


@pytest.mark.parametrize("bad", [b"{half\n", b"\0" * 300 + b"\n", b"[]\n"])
async def test_a_bad_line_in_the_middle_is_skipped_and_told(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "s1.jsonl"
    lost = {**TWO, "id": "00000003", "parentId": "gone"}
    data = to_line(HEAD) + to_line(ONE) + bad + to_line(lost)
    path.write_bytes(data)
    read = await opened(path)
    assert texts(read.messages()) == ["q", "a"]  # the lost parent does not cut the talk
    assert "lines 3" in read.repairs[-1]
    assert path.read_bytes() == data


async def test_a_line_behind_nul_bytes_of_a_power_loss_is_read_and_told(tmp_path: Path) -> None:
    """The line before it was never on disk, its own bytes were."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(to_line(HEAD) + to_line(ONE) + b"\0" * 80 + to_line(TWO))
    read = await opened(path)
    assert texts(read.messages()) == ["q", "a"]
    (said,) = read.repairs
    assert "NUL bytes" in said and path.name in said


@pytest.mark.parametrize("data", [b"", b"\0" * 100])
async def test_an_empty_file_is_begun_anew(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(data)
    talk = await opened(path)
    assert talk.messages() == ()
    await talk.append(user("q"), assistant("a"))
    assert [e["type"] for e in lines(path)] == ["session", "message", "message"]


@pytest.mark.parametrize("short", [0, 1, 40])
@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, StateDiskFull), (errno.EIO, StateDiskError)]
)
async def test_a_full_disk_is_told_and_made_up_for(
    tmp_path: Path, number: int, kind: type[StateDiskError], short: int
) -> None:
    disk = HalfLineDisk()
    path = tmp_path / "s1.jsonl"
    talk = await opened(path, disk)
    await talk.append(user("q"), assistant("a"))
    good = path.read_bytes()
    disk.broken, disk.short, disk.error = True, short, number
    with pytest.raises(kind) as caught:
        await talk.append(user("lost?"))
    assert caught.value.path == path
    assert caught.value.title
    assert caught.value.hint
    assert path.read_bytes() == good
    assert not talk.settled
    disk.broken = False
    await talk.append(assistant("back"))
    assert path.read_bytes().startswith(good)
    assert texts((await opened(path)).messages()) == ["q", "a", "lost?", "back"]


async def test_a_full_disk_at_the_first_append_leaves_no_half_file(tmp_path: Path) -> None:
    disk = HalfLineDisk()
    path = tmp_path / "s1.jsonl"
    talk = await opened(path, disk)
    disk.broken, disk.short = True, 20
    with pytest.raises(StateDiskFull):
        await talk.append(user("q"), assistant("a"))
    assert path.read_bytes() == b""
    disk.broken = False
    await talk.flush()
    assert [e["type"] for e in lines(path)] == ["session", "message", "message"]


async def test_abort_gives_up_the_wait_but_never_the_write(tmp_path: Path) -> None:
    talk = await opened(tmp_path / "s1.jsonl")
    await talk.append(user("q"), assistant("a"))
    wait = asyncio.create_task(talk.append(assistant("cut off")))
    await asyncio.sleep(0)
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait
    await talk.close()
    assert texts((await opened(talk.path)).messages()) == ["q", "a", "cut off"]


async def test_appends_at_once_keep_their_order(tmp_path: Path) -> None:
    talk = await opened(tmp_path / "s1.jsonl")
    await talk.append(user("q"), assistant("a"))
    await asyncio.gather(*(talk.append(result(str(n), f"c{n}")) for n in range(50)))
    again = await opened(talk.path)
    assert texts(again.messages())[2:] == [str(n) for n in range(50)]
    assert again.messages() == talk.messages()


# -- pure parts --------------------------------------------------------------------------------


messages = st.lists(
    st.builds(user, st.text())
    | st.builds(assistant, st.text())
    | st.builds(result, st.text(), st.text(max_size=5)),
    max_size=6,
)


@given(messages)
@settings(max_examples=40)
def test_what_was_appended_is_what_is_read(batch: list[Message]) -> None:
    entries = [Entry(f"{n:08x}", None, "message", "T", m) for n, m in enumerate(batch)]
    data = b"".join(to_line(e.to_json()) for e in entries)
    read = [read_entry(raw, None) for _, _, raw in parse(data) if not isinstance(raw, str)]
    assert read == entries


@given(st.lists(st.integers(-1, 12), max_size=12))
def test_the_path_never_loops_and_ends_at_the_leaf(parents: list[int]) -> None:
    tree = Tree()
    for number, parent in enumerate(parents):
        tree.add(Entry(str(number), None if parent < 0 else str(parent), "custom", "T"))
    path = [entry.id for entry in tree.path()]
    assert len(path) == len(set(path))
    assert (path[-1] if path else None) == tree.leaf_id
    fresh = Tree()
    for entry in tree.in_file_order():
        fresh.add(entry)
    assert [e.id for e in fresh.path()] == path


def test_inserts_for_the_model_are_shown_only_when_they_ask_for_it() -> None:
    tree = Tree()
    tree.add(Entry("1", None, "custom_message", "T", data={"content": "hid", "display": False}))
    tree.add(Entry("2", "1", "custom_message", "T", data={"content": "seen", "display": True}))
    tree.add(Entry("3", "2", "branch_summary", "T", data={"summary": "left"}))
    tree.add(Entry("4", "3", "message", "T", data={"message": {"role": "bashExecution"}}))
    assert [text_of(m.message)[-4:] for m in tree.context()] == ["hid", "seen", "left"]
    assert texts(tree.history()) == ["seen"]


@pytest.mark.parametrize("kept", ["1", "3", "missing"])
def test_the_newest_compaction_decides_what_is_read(kept: str) -> None:
    tree = Tree()
    for number in ("1", "2", "3"):
        parent = tree.leaf_id
        tree.add(Entry(number, parent, "message", "T", user(number)))
        if number == "2":
            tree.add(Entry("c1", "2", "compaction", "T", data={"summary": "old"}))
    tree.add(
        Entry(
            "c2", tree.leaf_id, "compaction", "T", data={"summary": "new", "firstKeptEntryId": kept}
        )
    )
    tree.add(Entry("4", "c2", "message", "T", user("4")))
    expected = {"1": ["1", "2", "3"], "3": ["3"], "missing": []}[kept]
    assert texts(tree.context())[1:] == [*expected, "4"]
    assert texts(tree.context())[0].endswith("new")


def test_a_giant_tool_result_is_cut_and_says_so() -> None:
    big = ToolResultMessage("c", "exec", (TextBlock("x" * 500_000), TextBlock("y" * 500_000)))
    cut = capped(big)
    kept = text_of(cut)
    assert MAX_RESULT_CHARS <= len(kept) < MAX_RESULT_CHARS + 200
    assert "300000 more characters were not kept" in kept
    small = result("small")
    assert capped(small) is small
