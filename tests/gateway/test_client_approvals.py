"""Questions that clients bring, as OpenClaw's clients bring them, and the rules file as a whole."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from claw_engine.client.base import ClientError
from claw_engine.engine import Engine
from claw_engine.paths import StateDir
from tests.support.engines import Operator, engine_on

GOLDEN = Path(__file__).parents[1] / "golden" / "frames"
OURS_TO_SAY = {"path", "hash", "createdAtMs", "expiresAtMs", "ts"}
"""Values that are another machine's or another time's: only that they are there is compared."""
ON_DISK = {
    "version": 1,
    "socket": {"path": "/home/user/.openclaw/exec-approvals.sock", "token": "secret-token"},
    "defaults": {},
    "agents": {},
}


class Wire:
    """A bare OpenClaw client at the door: frames out, frames in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.seen: list[dict[str, Any]] = []

    async def frame(self) -> dict[str, Any]:
        async with asyncio.timeout(10):
            found: dict[str, Any] = json.loads(await self.reader.readline())
        self.seen.append(found)
        return found

    def send(self, frame: Mapping[str, object]) -> None:
        self.writer.write(json.dumps(frame).encode() + b"\n")

    async def until(self, **fields: object) -> dict[str, Any]:
        """The first frame, also of those that came already, with these fields."""
        for frame in self.seen:
            if all(frame.get(name) == value for name, value in fields.items()):
                return frame
        while True:
            frame = await self.frame()
            if all(frame.get(name) == value for name, value in fields.items()):
                return frame


@asynccontextmanager
async def wire(state: Path) -> AsyncIterator[Wire]:
    paths = StateDir(state)
    client = Wire(*await asyncio.open_unix_connection(str(paths.door_sock), limit=1 << 24))
    nonce = (await client.frame())["payload"]["nonce"]
    proof = hmac.new(paths.door_key.read_bytes(), nonce.encode(), hashlib.sha256).hexdigest()
    who = {"id": "cli", "version": "1", "platform": "linux", "mode": "cli"}
    client.send({"type": "req", "id": "c", "method": "connect", "params": {
        "minProtocol": 3, "maxProtocol": 3, "client": who, "proof": proof, "caps": [],
        "scopes": ["operator.admin", "operator.approvals"],
    }})  # fmt: skip
    assert (await client.until(id="c"))["ok"]
    client.seen.clear()
    try:
        yield client
    finally:
        client.writer.close()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with engine_on(tmp_path) as running:
        yield running


def lacks(wanted: Any, found: Any, where: str = "") -> list[str]:
    """What of `wanted` is not in `found`; more than is wanted is fine."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return [f"{where}: {found!r}"]
        out = []
        for name, value in wanted.items():
            if name not in found:
                out.append(f"{where}/{name} is missing")
            elif name in OURS_TO_SAY:
                if type(found[name]) is not type(value):
                    out.append(f"{where}/{name}: {found[name]!r}")
            else:
                out += lacks(value, found[name], f"{where}/{name}")
        return out
    return [] if wanted == found else [f"{where}: {found!r} instead of {wanted!r}"]


@pytest.mark.parametrize("name", ["approval.direct_allow_once", "approval.direct_two_phase_deny"])
async def test_openclaws_own_exchange_has_the_same_answers(tmp_path: Path, name: str) -> None:
    """Recorded with OpenClaw 2026.2.26: the same requests, in order, to this engine."""
    (tmp_path / "exec-approvals.json").write_text(json.dumps(ON_DISK))
    frames = json.loads((GOLDEN / f"{name}.json").read_text())["frames"]
    async with engine_on(tmp_path), wire(tmp_path) as client:
        for item in frames:
            frame = item["frame"]
            if item["dir"] == "send":
                client.send(frame)
            elif frame["type"] == "event":
                got = await client.until(event=frame["event"])
                assert lacks(frame["payload"], got["payload"]) == []
            else:
                got = await client.until(id=frame["id"])
                client.seen.remove(got)
                assert lacks(frame, got) == []


async def test_a_request_has_every_field_of_the_later_generation(engine: Engine) -> None:
    """Recorded with OpenClaw 2026.9.6: its clients draw their keys from these."""
    frames = json.loads((GOLDEN / "approval.requested.v4.json").read_text())["frames"]
    wanted = frames[0]["frame"]["payload"]
    async with Operator(engine.local_client(strict=True)) as person:
        record = await person.request(await person.say("run: sh -c id"))
        assert set(wanted) <= set(record)
        assert set(wanted["request"]) <= set(record["request"])
        assert record["request"]["allowedDecisions"] == ["allow-once", "deny"]
        await person.decide(record, "deny")


async def test_a_client_that_went_away_finds_its_two_step_question_again(
    engine: Engine, tmp_path: Path
) -> None:
    question = {"id": "q1", "command": "rm -rf /tmp/x", "cwd": "/tmp", "twoPhase": True}
    async with wire(tmp_path) as client:
        client.send({"type": "req", "id": "1", "method": "exec.approval.request",
                     "params": question})  # fmt: skip
        first = await client.until(id="1")
        assert first["payload"]["status"] == "accepted"
    async with wire(tmp_path) as client, Operator(engine.local_client(strict=True)) as person:
        client.send({"type": "req", "id": "2", "method": "exec.approval.waitDecision",
                     "params": {"id": "q1"}})  # fmt: skip
        listed: Any = (await person.client.call("exec.approval.list", {}))["approvals"]
        assert [(r["id"], r["request"]["client"]) for r in listed] == [("q1", "cli")]
        risks = listed[0]["request"]["segments"][0]["risks"]
        assert risks, "a dangerous command is named so, whoever runs it"
        await person.decide({"id": "q1"}, "allow-once")
        answer = await client.until(id="2")
        assert answer["payload"]["decision"] == "allow-once"


async def test_a_one_step_question_ends_with_who_asks(engine: Engine) -> None:
    async with Operator(engine.local_client(strict=True)) as person:
        question = {"id": "q2", "command": "ls"}
        asked = asyncio.create_task(person.client.call("exec.approval.request", question))
        await person.event("exec.approval.requested", lambda p: p["id"] == "q2")
        asked.cancel()
        ended = await person.event("exec.approval.resolved", lambda p: p["id"] == "q2")
        assert (ended["decision"], ended["reason"]) == (None, "the client went away")


async def test_what_a_client_runs_is_allowed_once_and_never_for_good(engine: Engine) -> None:
    async with Operator(engine.local_client(strict=True)) as person:
        asked = asyncio.create_task(
            person.client.call("exec.approval.request", {"id": "q3", "command": "id"})
        )
        record = await person.event("exec.approval.requested", lambda p: p["id"] == "q3")
        assert record["request"]["grants"]["offers"] == []
        with pytest.raises(ClientError, match="for ever"):
            await person.decide(record, "allow-always")
        grant = {"covers": "exact", "span": "session"}
        params = {"id": "q3", "decision": "allow-once", "grant": grant}
        with pytest.raises(ClientError, match="client that asks runs it itself"):
            await person.client.call("exec.approval.resolve", params)
        with pytest.raises(ClientError, match="already pending"):
            await person.client.call("exec.approval.request", {"id": "q3", "command": "id"})
        await person.decide(record, "deny")
        assert (await asked)["decision"] == "deny"


async def test_an_unanswered_question_has_no_decision(engine: Engine) -> None:
    async with Operator(engine.local_client(strict=True)) as person:
        params = {"command": "ls", "timeoutMs": 1}
        assert (await person.client.call("exec.approval.request", params))["decision"] is None
        with pytest.raises(ClientError, match="expired or not found"):
            await person.client.call("exec.approval.waitDecision", {"id": "nope"})


async def test_the_rules_file_is_set_by_who_has_seen_it(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "exec-approvals.json"
    async with Operator(engine.local_client(strict=True)) as person:
        empty = await person.client.call("exec.approvals.get", {})
        assert (empty["exists"], empty["hash"]) == (False, hashlib.sha256(b"").hexdigest())
        path.write_text(json.dumps(ON_DISK))
        seen: Any = await person.client.call("exec.approvals.get", {})
        assert "token" not in json.dumps(seen)
        assert seen["hash"] == hashlib.sha256(path.read_bytes()).hexdigest()
        entry = {"id": "r1", "pattern": "/usr/bin/id", "note": "kept"}
        wanted = {**seen["file"], "agents": {"main": {"allowlist": [entry]}}}
        with pytest.raises(ClientError, match="base hash required"):
            await person.client.call("exec.approvals.set", {"file": wanted})
        with pytest.raises(ClientError, match="changed since last load"):
            stale = {"file": wanted, "baseHash": empty["hash"]}
            await person.client.call("exec.approvals.set", stale)
        with pytest.raises(ClientError, match="version 7"):
            wrong = {"file": {"version": 7}, "baseHash": seen["hash"]}
            await person.client.call("exec.approvals.set", wrong)
        assert json.loads(path.read_text()) == ON_DISK
        good = {"file": wanted, "baseHash": seen["hash"]}
        after = await person.client.call("exec.approvals.set", good)
        written = json.loads(path.read_text())
        assert written["socket"] == ON_DISK["socket"], "the token stays and is no one's to change"
        assert written["agents"]["main"]["allowlist"][0]["note"] == "kept"
        assert after["hash"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert path.stat().st_mode & 0o777 == 0o600
        await person.event("exec.approvals.changed")
        rules: Any = (await person.client.call("exec.approvals.rules", {}))["rules"]
        assert [rule["pattern"] for rule in rules] == ["/usr/bin/id"]
