"""What the console sees of a gateway that is not ours; each case was seen with a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from claw_engine.client.foreign import ForeignClient
from claw_engine.client.foreign_shapes import approvals, status
from claw_engine.client.inflow import Inflow
from claw_engine.protocol.frames import EventFrame

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
