"""What the kill harness found, each as a small test of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.soak.checks import read_lines
from bench.soak.truth import configure
from claw_engine.inbox.journal import Journal
from claw_engine.inbox.model import InboundMessage
from claw_engine.messages import AssistantMessage, Message, TextBlock, UserMessage
from claw_engine.paths import StateDir
from claw_engine.sessions.store import Sessions
from claw_engine.world import RealDisk, real_world
from tests.support.engines import Operator, engine_on, transcript_of

KEY = "agent:main:main"


def user(run_id: str, text: str) -> UserMessage:
    return UserMessage((TextBlock(text),), 1, {"runId": run_id})


def answer(stop: str = "stop", error: str | None = None) -> AssistantMessage:
    return AssistantMessage((TextBlock("so be it"),), stop_reason=stop, error_message=error)


async def died(root: Path, *said: Message, started: bool) -> None:
    """A state directory whose engine died after `said` was written for the message `second`."""
    configure(root)
    world, state = real_world(), StateDir(root)
    sessions, journal = Sessions(world, state, lambda _: None), Journal(world, state.inbox_dir)
    await sessions.open()
    await journal.open()
    talk = await sessions.transcript(KEY)
    await talk.append(user("first", "think: one"), answer(), *said)
    await journal.accept(InboundMessage("second", KEY, "main", "think: two", "console", 1))
    if started:
        await journal.mark("second", "started")
    await journal.close()
    await sessions.close()
    assert isinstance(world.disk, RealDisk)
    world.disk.close()


def marks(lines: list[dict[str, Any]]) -> int:
    return sum(line.get("customType") == "claw:interrupted" for line in lines)


def said_by(lines: list[dict[str, Any]], role: str) -> list[dict[str, Any]]:
    return [x["message"] for x in lines if x["type"] == "message" and x["message"]["role"] == role]


def outcome(root: Path) -> str:
    """The newest word of the journal about `second`."""
    lines = [x for x in read_lines(root / "inbox" / "journal.jsonl") if x.get("id") == "second"]
    return str(lines[-1].get("outcome", lines[-1]["kind"]))


async def test_a_turn_in_the_transcript_is_not_run_again(tmp_path: Path) -> None:
    await died(tmp_path, user("second", "think: two"), started=False)
    async with engine_on(tmp_path):
        pass
    lines = transcript_of(tmp_path)
    assert [m["runId"] for m in said_by(lines, "user")] == ["first", "second"]
    assert said_by(lines, "assistant")[-1]["stopReason"] == "aborted"
    assert (marks(lines), outcome(tmp_path)) == (1, "interrupted")


async def test_an_answer_that_is_written_is_not_given_again(tmp_path: Path) -> None:
    await died(tmp_path, user("second", "think: two"), answer(), started=False)
    async with engine_on(tmp_path):
        pass
    assert len(said_by(transcript_of(tmp_path), "assistant")) == 2
    assert outcome(tmp_path) == "done"


async def test_a_message_that_left_no_trace_is_answered(tmp_path: Path) -> None:
    await died(tmp_path, started=False)
    async with engine_on(tmp_path) as engine, Operator(engine.local_client()) as operator:
        waited = await operator.client.call("agent.wait", {"runId": "second", "timeoutMs": 20_000})
        assert waited["status"] == "ok"
    lines = transcript_of(tmp_path)
    assert [m["runId"] for m in said_by(lines, "user")] == ["first", "second"]
    assert (marks(lines), outcome(tmp_path)) == (0, "done")


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (answer("stop"), "done"),
        (answer("length"), "done"),
        (answer("error", "The provider failed."), "failed"),
        (answer("aborted", "Stopped by the operator."), "aborted"),
    ],
)
async def test_a_written_end_counts(tmp_path: Path, end: AssistantMessage, told: str) -> None:
    await died(tmp_path, user("second", "think: two"), end, started=True)
    before = transcript_of(tmp_path)
    async with engine_on(tmp_path):
        pass
    assert transcript_of(tmp_path) == before
    assert outcome(tmp_path) == told


@pytest.mark.parametrize("cut", [0, 1, 2])
async def test_a_recovery_that_was_cut_short_is_finished_not_repeated(
    tmp_path: Path, cut: int
) -> None:
    """`cut` is how many of its lines the first recovery did not get to write."""
    await died(tmp_path, user("second", "think: two"), started=True)
    journal = tmp_path / "inbox" / "journal.jsonl"
    before = journal.read_bytes()
    async with engine_on(tmp_path):
        pass
    whole = transcript_of(tmp_path)
    store = json.loads((tmp_path / "agents/main/sessions/sessions.json").read_text())
    file = tmp_path / "agents/main/sessions" / store[KEY]["sessionFile"]
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: len(lines) - cut]))
    journal.write_bytes(before)
    async with engine_on(tmp_path):
        pass
    again = transcript_of(tmp_path)
    assert len(again) == len(whole)
    assert (marks(again), outcome(tmp_path)) == (1, "interrupted")
    assert [m["stopReason"] for m in said_by(again, "assistant")] == ["stop", "aborted"]


async def test_mended_files_are_logged_and_leftovers_go(tmp_path: Path) -> None:
    await died(tmp_path, user("second", "think: two"), started=True)
    folder = tmp_path / "agents" / "main" / "sessions"
    (folder / "sessions.json.4711.0123abcd.tmp").write_text("{")
    [file] = folder.glob("*.jsonl")
    with file.open("ab") as end:
        end.write(b'{"type":"mess')
    async with engine_on(tmp_path):
        pass
    assert list(folder.glob("*.tmp")) == []
    [kept] = folder.glob("*.torn-*")
    log = "".join(path.read_text() for path in (tmp_path / "logs").glob("*.log"))
    assert kept.name in log
