"""What the console sees of a gateway that is not ours; each case was seen with a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from claw_engine.client.foreign import ForeignClient
from claw_engine.client.foreign_shapes import approvals, history, status
from claw_engine.client.inflow import Inflow
from claw_engine.protocol.frames import EventFrame
from claw_tui.store.blocks import BlockKind
from claw_tui.store.store import Store

MAIN = "agent:main:main"


class Gateway:
    """Answers by a table; its events come when the test says so."""

    host = "nas"
    connected = True
    hello: Mapping[str, object] = {}

    def __init__(self, answers: Mapping[str, dict[str, object]]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.inflow = Inflow()

    async def connect(self) -> Mapping[str, object]:
        server = {"version": "dev"}
        return {"protocol": 3, "server": server, "features": {"methods": sorted(self.answers)}}

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> dict[str, object]:
        self.asked.append(method)
        return self.answers[method]

    def events(self) -> AsyncIterator[EventFrame]:
        return self.inflow.events()

    def nudge(self) -> None:
        self.inflow.nudge()

    async def close(self) -> None:
        self.inflow.close()


DEFAULTS = {"modelProvider": "fake", "model": "fake-1", "contextTokens": 200_000}


async def test_the_model_is_known_from_the_start() -> None:
    """The status line said "no model": only `sessions.list` names it, and that came later."""
    gateway = Gateway({"sessions.list": {"defaults": DEFAULTS, "sessions": []}})
    client = ForeignClient(gateway)
    hello = await client.connect()
    snapshot = hello["snapshot"]
    assert isinstance(snapshot, dict) and snapshot["model"]["name"] == "fake/fake-1"
    assert (await client.call("status"))["permissionMode"] == "OpenClaw (protocol 3)"


async def test_a_sent_message_is_shown_before_the_gateway_says_anything() -> None:
    """OpenClaw 2026.9.6 needed half a minute for the first event of its first run."""
    gateway = Gateway({"chat.send": {"runId": "r1", "status": "started"}})
    client = ForeignClient(gateway)
    await client.connect()
    await client.call("chat.send", {"sessionKey": MAIN, "message": "hello"})
    async with asyncio.timeout(5):
        frame = await anext(client.events())
    assert frame.event == "trace" and isinstance(frame.payload, dict)
    assert (frame.payload["kind"], frame.payload["data"]["message"]) == ("run.queued", "hello")


@pytest.mark.parametrize(
    ("request_", "patterns"),
    [
        ({"resolvedPath": "/usr/bin/uname"}, ["/usr/bin/uname"]),  # protocol 3
        ({"resolvedPath": "/usr/bin/uname", "allowedDecisions": ["allow-once", "deny"]}, None),
        ({"resolvedPath": "/bin/ls", "allowedDecisions": ["allow-always", "deny"]}, ["/bin/ls"]),
        ({"resolvedPath": None}, None),
    ],
)
def test_always_is_offered_where_the_gateway_takes_it(
    request_: dict[str, object], patterns: list[str] | None
) -> None:
    for answer in ({"items": [{"id": "a", "request": request_}]},
                   {"approvals": [{"id": "a", "request": request_}]}):  # fmt: skip
        rows = approvals(answer)["approvals"]
        assert isinstance(rows, list)
        always = rows[0]["request"].get("always")
        assert (always and always["patterns"]) == patterns


def test_a_version_that_says_nothing() -> None:
    assert status({"protocol": 4, "server": {"version": "2026.9.6"}}, {}, "nas")[
        "permissionMode"
    ] == "OpenClaw 2026.9.6"  # fmt: skip


def _turn(**user: object) -> list[dict[str, object]]:
    said = [{"type": "text", "text": "You said whale."}]
    return [
        {"role": "user", "content": "hello", "timestamp": 1, **user},
        {"role": "assistant", "content": said, "timestamp": 2,
         **({"__openclaw": {"id": "b", "runId": "r1"}} if user else {})},
    ]  # fmt: skip


@pytest.mark.parametrize("user", [{}, {"idempotencyKey": "r1:user"}], ids=["protocol3", "4"])
async def test_reading_again_says_nothing_twice(user: dict[str, object]) -> None:
    """After a lost line every turn stood there twice: protocol 3 does not name its runs."""
    gateway = Gateway({
        "chat.send": {"runId": "r1", "status": "started"},
        "chat.history": {"messages": _turn(**user)},
    })  # fmt: skip
    client, store = ForeignClient(gateway), Store(selected=MAIN)
    await client.connect()
    await client.call("chat.send", {"sessionKey": MAIN, "message": "hello"})
    start = {"stream": "lifecycle", "data": {"phase": "start"}, "ts": 1}
    gateway.inflow.put(EventFrame("agent", {"runId": "r1", "sessionKey": MAIN, **start}))
    final = {"content": [{"type": "text", "text": "You said whale."}]}
    gateway.inflow.put(EventFrame(
        "chat", {"runId": "r1", "sessionKey": MAIN, "state": "final", "message": final, "ts": 2}
    ))  # fmt: skip
    gateway.inflow.close()
    async for frame in client.events():
        store.apply(frame.event, frame.payload)
    for _ in range(2):
        said = [(b.kind, b.text) for b in store.conversation(MAIN).blocks if b.text]
        assert said == [(BlockKind.USER, "hello"), (BlockKind.TEXT, "You said whale.")]
        answer = await client.call("chat.history", {"sessionKey": MAIN})
        store.set_history(MAIN, answer)


def test_what_goes_on_is_not_replaced() -> None:
    assert history({"messages": _turn()}, going=True)["whole"] is False
    assert history({"messages": _turn()})["whole"] is True
