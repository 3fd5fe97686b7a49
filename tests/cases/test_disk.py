"""Cases of the state disk, on a disk that is really full where this account may mount one."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw_engine.errors import ClawError
from claw_engine.world import World, real_world
from tests.support.engines import Operator, engine_on
from tests.support.fakes import FaultyDisk

SIZE = 2 * 1024 * 1024
FULL = {"tools": {"exec": {"security": "full", "ask": "off"}}}


@dataclass
class Small:
    """A state disk that fills up: a tmpfs of 2 MB, or writes that are refused."""

    state: Path
    disk: FaultyDisk | None

    def world(self) -> World | None:
        return None if self.disk is None else replace(real_world(), disk=self.disk)

    def fill(self) -> None:
        """Take what is left, to the last byte."""
        if self.disk is not None:
            self.disk.fail_next(short=7)
            return
        with (self.state / "ballast").open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError as error:
                    assert error.errno == errno.ENOSPC

    def free(self) -> None:
        if self.disk is not None:
            self.disk.heal()
        else:
            (self.state / "ballast").unlink()


@pytest.fixture(params=["tmpfs", "refused writes"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Small]:
    state = tmp_path / "state"
    state.mkdir()
    if request.param != "tmpfs":
        yield Small(state, FaultyDisk())
        return
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", str(state)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a tmpfs")
    yield Small(state, None)
    subprocess.run(["umount", "-l", str(state)], check=True)


def whole_lines(path: Path) -> list[dict[str, object]]:
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


async def test_a_full_state_disk_is_said_and_harms_nothing(small: Small) -> None:
    """DL-01: full in mid turn, a tool that only says so, then space again."""
    async with (
        engine_on(small.state, world=small.world(), config=FULL) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.ended(await operator.say("think: kept words"))
        folder = small.state / "agents" / "main" / "sessions"
        (transcript,) = folder.glob("*.jsonl")
        index = json.loads((folder / "sessions.json").read_bytes())
        old = transcript.read_bytes()

        # Longer than what is left of the transcript's last block.
        run = await operator.say("long: 1500 500")
        await operator.event("trace", lambda p: p["runId"] == run and p["kind"] == "text")
        small.fill()
        end = await operator.ended(run)
        assert end["status"] == "failed"
        assert "state disk is full" in end["error"]["title"]
        assert "message is kept" in end["error"]["hint"]
        with pytest.raises(ClawError, match="state disk is full") as caught:
            # Longer than what is left of the journal's last block and the lock's, now free.
            await operator.say("think: refused words " + "x" * 12_000)
        assert caught.value.retryable
        assert transcript.read_bytes().startswith(old)
        whole_lines(transcript)
        assert index.keys() <= json.loads((folder / "sessions.json").read_bytes()).keys()
        assert not [p for p in folder.iterdir() if p.name.endswith(".tmp")]

        small.free()
        end = await operator.ended(await operator.say("think: space again"))
        assert end["status"] == "done"
        notices = len([f for f in operator.seen if f.event == "notice"])

        # A tool that says so has its own troubles.
        words = "cp: No space left on device"
        run = await operator.say(f"run: echo '{words}' >&2; exit 1")
        tool = await operator.trace(run, "tool.ended")
        assert (tool["exitCode"], words in tool["text"]) == (1, True)
        assert (await operator.ended(run))["status"] == "done"
        assert len([f for f in operator.seen if f.event == "notice"]) == notices

    users = [entry["message"] for entry in whole_lines(transcript) if entry["type"] == "message"]
    text = json.dumps(users)
    for kept in ("kept words", "long: 1500 500", "space again", words):
        assert kept in text
    assert "refused words" not in text
    assert transcript.read_bytes().startswith(old)
    for path in (small.state / "inbox").glob("*.jsonl"):
        whole_lines(path)
