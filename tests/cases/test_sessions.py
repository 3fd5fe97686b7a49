"""Cases of the session store and of transcripts, through the whole engine and its clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from claw_engine.client.base import ClientError
from claw_engine.client.remote import RemoteClient
from claw_engine.world import RealDisk, RealIds, RealSpawn, World
from tests.storage.test_foreign_lock import let_go, other_process, ticking
from tests.support import fake_openai as fake
from tests.support.engines import Operator, engine_on
from tests.support.fake_openai import FakeOpenAI, Received, Reply
from tests.support.fakes import FakeClock

IDS = ("a1", "b2", "c3")
STAMP = "2026-11-30T08:00:00.000Z"


def lines(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def header(session_id: str) -> dict[str, object]:
    return {"type": "session", "version": 3, "id": session_id, "timestamp": STAMP, "cwd": "/"}


def talk(*messages: dict[str, object]) -> list[dict[str, object]]:
    """Transcript entries of these messages, each the child of the one before."""
    out = []
    for number, message in enumerate(messages):
        parent = f"e{number - 1}" if number else None
        out.append({"type": "message", "id": f"e{number}", "parentId": parent,
                    "timestamp": STAMP, "message": message})  # fmt: skip
    return out


def said(text: str) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}


def folder_of(state: Path) -> Path:
    folder = state / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    return folder


GOOD = {"agent:main:main": {"sessionId": "a1", "updatedAt": 5}}


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (b"", False),
        (b"{", False),
        (b"\0" * 64, False),
        (b"\xef\xbb\xbf" + json.dumps(GOOD).encode(), True),
    ],
    ids=["empty", "brace", "nul", "bom"],
)
async def test_a_damaged_store_starts_lists_and_warns(
    tmp_path: Path, content: bytes, kept: bool
) -> None:
    """ST-01: variants 0 bytes, `{`, NUL bytes, BOM before valid JSON."""
    state = tmp_path / "state"
    folder = folder_of(state)
    for session_id in IDS:
        (folder / f"{session_id}.jsonl").write_text(lines(header(session_id)))
    (folder / "sessions.json").write_bytes(content)
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        rows = (await operator.client.call("sessions.list"))["sessions"]
        notices = (await operator.client.call("status"))["notices"]
    assert isinstance(rows, list)
    assert isinstance(notices, list)
    listed = {row["sessionId"] for row in rows}
    aside = [p for p in folder.iterdir() if ".broken-" in p.name]
    told = [n for n in notices if n["sticky"] and "sessions" in n["code"]]
    if kept:
        assert listed == {"a1"}
        assert (aside, told) == ([], [])
        return
    assert listed == set(IDS)
    assert [p.read_bytes() for p in aside] == [content]
    assert [n["level"] for n in told] == ["warn"]
    assert aside[0].name in told[0]["text"]
    warned = [
        line
        for path in (state / "logs").glob("*.log")
        for line in path.read_text().splitlines()
        if aside[0].name in line
    ]
    assert warned


async def test_moved_transcripts_are_found_and_reading_rewrites_nothing(tmp_path: Path) -> None:
    """ST-03: a bare name, a path of a directory that is not here, no name at all."""
    state = tmp_path / "state"
    folder = folder_of(state)
    old = "/home/olduser/.openclaw/agents/main/sessions"
    entries = {
        "agent:main:one": {"sessionId": "a1", "updatedAt": 3, "sessionFile": "a1.jsonl"},
        "agent:main:two": {"sessionId": "b2", "updatedAt": 2, "sessionFile": f"{old}/b2.jsonl"},
        "agent:main:three": {"sessionId": "c3", "updatedAt": 1},
    }
    for session_id in IDS:
        words = talk(said(f"I am {session_id}"))
        (folder / f"{session_id}.jsonl").write_text(lines(header(session_id), *words))
    (folder / "sessions.json").write_text(json.dumps(entries))
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        for key, entry in entries.items():
            assert f"I am {entry['sessionId']}" in json.dumps(await operator.history(key))
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
        await operator.ended(await operator.say("think: used", "agent:main:three"))
    after = json.loads((folder / "sessions.json").read_text())
    for key in ("agent:main:one", "agent:main:two"):
        assert after[key] == entries[key]
    assert "used" in (folder / "c3.jsonl").read_text()


async def test_a_lock_held_by_another_process_is_a_named_error_and_no_goodbye(
    tmp_path: Path,
) -> None:
    """ST-05: a second process holds the store for 15 s; three clients list, one sends."""
    clock, disk = FakeClock(), RealDisk()
    state = tmp_path / "state"
    async with contextlib.AsyncExitStack() as stack:
        world = World(clock, RealIds(), disk, RealSpawn())
        await stack.enter_async_context(engine_on(state, world=world))
        operator = await stack.enter_async_context(Operator(RemoteClient(state)))
        readers = [RemoteClient(state) for _ in range(3)]
        for reader in readers:
            await reader.connect()
            stack.push_async_callback(reader.close)
        await operator.ended(await operator.say("think: before"))
        store = state / "agents" / "main" / "sessions" / "sessions.json"
        with other_process(store, clock.now_ms()) as other:
            listing = [asyncio.ensure_future(r.call("sessions.list")) for r in readers]
            rows = [(await one)["sessions"] for one in listing]  # while time stands still
            assert all(len(row) == 1 for row in rows)
            run = await operator.say("think: meanwhile", "other")  # acknowledged: it is on disk
            resetting = asyncio.ensure_future(readers[0].call("sessions.reset", {"key": "main"}))
            await ticking(clock, disk, 11)
            with pytest.raises(ClientError) as caught:
                await resetting
            named = f"sessions.json.lock is held by process {other.pid}"
            assert named in caught.value.title
            assert (caught.value.shape.code, caught.value.retryable) == ("UNAVAILABLE", True)
            listing = [asyncio.ensure_future(r.call("sessions.list")) for r in readers]
            assert all([(await one)["sessions"] for one in listing])
            await ticking(clock, disk, 4)
            let_go(other)
            await ticking(clock, disk, 6)
            end = await operator.ended(run)
            # It got the lock in the end, or says by name why it could not.
            assert end["status"] == "done" or named in end["error"]["title"]
        done = await operator.ended(await operator.say("think: afterwards", "other"))
        assert done["status"] == "done"
        users = [m for m in await operator.history("other") if m["role"] == "user"]
        assert [m["content"][0]["text"] for m in users] == ["think: meanwhile", "think: afterwards"]
        for client in (*readers, operator.client):  # nobody was sent away, nobody must pair again
            assert client.connected
            assert (await client.call("health"))["ok"] is True


def strict(got: Received) -> Reply:
    """A provider that refuses every history whose calls and results are not in pairs."""
    messages: Any = got.json["messages"]
    open_calls: list[str] = []
    previous = ""
    for message in messages:
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in open_calls:
                return fake.error(400, "orphan result")
            open_calls.remove(message["tool_call_id"])
        else:
            if open_calls:
                return fake.error(400, "a call without its result")
            if role == previous:
                return fake.error(400, f"two {role} messages in a row")
            open_calls = [call["id"] for call in message.get("tool_calls") or []]
            for call in message.get("tool_calls") or []:
                if not isinstance(json.loads(call["function"]["arguments"]), dict):
                    return fake.error(400, "arguments are no object")
        previous = role
    return fake.answer(*fake.text("Hello again."))


async def test_a_half_written_call_does_not_poison_the_next_turn(tmp_path: Path) -> None:
    """TR-01 as OpenAI's request: the next turns succeed at a provider that checks the pairs."""
    state = tmp_path / "state"
    folder = folder_of(state)
    broken = {
        "role": "assistant",
        "content": [{"type": "toolCall", "id": "t1", "name": "write", "arguments": {},
                     "partialJson": '{"path":"/n'}],
        "api": "openai-completions", "provider": "fake", "model": "one", "stopReason": "error",
        "usage": {}, "timestamp": 2,
    }  # fmt: skip
    result = {
        "role": "toolResult", "toolCallId": "t1", "toolName": "write", "isError": True,
        "content": [{"type": "text", "text": "aborted"}], "timestamp": 3,
    }  # fmt: skip
    (folder / "a1.jsonl").write_text(lines(header("a1"), *talk(said("go"), broken, result)))
    (folder / "sessions.json").write_text(json.dumps(GOOD))
    async with FakeOpenAI(strict) as server:
        provider = {"baseUrl": server.base_url, "apiKey": "k", "api": "openai-completions",
                    "models": [{"id": "one", "name": "one"}]}  # fmt: skip
        config: dict[str, object] = {
            "models": {"providers": {"fake": provider}},
            "agents": {"defaults": {"model": {"primary": "fake/one"}}},
        }
        async with (
            engine_on(state, config=config) as engine,
            Operator(engine.local_client(strict=True)) as operator,
        ):
            for words in ("hello?", "and once more"):
                end = await operator.ended(await operator.say(words))
                assert (end["status"], end["text"]) == ("done", "Hello again.")
        sent = json.dumps([got.json for got in server.requests])
    assert "partialJson" not in sent
    assert len(server.requests) == 2
