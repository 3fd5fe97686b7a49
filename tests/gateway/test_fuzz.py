"""Frames nobody would send, at the machine and at a whole gateway: nothing breaks, nothing leaks.

A slice runs here; CLAW_FUZZ_FRAMES=100000 is the full size.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
from pathlib import Path
from typing import Any

import pytest

from claw_engine.gateway.close import Close
from claw_engine.gateway.connection import Admit, Connection, End, Opened, Phase, Send, Serve
from claw_engine.gateway.handshake import Refusal, granted, identity_of
from claw_engine.gateway.peer import Identity
from claw_engine.gateway.session import ClientSession, FrameTooLarge, Shop
from claw_engine.protocol.names import Scope, allows
from tests.gateway.rig import Rig

FRAMES = int(os.environ.get("CLAW_FUZZ_FRAMES", "4000"))

JUNK: list[object] = [
    None, True, False, 0, -1, 2**70, 1.5, "", "x", "\0", "é" * 40, "\ud800", [], [1], {}, {"a": []},
    "agent:main:main", "operator.admin", "__proto__", {"$ref": "x"}, ["operator.admin"], "a" * 5000,
    [[[[[]]]]], 1e308,
]  # fmt: skip


class Chaos:
    """A seeded source of frames: near misses, junk, bytes."""

    def __init__(self, seed: int, methods: list[str]) -> None:
        self.r = random.Random(seed)
        self.methods = [*methods, "connect", "nope", "", "health ", "chat.send\0"]

    def value(self, depth: int = 2) -> object:
        r = self.r
        if depth and r.random() < 0.2:
            return {self.key(): self.value(depth - 1) for _ in range(r.randrange(4))}
        if depth and r.random() < 0.1:
            return [self.value(depth - 1) for _ in range(r.randrange(4))]
        return r.choice(JUNK)

    def key(self) -> str:
        return self.r.choice([
            "sessionKey", "message", "idempotencyKey", "id", "key", "limit", "decision", "runId",
            "deviceId", "requestId", "role", "scopes", "lane", "width", "when", "mode", "command",
            "params", "x", "", "__class__",
        ])  # fmt: skip

    def connect(self) -> dict[str, object]:
        good: dict[str, object] = {
            "minProtocol": self.r.choice([3, 4, 1]), "maxProtocol": self.r.choice([3, 4, 9]),
            "client": {"id": "test", "version": "1", "platform": "x", "mode": "test"},
            "scopes": self.r.sample([s.value for s in Scope], self.r.randrange(4)), "proof": "p",
        }  # fmt: skip
        if self.r.random() < 0.6:
            good[self.r.choice([*good, "auth", "device", "caps", "role", self.key()])] = (
                self.value()
            )
        return good

    def frame(self, *, first: bool = False) -> bytes | str:
        r = self.r
        kind = r.random()
        if kind < 0.12:
            return r.randbytes(r.randrange(200))
        if kind < 0.2:
            return json.dumps(self.value(), ensure_ascii=True)
        frame: dict[str, object] = {
            "type": "req", "id": str(r.randrange(1000)), "method": r.choice(self.methods),
        }  # fmt: skip
        if first or r.random() < 0.1:
            frame |= {"method": "connect", "params": self.connect()}
        elif r.random() < 0.9:
            frame["params"] = {self.key(): self.value() for _ in range(r.randrange(5))}
        if r.random() < 0.25:
            frame[r.choice(["type", "id", "method", "params", "extra", "traceparent"])] = (
                self.value()
            )
        text = json.dumps(frame, ensure_ascii=True)
        if r.random() < 0.08:
            cut = r.randrange(len(text))
            return text[:cut] + r.choice(["", "\\", "}", "\0"]) + text[cut + 1 :]
        return text


def test_the_machine_takes_anything() -> None:
    chaos = Chaos(1, ["health", "chat.send"])
    for _ in range(FRAMES // 4):
        machine = Connection("n", 1)
        machine.start()
        for step in range(4):
            for action in machine.message(chaos.frame(first=step == 0)):
                if isinstance(action, Admit):
                    if chaos.r.random() < 0.3:
                        machine.refused(Refusal(Close.UNAUTHORIZED, "no"))
                        assert machine.phase is Phase.CLOSED
                    else:
                        identity = identity_of(action.params, action.protocol, frozenset())
                        assert isinstance(machine.admitted(identity), Opened)
                elif isinstance(action, End):
                    assert machine.phase is Phase.CLOSED
                else:
                    assert not isinstance(action, Serve) or machine.phase is Phase.OPEN
            if machine.phase is Phase.CLOSED:
                assert machine.message(chaos.frame()) == []
                break


class Pipe:
    """A `Wire` without a socket."""

    open = True
    unsent = 0

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.incoming: asyncio.Queue[bytes | str | None] = asyncio.Queue()
        self.taken = 0

    async def receive(self, limit: int) -> bytes | str | None:
        self.taken += 1
        data = await self.incoming.get()
        if data is not None and len(data) > limit:
            raise FrameTooLarge
        return data

    def write(self, line: bytes) -> None:
        self.sent.append(json.loads(line))

    def write_event(self, body: bytes, tail: bytes) -> None:
        self.sent.append(json.loads(body + tail))

    def flush_soon(self) -> None: ...

    async def drain(self) -> None:
        await asyncio.sleep(0)

    async def hang_up(self, why: Close, reason: str) -> None: ...

    def abort(self) -> None: ...


async def test_a_gateway_takes_anything_and_serves_no_method_without_its_scope(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    broken: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context))
    rig = Rig(tmp_path)
    rig.gateway.start()
    gateway = rig.gateway
    table = gateway.dispatcher.table
    # What waits for an end that no one brings is not asked for here.
    names = [n for n in table.names if n not in ("agent", "agent.wait", "exec.approval.request")]
    chaos, done = Chaos(2, names), 0
    shop = Shop(rig.world.clock, rig.world.ids, gateway.dispatcher, gateway.broadcaster,
                gateway.hello, set(), 1 << 22, 1 << 23)  # fmt: skip

    async def admit(nonce: str, asked: Admit) -> Identity:
        if asked.params.proof != "p":
            raise Refusal(Close.UNAUTHORIZED, "no")
        return identity_of(asked.params, asked.protocol, granted(asked.params.scopes))

    while done < FRAMES:
        pipe = Pipe()
        session = ClientSession(shop, pipe, admit)
        running = asyncio.create_task(session.run())
        asked: dict[str, list[str]] = {}
        for number in range(40):
            frame = chaos.frame(first=number == 0)
            done += 1
            _remember(frame, asked)
            pipe.incoming.put_nowait(frame)
        pipe.incoming.put_nowait(None)
        async with asyncio.timeout(20):
            await running
        for task in list(shop.tasks):
            await task
        if session.peer is not None:
            _none_without_scope(pipe, asked, session.peer.identity, table)
    await rig.close()
    assert broken == []
    assert [r for r in caplog.records if r.exc_info] == []


def _remember(frame: bytes | str, asked: dict[str, list[str]]) -> None:
    try:
        raw = json.loads(frame)
    except ValueError:
        return
    if isinstance(raw, dict) and isinstance(raw.get("method"), str):
        asked.setdefault(str(raw.get("id")), []).append(raw["method"])


def _none_without_scope(pipe: Pipe, asked: dict[str, list[str]], who: Identity, table: Any) -> None:
    for answer in pipe.sent:
        if answer.get("type") != "res" or not answer["ok"] or answer["payload"] is None:
            continue
        payload = answer["payload"]
        if isinstance(payload, dict) and payload.get("type") == "hello-ok":
            continue
        methods = [table.get(name) for name in asked[answer["id"]]]
        assert any(
            m is not None
            and (m.name == "health" or allows(who.scopes, m.scope_under(who.protocol)))
            for m in methods
        ), answer


def test_the_slice_sends_what_it_should() -> None:
    """The fuzz reaches open connections: else it shows nothing."""
    chaos, opened = Chaos(3, ["health"]), 0
    for _ in range(300):
        machine = Connection("n", 1)
        actions = machine.message(chaos.frame(first=True))
        opened += any(isinstance(a, Admit) for a in actions)
        assert all(isinstance(a, Send | End | Admit) for a in actions)
    assert opened > 60
