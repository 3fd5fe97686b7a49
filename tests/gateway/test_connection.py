"""The state machine of a connection, with tables of bytes in and actions out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.gateway.close import Close
from claw_engine.gateway.connection import (
    MAX_HANDSHAKE,
    Action,
    Admit,
    Connection,
    End,
    Ignored,
    Opened,
    Phase,
    Send,
    Serve,
)
from claw_engine.gateway.handshake import Refusal
from claw_engine.gateway.lines import LineSplitter
from claw_engine.gateway.peer import Identity
from claw_engine.protocol.frames import ResponseFrame

GOLDEN = Path(__file__).parents[1] / "golden" / "frames"

CONNECT: dict[str, object] = {
    "minProtocol": 3,
    "maxProtocol": 3,
    "client": {"id": "cli", "version": "1", "platform": "linux", "mode": "cli"},
    "role": "operator",
    "scopes": ["operator.read"],
    "caps": [],
    "proof": "p",
}


class Machine:
    """A connection whose frames are lines, let in by whoever says `p`."""

    def __init__(self, max_frame: int = 1 << 20) -> None:
        self.core = Connection("n", 1, max_frame=max_frame)
        self.lines = LineSplitter()

    @property
    def phase(self) -> Phase:
        return self.core.phase

    def start(self) -> Action:
        return self.core.start()

    def handshake_timeout(self) -> list[Action]:
        return self.core.handshake_timeout()

    def receive(self, data: bytes) -> Iterator[Action]:
        for line in self.lines.feed(data):
            for action in self.core.message(line):
                if isinstance(action, Admit):
                    yield from self._admit(action)
                else:
                    yield action
        if self.lines.rest > self.core.limit:
            yield from self.core.too_large()

    def _admit(self, asked: Admit) -> Iterator[Action]:
        if asked.params.proof != "p":
            yield from self.core.refused(Refusal(Close.UNAUTHORIZED, "unauthorized"))
        else:
            client = asked.params.client
            identity = Identity(client.id, client.mode, protocol=asked.protocol)
            yield self.core.admitted(identity)


def connection(max_frame: int = 1 << 20) -> Machine:
    return Machine(max_frame)


def request(method: str, params: object = None, id_: str = "1") -> bytes:
    frame = {"type": "req", "id": id_, "method": method, "params": params or {}}
    return json.dumps(frame).encode() + b"\n"


def opened(max_frame: int = 1 << 20) -> Machine:
    made = connection(max_frame)
    list(made.receive(request("connect", CONNECT)))
    assert made.phase is Phase.OPEN
    return made


def error_of(action: Action) -> str:
    assert isinstance(action, Send) and isinstance(action.frame, ResponseFrame)
    assert action.frame.error is not None
    return action.frame.error.message


def test_challenge_comes_first() -> None:
    action = connection().start()
    assert isinstance(action, Send)
    golden = json.loads((GOLDEN / "error.first_frame_not_connect.json").read_text())
    ours = action.frame.to_json()["payload"]
    assert isinstance(ours, dict)
    # Protocol 4 adds what it can do; clients of 3 read over it.
    assert {*golden["frames"][0]["frame"]["payload"], "capabilities"} == set(ours)


def test_connect_opens_and_later_frames_of_the_same_bytes_are_served() -> None:
    made = connection()
    actions = list(made.receive(request("connect", CONNECT) + request("status", id_="2")))
    assert isinstance(actions[0], Opened)
    assert isinstance(actions[1], Serve)
    assert actions[1].request.method == "status"


@pytest.mark.parametrize(
    ("data", "said", "why"),
    [
        (request("health"), "invalid handshake: first request must be connect", Close.HANDSHAKE),
        (b'{"type":"event","event":"x"}\n', None, Close.INVALID_FRAME),
        (b"[1,2]\n", None, Close.INVALID_FRAME),
        (b"garbage\n", None, Close.NORMAL),
        (b"\xff\xfe\x00\n", None, Close.NORMAL),
        (b"[" * 60_000 + b"\n", None, Close.NORMAL),
        (
            request("connect", {**CONNECT, "minProtocol": 5, "maxProtocol": 9}),
            "protocol mismatch",
            Close.PROTOCOL,
        ),
        (request("connect", {**CONNECT, "role": "node"}), "invalid role", Close.HANDSHAKE),
        (request("connect", {**CONNECT, "proof": "no"}), "unauthorized", Close.UNAUTHORIZED),
        (
            request("connect", {**CONNECT, "bogus": 1}),
            "invalid connect params: at root: unexpected property 'bogus'",
            Close.HANDSHAKE,
        ),
        (b"x" * (MAX_HANDSHAKE + 1), None, Close.TOO_LARGE),
        (b"x" * (MAX_HANDSHAKE + 1) + b"\n", None, Close.TOO_LARGE),
    ],
)
def test_a_bad_first_frame_ends_the_connection(data: bytes, said: str | None, why: Close) -> None:
    made = connection()
    *before, end = made.receive(data)
    assert isinstance(end, End)
    assert end.why is why
    assert [error_of(action) for action in before] == ([said] if said else [])
    assert made.phase is Phase.CLOSED
    assert list(made.receive(request("connect", CONNECT))) == []


def test_handshake_errors_read_as_captured() -> None:
    for name, sent in (
        ("error.first_frame_not_connect", request("health")),
        ("error.first_frame_wrong_shape", b'{"type":"event","event":"x"}\n'),
    ):
        frames = json.loads((GOLDEN / f"{name}.json").read_text())["frames"]
        *_, end = connection().receive(sent)
        assert isinstance(end, End)
        assert frames[-1]["frame"] == {"code": end.why.code, "reason": end.reason}


def test_protocol_mismatch_names_the_expected_one() -> None:
    golden = json.loads((GOLDEN / "handshake.old_proto.json").read_text())["frames"]
    sent = request("connect", {**CONNECT, "minProtocol": 1, "maxProtocol": 2})
    said, end = connection().receive(sent)
    assert isinstance(said, Send)
    assert isinstance(end, End)
    (captured,) = [f["frame"] for f in golden if f["frame"].get("type") == "res"]
    ours = said.frame.to_json()
    assert ours["error"]["message"] == captured["error"]["message"]  # type: ignore[index]  # JSON
    assert ours["error"]["details"]["expectedProtocol"] == 3  # type: ignore[index]  # JSON
    assert end.why.code == 1002


@pytest.mark.parametrize(
    ("data", "id_"),
    [
        (b'{"type":"req","id":"","method":"health"}\n', ""),
        (b'{"type":"req","method":"health"}\n', "invalid"),
        (b'{"type":"req","id":"7"}\n', "7"),
        (b'{"type":"event","event":"x"}\n', "invalid"),
        (b"[1, 2]\n", "invalid"),
    ],
)
def test_a_malformed_frame_later_is_answered_and_the_connection_stays(
    data: bytes, id_: str
) -> None:
    made = opened()
    (action,) = made.receive(data)
    assert error_of(action).startswith("invalid request frame: ")
    assert isinstance(action, Send)
    assert isinstance(action.frame, ResponseFrame)
    assert action.frame.id == id_
    assert made.phase is Phase.OPEN


def test_no_json_later_is_ignored() -> None:
    made = opened()
    for line in (b"not json\n", b"[" * 100_000 + b"\n", b'{"a":NaN}\n'):
        (action,) = made.receive(line)
        assert isinstance(action, Ignored)
    assert isinstance(next(iter(made.receive(request("status")))), Serve)


@pytest.mark.parametrize("tail", [b"", b"\n"])
def test_a_frame_over_the_limit_closes_with_1009(tail: bytes) -> None:
    made = opened(max_frame=100_000)
    assert list(made.receive(b"x" * 100_000)) == []
    (end,) = made.receive(b"x" + tail)
    assert isinstance(end, End)
    assert end.why.code == 1009


def test_handshake_timeout_only_before_connect() -> None:
    assert opened().handshake_timeout() == []
    (end,) = connection().handshake_timeout()
    assert isinstance(end, End)
    assert end.why.code == 1000


@given(st.data())
def test_how_bytes_are_cut_does_not_matter(data: st.DataObject) -> None:
    whole = b"".join(
        [request("connect", CONNECT), b"\n", b"junk\r\n", request("a"), request("b", {"x": "é"})]
    )
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=8))
    edges = [0, *sorted(cuts), len(whole)]
    made = connection()
    cut = [a for lo, hi in pairwise(edges) for a in made.receive(whole[lo:hi])]
    assert cut == list(connection().receive(whole))


@given(st.binary(max_size=400))
def test_any_bytes_leave_a_state(data: bytes) -> None:
    for made in (connection(), opened()):
        actions = list(made.receive(data + b"\n"))
        assert (made.phase is Phase.CLOSED) == any(isinstance(a, End) for a in actions)
