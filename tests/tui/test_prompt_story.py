"""View 2 on a real engine, through both kinds of client: two messages, a part, an edited file, the
next run, a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_engine.client.device import load_device
from claw_engine.client.foreign import ForeignClient
from claw_engine.client.gateways import Gateways
from claw_engine.client.websocket import Secret, WebSocketClient
from claw_tui.app import ClawApp
from claw_tui.screens.prompt import PromptScreen
from claw_tui.screens.replay import ReplayPage
from claw_tui.screens.runs import RunsPage
from tests.client.test_websocket import TOKEN, gateway
from tests.tui.support import Console
from tests.tui.test_story import LiveClock, say, story

MORE = "\nAlways say which file a number comes from, and never guess one.\n" * 3


async def said(c: Console, words: str, calls: int) -> None:
    """A message, and its run is over."""
    await c.app.action_type()
    await say(c, words)
    talk = c.app.store.conversation()
    await c.until(
        lambda: (
            sum(b.run.calls for b in talk.runs.values() if b.run) >= calls
            and talk.active_run() is None
        ),
        words,
    )


@pytest.mark.parametrize("kind", ["local", "remote"])
async def test_read_edit_and_compare(tmp_path: Path, kind: str) -> None:
    async with story(tmp_path, kind) as (c, _):
        app = c.app
        await said(c, "hello there", 1)
        await said(c, "read: AGENTS.md", 3)
        await app.action_view("2")
        page = app.page
        assert isinstance(page, PromptScreen)
        await c.until(lambda: page.request and page.request.call.cause == "tool_round", "newest")
        request = page.request
        assert request is not None and request.culprit is not None
        assert request.parts[request.culprit].kind == "tool_result"
        assert sum(part.bytes for part in request.parts) == request.call.body_bytes
        assert request.call.measured and page.recording

        async def editor(console: ClawApp, path: Path) -> None:
            path.write_text(path.read_text() + MORE)

        app.editor = editor
        place = next(n for n, part in enumerate(request.parts) if part.name == "AGENTS.md")
        page.cursor = place
        page.open_part(request.parts[place])
        await c.until(lambda: page.text.pieces and "How to work" in page.text.pieces[0].text)
        await c.pilot.press("e")
        await c.until(lambda: "tokens in the next run" in page.note, "edited")
        promised = int(page.note.partition("about ")[2].partition(" ")[0])
        await said(c, "and now?", 4)
        await app.action_view("2")
        page = app.page
        assert isinstance(page, PromptScreen)
        await c.until(lambda: page.request and page.request.call.id != request.call.id, "next")
        fresh = page.request
        assert fresh is not None and fresh.cache_break is not None
        broken = fresh.parts[fresh.cache_break]
        assert broken.name == "AGENTS.md" and broken.new
        assert fresh.more(broken) == pytest.approx(promised, abs=max(4, promised // 3))
        await c.pilot.press("equals_sign")
        await c.until(lambda: len(page.calls) == 4, "calls")
        await c.pilot.press("enter")
        await c.until(lambda: page.section == "compare" and page.lines and page.built, "compared")
        changed = [item for item in page.lines if item.op == "changed"]
        assert [item.pair.part.name for item in changed if item.pair] == ["AGENTS.md"]
        assert any(item.op == "+" and "which file a number" in item.text for item in page.lines)


@pytest.mark.parametrize("kind", ["local", "remote"])
async def test_past_runs_and_recording_switched_off(tmp_path: Path, kind: str) -> None:
    off = {"claw": {"trace": {"enabled": False}}}
    async with story(tmp_path, kind, None) as (c, _):
        await said(c, "read: AGENTS.md", 2)
        await c.app.action_view("runs")
        page = c.app.page
        assert isinstance(page, RunsPage)
        await c.until(lambda: page.runs, "listed")
        assert page.runs[0].title == "read: AGENTS.md" and page.runs[0].calls == 2
        await page.action_open()
        run = c.app.page
        assert isinstance(run, ReplayPage)
        await c.until(lambda: run.replay.events and run.replay.at_end, "opened")
        await c.until(lambda: "call 2 tool round" in c.screen_text(), "painted")
        live = [b.signature() for b in c.app.store.conversation().blocks]
        past = [b.signature() for b in run.replay.talk.blocks if b.call is None]
        assert past == live, "it reads as it did live"
        await run.action_prompt()
        prompt = c.app.page
        assert isinstance(prompt, PromptScreen)
        await c.until(lambda: prompt.request, "its prompt")
        assert prompt.request and prompt.request.call.number == 2
    async with story(tmp_path / "off", kind, off) as (c, _):
        await said(c, "hello", 1)
        await c.app.action_view("2")
        await c.until(lambda: "claw config set claw.trace.enabled true" in c.screen_text(), "off")


async def test_over_the_port_of_another_computer(tmp_path: Path) -> None:
    """A WebSocket client reads everything; files are edited where they are."""
    device = load_device(tmp_path / "device.json")
    async with gateway(tmp_path) as (_, where):
        known = Gateways(tmp_path / "gateways.json")
        client = ForeignClient(WebSocketClient(where, device, known, Secret(TOKEN)))
        clock = LiveClock()
        app = ClawApp(client, clock=clock, local=False)
        async with app.run_test(size=(80, 24)) as pilot:
            c = Console(app, client, clock, pilot)  # type: ignore[arg-type]  # a real client here
            await c.until(lambda: app.store.conversation().loaded, "history")
            await said(c, "read: AGENTS.md", 2)
            await app.action_view("2")
            page = app.page
            assert isinstance(page, PromptScreen)
            await c.until(lambda: page.request and page.request.call.number == 2, "newest")
            request = page.request
            assert request is not None
            page.cursor = next(n for n, p in enumerate(request.parts) if p.name == "AGENTS.md")
            await pilot.press("enter")
            await c.until(lambda: page.text.pieces and "How to work" in page.text.pieces[0].text)
            await pilot.press("e")
            await c.until(lambda: "on another computer" in c.screen_text(), "refused")
