"""Transcripts that are read from their end, and files that another program writes too."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claw_engine.messages import text_of
from claw_engine.sessions.entries import StoredMessage
from claw_engine.sessions.errors import SessionEnded
from claw_engine.sessions.hold import TranscriptHold
from claw_engine.sessions.transcript import Transcript
from claw_engine.storage.foreign_lock import FileLocks, lock_path
from claw_engine.world import RealDisk
from tests.sessions.support import GOLDEN, assistant, lines, user
from tests.support.fakes import FakeClock, FakeIds, fake_world

IDS = FakeIds()  # one source: two writers of a file never make the same id
HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-11-30T08:40:00.000Z"}


class CountingDisk(RealDisk):
    """Counts the bytes that are read."""

    read = 0

    def read_from(self, path: Path, offset: int, size: int = -1) -> bytes:
        data = super().read_from(path, offset, size)
        self.read += len(data)
        return data

    def read_bytes(self, path: Path) -> bytes:
        data = super().read_bytes(path)
        self.read += len(data)
        return data


def line(kind: str, number: int, parent: int | None, **fields: object) -> dict[str, object]:
    return {
        "type": kind,
        "id": f"{number:08x}",
        "parentId": None if parent is None else f"{parent:08x}",
        "timestamp": "2026-11-30T08:40:00.000Z",
        **fields,
    }


def said(number: int, parent: int | None, text: str = "") -> dict[str, object]:
    who = "user" if number % 2 else "assistant"
    content = [{"type": "text", "text": text or f"m{number}"}]
    message = {"role": who, "content": content, "timestamp": number, "provider": "p", "model": "m"}
    return line("message", number, parent, message=message)


def write(path: Path, *entries: dict[str, object]) -> None:
    path.write_text("".join(json.dumps(e) + "\n" for e in ({**HEADER, "cwd": "/"}, *entries)))


async def opened(path: Path, *, whole: int = 0, disk: RealDisk | None = None) -> Transcript:
    world = fake_world(FakeClock(), disk or RealDisk(), IDS)
    made = Transcript(world, path, "s1", "/", whole=whole, locks=FileLocks(world))
    await made.open()
    return made


def texts(messages: tuple[StoredMessage, ...]) -> list[str]:
    return [text_of(m.message) for m in messages]


def compacted(path: Path, size: int) -> None:
    """A long talk of about `size` bytes whose end was compacted."""
    filler = "x" * 2000
    many = size // 2100
    talk = [said(n, n - 1 if n else None, f"{n} {filler}") for n in range(many)]
    kept = f"{many - 2:08x}"
    summary = line("compaction", many, many - 1, summary="S", firstKeptEntryId=kept, tokensBefore=9)
    write(path, *talk, summary, said(many + 1, many), said(many + 2, many + 1))


async def test_of_a_compacted_talk_only_the_end_is_read(tmp_path: Path) -> None:
    path, disk = tmp_path / "s1.jsonl", CountingDisk()
    compacted(path, 4_000_000)
    read = await opened(path, disk=disk)
    whole = await opened(path, whole=1 << 40)
    assert disk.read < 200_000
    assert read.messages() == whole.messages()
    assert len(read.messages()) == 5
    assert not read.whole
    before = disk.read
    ids = await read.append(user("next"), assistant("answer"))
    assert disk.read - before < 1000
    assert [e["id"] for e in lines(path)[-2:]] == list(ids)
    assert lines(path)[-2]["parentId"] == whole.leaf_id
    again = await opened(path, whole=1 << 40)
    assert texts(again.messages())[-2:] == ["next", "answer"]


async def test_a_reader_who_wants_more_gets_more(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    compacted(path, 500_000)
    read, whole = await opened(path), await opened(path, whole=1 << 40)
    assert len(read.history()) < 100
    await read.append(user("next"), assistant("answer"))
    await whole.refresh()
    for limit in (0, 1, 50, 100, 10_000):
        assert await read.recent(limit) == (whole.history()[-limit:] if limit else ())
    assert read.whole
    assert read.leaf_id == whole.leaf_id
    assert read.messages() == whole.messages()


async def test_a_talk_without_a_summary_is_read_to_its_root(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write(path, *(said(n, n - 1 if n else None, "y" * 5000) for n in range(60)))
    talk = await opened(path)
    assert 20 <= len(talk.messages()) < 60  # OPEN_CHARS of it
    await talk.reach(1 << 40)
    assert talk.whole
    assert len(talk.messages()) == 60


async def test_of_a_long_talk_without_a_summary_only_what_is_asked_for_is_read(
    tmp_path: Path,
) -> None:
    path, disk = tmp_path / "s1.jsonl", CountingDisk()
    write(path, *(said(n, n - 1 if n else None, "y" * 2000) for n in range(2000)))
    read = await opened(path, disk=disk)
    whole = await opened(path, whole=1 << 40)
    assert disk.read < 400_000
    ids = await read.append(user("next"), assistant("answer"))
    await whole.refresh()
    for chars in (10, 150_000, 800_000):
        await read.reach(chars)
        context = read.messages()
        assert sum(map(len, texts(context))) >= chars
        assert context == whole.messages()[-len(context) :]
    assert disk.read < 2_500_000
    assert not read.whole
    assert [e["id"] for e in lines(path)[-2:]] == list(ids)
    await read.reach(1 << 40)
    assert read.messages() == whole.messages()


async def test_a_line_longer_than_any_piece_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write(path, said(0, None), said(1, 0, "z" * 400_000), said(2, 1, "w" * 70_000))
    talk = await opened(path)
    await talk.reach(1 << 40)
    assert [len(t) for t in texts(talk.messages())] == [2, 400_000, 70_000]


@pytest.mark.parametrize("name", sorted(p.name for p in GOLDEN.rglob("*.jsonl")))
async def test_captures_read_from_their_end_are_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(next(GOLDEN.rglob(name)).read_bytes())
    read, whole = await opened(path), await opened(path, whole=1 << 40)
    await read.reach(1 << 40)
    assert read.messages() == whole.messages()
    assert await read.recent(10_000) == whole.history()
    assert read.repairs == whole.repairs


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, object]]:
    """Any tree: branches, summaries that keep something, nothing or what is not there."""
    entries: list[dict[str, object]] = []
    for number in range(draw(st.integers(1, 25))):
        parent = draw(st.integers(0, number - 1)) if number and draw(st.booleans()) else number - 1
        above = parent if parent >= 0 else None
        if number and draw(st.integers(0, 5)) == 0:
            kept = draw(st.sampled_from([f"{draw(st.integers(0, number)):08x}", "", "gone"]))
            entries.append(
                line("compaction", number, above, summary=f"S{number}", firstKeptEntryId=kept)
            )
        else:
            padding = "p" * draw(st.sampled_from([0, 10, 40_000]))
            entries.append(said(number, above, f"m{number}{padding}"))
    return entries


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(trees())
async def test_the_end_of_any_tree_tells_what_the_whole_does(
    tmp_path_factory: pytest.TempPathFactory, entries: list[dict[str, object]]
) -> None:
    path = tmp_path_factory.mktemp("tree") / "s1.jsonl"
    write(path, *entries)
    read, whole = await opened(path), await opened(path, whole=1 << 40)
    context, expected = read.messages(), whole.messages()
    if context and expected and context[0] == expected[0]:
        context, expected = context[1:], expected[1:]  # a summary, before what was read so far
    assert context == expected[len(expected) - len(context) :]
    await read.reach(1 << 40)
    assert read.messages() == whole.messages()
    assert await read.recent(10_000) == whole.history()


async def test_branching_leaves_the_other_branch_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    talk = await opened(path)
    first, second, *_ = await talk.append(user("a"), assistant("b"), user("c"), assistant("d"))
    talk.branch(second)
    assert texts(talk.messages()) == ["a", "b"]
    await talk.append_entry("branch_summary", {"fromId": first, "summary": "left"})
    await talk.append(user("e"), assistant("f"))
    for one in (talk, await opened(path, whole=1 << 40)):
        assert texts(one.messages())[:2] == ["a", "b"]
        assert texts(one.messages())[3:] == ["e", "f"]
    assert len(lines(path)) == 8
    with pytest.raises(KeyError):
        talk.branch("nobody")
    talk.branch(None)
    assert talk.messages() == ()


# -- another program at the same file ----------------------------------------------------------


async def test_lines_of_another_program_are_followed_not_forked(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    ours = await opened(path)
    await ours.append(user("a"), assistant("b"))
    theirs = await opened(path)
    (_, leaf) = await theirs.append(user("c"), assistant("d"))
    ids = await ours.append(user("e"), assistant("f"))
    assert lines(path)[-2]["parentId"] == leaf
    assert [e["id"] for e in lines(path)[-2:]] == list(ids)
    assert texts(ours.messages()) == ["a", "b", "c", "d", "e", "f"]


async def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    ours = await opened(path)
    await ours.append(user("a"), assistant("b"))
    write(tmp_path / "new", said(8, None, "other"))
    (tmp_path / "new").rename(path)
    assert await ours.refresh()
    assert texts(ours.messages()) == ["other"]
    assert not await ours.refresh()


async def test_a_file_that_was_taken_away_begins_anew_with_a_header(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    ours = await opened(path)
    await ours.append(user("a"), assistant("b"))
    path.rename(tmp_path / "s1.jsonl.reset.2026-11-30T08-49-01.002Z")
    await ours.append(user("c"))
    assert not path.exists()
    await ours.append(assistant("d"))
    assert [e["type"] for e in lines(path)] == ["session", "message", "message"]
    assert lines(path)[1]["parentId"] is None


async def test_a_hold_keeps_the_lock_and_parking_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    world = fake_world(FakeClock(), RealDisk(), IDS)
    locks = FileLocks(world)
    talk = Transcript(world, path, "s1", "/", locks=locks)
    await talk.open()
    async with TranscriptHold(locks, talk) as hold:
        await hold.acquire()
        assert json.loads(lock_path(path).read_text())["pid"] == os.getpid()
        await talk.append(user("a"), assistant("b"))
        assert lock_path(path).exists()
        await hold.release()
        assert not lock_path(path).exists()
        other = await opened(path)
        await other.append(user("c"), assistant("d"))
        assert await hold.acquire()
        assert texts(talk.messages()) == ["a", "b", "c", "d"]
        await talk.append(user("e"))
    assert not lock_path(path).exists()


async def test_nobody_writes_to_an_ended_transcript(tmp_path: Path) -> None:
    talk = await opened(tmp_path / "s1.jsonl")
    await talk.append(user("a"), assistant("b"))
    await talk.end()
    with pytest.raises(SessionEnded) as caught:
        await talk.append(user("c"))
    assert caught.value.retryable
    assert len(lines(tmp_path / "s1.jsonl")) == 3
