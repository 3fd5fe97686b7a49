"""A run in a file: what is refused, and that it opens like one of a running engine."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from claw_engine.client.base import ClientError
from claw_tui.app import ClawApp
from claw_tui.recorded import NoRecording, load
from claw_tui.screens.prompt import PromptScreen
from claw_tui.screens.replay import ReplayPage
from claw_tui.store.wire import maybe_num, num
from claw_tui.store.words import clock, day
from tests.support.engines import Operator, engine_on
from tests.tui.fake_client import FakeClock
from tests.tui.support import SMALL, Console


@pytest.fixture
async def exported(tmp_path: Path) -> Path:
    """A run of a real engine, as its own verb exports it."""
    state = tmp_path / "engine"
    async with (
        engine_on(state) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.ended(await operator.say("read: AGENTS.md"))
    target = state / "run.json"
    verb = [sys.executable, "-m", "claw_engine.cli", "trace", "export", "--raw"]
    told = await asyncio.create_subprocess_exec(
        *verb, "--out", str(target), "--state-dir", str(state), stdout=asyncio.subprocess.DEVNULL
    )
    assert await told.wait() == 0
    return target


def _run(more: bytes) -> bytes:
    return b'{"format": "claw-trace", "version": 1, "run": {"id": "r", %s}}' % more


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"no json", "is no JSON"),
        (b"[]", "is no exported run"),
        (b'{"format": "claw-trace", "version": 1}', "is no exported run"),
        (b'{"format": "other", "run": {"id": "r"}}', "is no exported run"),
        (b'{"format": "claw-trace", "version": 9, "run": {"id": "r"}}', "a newer claw"),
        (b"\xff\xfe\x00", "is no JSON"),
        (_run(b'"startedMs": 1e25'), "is no exported run"),
        (_run(b'"startedMs": 1e999'), "is no exported run"),
        (_run(b'"startedMs": NaN'), "is no exported run"),
        (_run(b'"endedMs": -1'), "is no exported run"),
        (_run(b'"x": 1}, "events": [{"ts": 1e25}], "y": {"x": 1'), "is no exported run"),
        (_run(b'"x": 1}, "calls": [{"startedMs": 253402300800000}], "y": {'), "is no exported run"),
        (b"[" * 200_000, "is no exported run"),
    ],
)
def test_what_is_no_exported_run(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(NoRecording, match=words):
        load(path)


def test_what_cannot_be_read_to_an_end_is_not_begun(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(NoRecording, match="is no exported run"):
            load(path)


def test_times_that_no_date_has_are_shown_as_unknown() -> None:
    for ms in (10**25, 10**400, 253_402_300_800_000 * 2):
        assert clock(ms) == day(ms) == ""
    assert num({"a": float("nan")}, "a", 3) == num({"a": float("inf")}, "a", 3) == 3
    assert maybe_num({"a": float("nan")}, "a") is None


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoRecording, match="cannot be read"):
        load(tmp_path / "nothing")


async def test_a_half_empty_file_answers_what_it_can(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    run = {"format": "claw-trace", "version": 1, "run": {"id": "r", "sessionKey": "s"}}
    path.write_text(json.dumps({**run, "calls": [None, {"id": "r/c1", "parts": "x"}]}))
    client = load(path)
    assert (await client.call("trace.call", {}))["parts"] == []
    assert (await client.call("trace.search", {"callId": "r/c1", "text": "a"}))["total"] == 0
    same = {"a": "r/c1", "b": "r/c1"}
    assert (await client.call("trace.compare", same))["parts"] == []
    for method, params in (("trace.call", {"callId": "r/c2"}), ("chat.send", {}),
                           ("trace.part", {"callId": "r/c1", "partId": "p"})):  # fmt: skip
        with pytest.raises(ClientError):
            await client.call(method, params)
    await client.close()
    assert [frame async for frame in client.events()] == []


async def test_it_opens_at_its_end_and_everything_can_be_read(exported: Path) -> None:
    client, clock = load(exported), FakeClock()
    app = ClawApp(client, clock=clock, local=False, replay=client.run_id)
    async with app.run_test(size=SMALL) as pilot:
        c = Console(app, client, clock, pilot)  # type: ignore[arg-type]  # a file, not a fake

        async def press(*keys: str) -> None:
            await pilot.press(*keys)
            await pilot.pause()

        await c.until(lambda: isinstance(app.page, ReplayPage) and app.page.replay.at_end, "run")
        await c.until(lambda: "read: AGENTS.md" in c.screen_text(), "painted")
        text = c.screen_text()
        assert "call 2 tool round" in text and "run.json" in text and "read-only" in text
        await press("escape")
        await c.until(lambda: app.screen is app.main, "the conversation")
        await c.until(lambda: "read: AGENTS.md" in c.screen_text(), "as it was")
        await press("escape", "2")
        await c.until(lambda: isinstance(app.page, PromptScreen) and app.page.request, "prompt")
        page = app.page
        assert isinstance(page, PromptScreen) and page.request
        assert page.request.call.cause == "tool_round" and page.request.grown > 0
        await press("enter")
        await c.until(lambda: page.text.pieces, "a part")
        await c.until(lambda: "AGENTS.md" in c.screen_text(), "its text")
        await press("escape", "equals_sign")
        await c.until(lambda: page.calls, "calls")
        await press("enter")
        await c.until(lambda: page.section == "compare" and page.lines, "compared")
        states = {pair.state for pair in page.comparison.pairs} if page.comparison else set()
        assert states == {"same", "changed", "added"} or states == {"same", "added"}
        await press("escape", "slash")
        await c.until(lambda: app.screen is not page, "asks")
        await press(*"how to work", "enter")
        await c.until(lambda: page.section == "matches" and page.matches, "found")
        await press("escape")
        if page.section != "parts":
            await press("f")
        await c.until(lambda: page.section == "parts" and page.request, "parts")
        head = "\n".join(c.screen_text().split("\n")[:4])
        assert " recorded" in head and " live" not in head
        await press("1", "escape", "i")
        await c.until(lambda: "can only be read" in c.screen_text(), "refused")
        assert "i type" not in c.screen_text()
        await press("q")
        await c.until(lambda: "nothing goes on" in c.screen_text(), "asked")
        assert "stop the engine" not in c.screen_text()
        await press("s")
        assert app.is_running and not app._exit


def test_other_words_on_the_command_line_are_refused() -> None:
    for words in (["reply", "x"], ["replay"], ["replay", "a", "b"]):
        done = subprocess.run([sys.executable, "-m", "claw_tui", *words], capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, check=False)  # fmt: skip
        assert done.returncode == 2 and "replay FILE" in done.stderr
