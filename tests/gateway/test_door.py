"""The door under hostile input, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from claw_engine.events import Notice
from claw_engine.gateway import door_key, door_path
from claw_engine.gateway.confinement import descends_from_run
from claw_engine.gateway.door_path import DoorError
from claw_engine.paths import StateDir
from claw_engine.protocol.trace import TraceKind
from tests.gateway.rig import Rig, Tracer
from tests.support.fakes import FakeClock, settle


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path, soft_limit=200_000, hard_limit=400_000)
    await made.open()
    yield made
    await made.close()


OPEN: list[Wire] = []


@pytest.fixture(autouse=True)
async def _hang_up() -> AsyncIterator[None]:
    yield
    while OPEN:
        await OPEN.pop().close()


class Wire:
    """A bare client: lines out, lines in; closed when its test ends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        OPEN.append(self)

    @classmethod
    async def open(cls, rig: Rig) -> Wire:
        path = str(rig.state_dir.door_sock)
        return cls(*await asyncio.open_unix_connection(path, limit=1 << 26))

    async def frame(self) -> dict[str, object] | None:
        async with asyncio.timeout(10):
            line = await self.reader.readline()
        return json.loads(line) if line else None

    async def rest(self) -> list[dict[str, object]]:
        frames = []
        while (frame := await self.frame()) is not None:
            frames.append(frame)
        return frames

    def ask(self, method: str, params: object = None, id_: str = "1") -> None:
        frame = {"type": "req", "id": id_, "method": method, "params": params or {}}
        self.writer.write(json.dumps(frame).encode() + b"\n")

    async def hello(self, rig: Rig, key: bytes | None = None) -> dict[str, object]:
        challenge = await self.frame()
        assert challenge is not None
        nonce = challenge["payload"]["nonce"]  # type: ignore[index]  # JSON
        key = rig.state_dir.door_key.read_bytes() if key is None else key
        proof = hmac.new(key, nonce.encode(), hashlib.sha256).hexdigest()
        self.ask("connect", {
            "minProtocol": 3, "maxProtocol": 3,
            "client": {"id": "test", "version": "1", "platform": "linux", "mode": "test"},
            "scopes": ["operator.admin"], "caps": [], "proof": proof,
        })  # fmt: skip
        answer = await self.frame()
        assert answer is not None
        return answer

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def sessions_are(rig: Rig, count: int) -> None:
    """A closing client has one real second for its last words: there is no event to wait on."""
    async with asyncio.timeout(10):
        while rig.gateway.door.sessions != count:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)


async def still_serves(rig: Rig) -> None:
    wire = await Wire.open(rig)
    assert (await wire.hello(rig))["ok"] is True
    await wire.close()


async def test_files_are_private(rig: Rig) -> None:
    for path in (rig.state_dir.door_sock, rig.state_dir.door_key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(rig.state_dir.door_key.read_bytes()) == 32


async def test_a_wrong_proof_is_refused_and_learns_nothing(rig: Rig) -> None:
    wire = await Wire.open(rig)
    answer = await wire.hello(rig, key=b"x" * 32)
    assert answer["ok"] is False
    assert answer["error"]["details"]["code"] == "DOOR_PROOF_INVALID"  # type: ignore[index]  # JSON
    (last,) = await wire.rest()
    assert last["payload"]["code"] == 1008  # type: ignore[index]  # JSON
    await wire.close()
    await still_serves(rig)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff garbage\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b'{"type":"req","id":"1","method":"health"}\n',
        b"A" * 200_000,
        b"[" * 50_000 + b"\n",
    ],
)
async def test_a_stranger_is_closed_and_others_are_served(rig: Rig, data: bytes) -> None:
    wire = await Wire.open(rig)
    wire.writer.write(data)
    frames = await wire.rest()
    assert frames[0]["event"] == "connect.challenge"
    assert not any(frame.get("ok") for frame in frames)
    await wire.close()
    await still_serves(rig)


async def test_a_silent_peer_is_closed_after_ten_seconds(rig: Rig) -> None:
    clock = rig.world.clock
    assert isinstance(clock, FakeClock)
    wire = await Wire.open(rig)
    await wire.frame()
    wire.writer.write(b'{"type":"req"')
    await clock.advance(9.9)
    assert rig.gateway.door.sessions == 1
    await clock.advance(0.2)
    (last,) = await wire.rest()
    assert last["payload"] == {"code": 1000, "reason": "handshake timeout"}
    await wire.close()


async def test_a_26_mib_line_closes_with_1009(rig: Rig) -> None:
    wire = await Wire.open(rig)
    await wire.hello(rig)
    chunk = b"x" * (1 << 20)
    try:
        for _ in range(26):
            wire.writer.write(chunk)
            await wire.writer.drain()
    except OSError:
        pass  # closed while we were still writing: what it is for
    try:
        frames = await wire.rest()
        assert frames[-1]["payload"]["code"] == 1009  # type: ignore[index]  # JSON
    except OSError:
        pass
    await wire.close()
    await still_serves(rig)


async def test_a_client_that_vanishes_mid_frame_leaves_nothing(rig: Rig) -> None:
    wire = await Wire.open(rig)
    await wire.hello(rig)
    wire.writer.write(b'{"type":"req","id":"1","me')
    wire.writer.transport.abort()
    await sessions_are(rig, 0)
    assert rig.gateway.broadcaster.peers == []


async def test_a_client_that_hangs_up_does_not_undo_its_message(rig: Rig) -> None:
    rig.intake.hold = asyncio.Event()
    wire = await Wire.open(rig)
    await wire.hello(rig)
    wire.ask("chat.send", {"sessionKey": "main", "message": "hi", "idempotencyKey": "k"})
    wire.ask("health", id_="2")
    assert (await wire.frame() or {})["id"] == "2"
    wire.writer.transport.abort()
    await sessions_are(rig, 0)
    rig.intake.hold.set()
    await settle()
    assert [m.run_id for m in rig.intake.submitted] == ["k"]


async def test_two_answers_share_an_id(rig: Rig) -> None:
    wire = await Wire.open(rig)
    await wire.hello(rig)
    wire.ask("agent", {"message": "hi", "idempotencyKey": "k"}, id_="7")
    first = await wire.frame()
    assert first is not None
    assert set(first["payload"]) == {"runId", "status", "acceptedAt"}  # type: ignore[call-overload]  # JSON
    rig.intake.finish("k", "done")
    frames = [await wire.frame()]
    while (frames[-1] or {}).get("type") != "res":
        frames.append(await wire.frame())
    assert (frames[-1] or {})["id"] == "7"
    assert (frames[-1] or {})["payload"]["summary"] == "completed"  # type: ignore[index]  # JSON
    await wire.close()


async def test_a_slow_reader_is_closed_and_the_fast_one_sees_every_number(rig: Rig) -> None:
    slow, fast = await Wire.open(rig), await Wire.open(rig)
    await slow.hello(rig)
    await fast.hello(rig)
    slow.reader._transport.pause_reading()  # type: ignore[attr-defined]  # a client that stops
    seen: list[dict[str, object]] = []
    for n in range(60):
        rig.bus.publish(Notice(f"n{n}", "info", "x" * 20_000))
        await settle()
        frame = await fast.frame()
        assert frame is not None
        seen.append(frame)
    assert [f["seq"] for f in seen] == list(range(1, 61))
    await sessions_are(rig, 1)
    slow.reader._transport.resume_reading()  # type: ignore[attr-defined]  # it comes back
    frames = await slow.rest()
    numbers = [f["seq"] for f in frames if "seq" in f]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) < 60
    await slow.close()
    await fast.close()


async def test_trace_deltas_for_a_slow_reader_merge_and_nothing_is_lost(rig: Rig) -> None:
    wire = await Wire.open(rig)
    await wire.hello(rig)
    wire.ask("trace.subscribe")
    await wire.frame()
    wire.reader._transport.pause_reading()  # type: ignore[attr-defined]  # a client that stops
    t = Tracer("r")
    for n in range(5000):
        rig.bus.publish(t(TraceKind.TEXT, callId="c", delta=f"{n},"))
        if n % 50 == 0:
            await settle(3)
    rig.bus.publish(t(TraceKind.RUN_ENDED, status="done", text="", error=None))
    await settle()
    wire.reader._transport.resume_reading()  # type: ignore[attr-defined]  # it comes back
    text, count = "", 0
    while True:
        frame = await wire.frame()
        assert frame is not None
        if frame.get("event") != "trace":
            continue
        payload = frame["payload"]
        if payload["kind"] == "run.ended":  # type: ignore[index]  # JSON
            break
        count += 1
        text += payload["data"]["delta"]  # type: ignore[index]  # JSON
    assert text == "".join(f"{n}," for n in range(5000))
    assert count < 5000
    await wire.close()


async def test_a_run_s_child_gets_health_only(rig: Rig) -> None:
    script = (
        "import sys; from pathlib import Path; from claw_engine.client.sync import *\n"
        "with SyncClient(Path(sys.argv[1])) as c:\n"
        "    print(c.hello['features'], c.hello['snapshot'].get('model'))\n"
        "    print(c.call('health')['ok'])\n"
        "    try: c.call('status')\n"
        "    except CallFailed as e: print(e.title)\n"
    )
    for env in ({"CLAW_RUN_ID": "r1"}, {}):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, str(rig.state_dir.root),
            env={**os.environ, **env}, stdout=subprocess.PIPE,
        )  # fmt: skip
        out, _ = await child.communicate()
        if env:
            assert out.decode().splitlines() == [
                "{'methods': ['health'], 'events': []} None",
                "True",
                "status is not for processes that an agent run started",
            ]
        else:
            assert "status" in out.decode().splitlines()[0]


def test_ancestors_are_searched(tmp_path: Path) -> None:
    def process(pid: int, parent: int, environ: bytes, name: str = "sh") -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "environ").write_bytes(environ)
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1")

    process(10, 1, b"A=1\0")
    process(20, 10, b"CLAW_RUN_ID=r\0B=2\0")
    process(30, 20, b"", name="a) S 99 (b")
    process(40, 10, b"X_CLAW_RUN_ID=r\0")
    assert descends_from_run(30, 10, tmp_path)
    assert descends_from_run(20, 10, tmp_path)
    assert not descends_from_run(40, 10, tmp_path)
    assert not descends_from_run(30, 30, tmp_path)
    assert not descends_from_run(0, 10, tmp_path)
    assert not descends_from_run(777, 10, tmp_path)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory whose socket fits into a socket address, unlike pytest's own on some runs."""
    with tempfile.TemporaryDirectory(prefix="claw") as folder:
        yield Path(folder)


async def test_a_stale_socket_is_replaced_and_a_file_is_not(short_path: Path) -> None:
    tmp_path = short_path
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "claw.sock"))
    stale.close()
    rig = Rig(tmp_path)
    assert await rig.open() == tmp_path / "claw.sock"
    await still_serves(rig)
    await rig.close()
    assert not (tmp_path / "claw.sock").exists()
    (tmp_path / "claw.sock").write_text("precious")
    env_runtime = tmp_path / "run"
    env_runtime.mkdir()
    places = list(door_path.candidates(
        StateDir(tmp_path), {"XDG_RUNTIME_DIR": str(env_runtime)}, os.geteuid(), tmp_path
    ))  # fmt: skip
    assert places[0] == tmp_path / "claw.sock"
    assert places[1].parent == env_runtime
    assert (tmp_path / "claw.sock").read_text() == "precious"


def test_a_long_path_goes_elsewhere_and_a_foreign_directory_is_refused(tmp_path: Path) -> None:
    state = StateDir(tmp_path / ("x" * 120))
    state.ensure()
    (only,) = door_path.candidates(state, {}, os.geteuid(), tmp_path)
    assert only.parent == tmp_path / f"claw-{os.geteuid()}"
    assert stat.S_IMODE(only.parent.stat().st_mode) == 0o700
    only.parent.chmod(0o755)
    with pytest.raises(DoorError, match="not a private directory"):
        list(door_path.candidates(state, {}, os.geteuid(), tmp_path))


def test_the_key_is_kept_mended_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "door.key"
    key = door_key.load_or_create(path)
    assert door_key.load_or_create(path) == key
    path.write_bytes(b"short")
    assert len(door_key.load_or_create(path)) == 32
    path.chmod(0o644)
    with pytest.raises(DoorError, match="can be read by others"):
        door_key.load_or_create(path)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DoorError, match="Cannot read"):
        door_key.load_or_create(path)


def test_a_proof_that_is_no_ascii_is_wrong() -> None:
    assert not door_key.proves(b"k" * 32, "n", "é\ud800")
