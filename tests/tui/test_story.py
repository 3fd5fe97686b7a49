"""The whole story on a real engine, through both kinds of client: type, watch, approve, read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from claw_engine.client.base import Client
from claw_engine.client.remote import RemoteClient
from claw_tui.app import ClawApp
from claw_tui.store.conversation import Conversation
from claw_tui.store.history import blocks_from_history
from claw_tui.store.store import Link
from claw_tui.store.wire import objs
from tests.support.engines import engine_on
from tests.tui.fake_client import FakeClock
from tests.tui.support import Console

MAIN = "agent:main:main"


class LiveClock(FakeClock):
    """The console's quiet half second is moved by hand; ages follow the engine's clock."""

    def now_ms(self) -> int:
        import time

        return time.time_ns() // 1_000_000


@asynccontextmanager
async def story(
    tmp_path: Path, kind: str, config: dict[str, object] | None = None
) -> AsyncIterator[tuple[Console, Client]]:
    async with engine_on(tmp_path / "state", config=config) as engine:
        client: Client
        if kind == "local":
            client = engine.local_client(strict=True)
        else:
            client = RemoteClient(tmp_path / "state")
        clock = LiveClock()
        app = ClawApp(client, clock=clock)
        async with app.run_test(size=(120, 40)) as pilot:
            c = Console(app, client, clock, pilot)  # type: ignore[arg-type]  # a real client here
            await c.until(lambda: app.store.link is Link.CONNECTED, "connected")
            await c.until(lambda: app.store.conversation().loaded, "history")
            yield c, client


async def say(c: Console, text: str) -> None:
    c.app.main.composer.insert(text)
    await c.pilot.press("enter")


@pytest.mark.parametrize("kind", ["local", "remote"])
async def test_type_approve_and_read(tmp_path: Path, kind: str) -> None:
    async with story(tmp_path, kind) as (c, client):
        proof = tmp_path / "proof"
        await say(c, f"run: touch {proof}; echo done-$((40+2))")
        await c.until(lambda: c.app.store.queue.pending, "a request")
        await c.pilot.press("f2")
        await c.until(lambda: c.app.keeper.state.written is not None, "card written")
        assert not proof.exists()
        c.clock.advance(0.6)
        await c.pilot.press("y")
        talk = c.app.store.conversation()
        await c.until(lambda: talk.blocks and talk.active_run() is None, "the end")
        assert proof.exists()
        await c.pilot.press("escape")
        await c.until(lambda: "done-42" in c.screen_text(), "the output on the screen")
        live = [block.signature() for block in talk.blocks]
        answer = await client.call("chat.history", {"sessionKey": MAIN, "limit": 200})
        fresh = Conversation(MAIN)
        fresh.reload(blocks_from_history(objs(answer["messages"])))
        assert [block.signature() for block in fresh.blocks] == live


@pytest.mark.parametrize("kind", ["local", "remote"])
async def test_stop_ends_a_long_answer(tmp_path: Path, kind: str) -> None:
    async with story(tmp_path, kind) as (c, _client):
        await say(c, "long: 100000 200")
        talk = c.app.store.conversation()
        await c.until(lambda: any(b.open and b.text for b in talk.blocks), "streaming")
        await c.pilot.press("ctrl+c")
        await c.until(lambda: talk.active_run() is None, "stopped")
        assert talk.blocks[-1].text == "stopped"


async def test_a_second_console_joins_in_the_middle(tmp_path: Path) -> None:
    async with story(tmp_path, "remote") as (c, _):
        await say(c, "run: echo one")
        await c.until(lambda: c.app.store.queue.pending, "a request")
        clock = LiveClock()
        other = ClawApp(RemoteClient(tmp_path / "state"), clock=clock)
        async with other.run_test(size=(80, 24)) as pilot:
            d = Console(other, None, clock, pilot)  # type: ignore[arg-type]  # not used here
            await d.until(lambda: other.store.queue.pending, "the same request")
            first = [b.signature() for b in c.app.store.conversation().blocks]
            await d.until(lambda: other.store.conversation().loaded, "history")
            await d.until(
                lambda: [b.signature() for b in other.store.conversation().blocks] == first
            )
            await pilot.press("f2")
            await d.until(lambda: other.keeper.state.written is not None, "card written")
            clock.advance(0.6)
            await pilot.press("n")
            await d.until(lambda: not other.store.queue.pending)
        talk = c.app.store.conversation()
        await c.until(lambda: talk.active_run() is None, "the end")
        tools = [b.tool for b in talk.blocks if b.tool is not None]
        assert tools[0].decision == "denied"


async def settle_in(mode: str, c: Console, client: Client) -> list[str]:
    """Play one queue mode to its end; the kinds of block that must be left."""
    talk, queue = c.app.store.conversation(), c.app.store.queue
    if mode == "interrupt":
        await say(c, "long: 100000 200")
        await c.until(lambda: any(b.open and b.text for b in talk.blocks), "streaming")
        await say(c, "think: rather this")
        ends = 2
        left = ["user", "run", "text", "notice", "user", "run", "reasoning", "text"]
    else:
        await say(c, "tools: echo one || echo two")
        await c.until(lambda: len(queue.pending) == 2, "two requests")
        await say(c, "think: no, wait")
        await c.until(lambda: len(talk.queued) == 1, "it waits")
        if mode == "collect":
            await say(c, "think: and this")
            await c.until(lambda: len(talk.waiting()) == 2, "both wait")
        assert "think: no, wait" not in [b.text for b in talk.blocks]
        for card in queue.ordered():
            if card.id in queue.pending:
                params = {"id": card.id, "decision": "allow-once"}
                await client.call("exec.approval.resolve", params)
            if mode == "steer":
                break  # the other one is skipped when this one has ended
        ends = 2 if mode == "collect" else 1
        left = ["user", "run", "text", "tool", "tool"] + (
            ["text", "user", "user", "run"] if mode == "collect" else ["user"]
        )
    await c.until(
        lambda: len(talk.runs) == ends and talk.blocks and not talk.unfinished(), "the end"
    )
    return left


@pytest.mark.parametrize("mode", ["collect", "steer", "interrupt"])
async def test_live_equals_reloaded_in_every_queue_mode(tmp_path: Path, mode: str) -> None:
    """TU-10 with TU-08: what waited, was told half-way, or took a run's place."""
    config: dict[str, object] = {"messages": {"queue": {"mode": mode, "debounceMs": 50}}}
    async with story(tmp_path, "local", config) as (c, client):
        left = await settle_in(mode, c, client)
        talk = c.app.store.conversation()
        live = [block.signature() for block in talk.blocks]
        assert [str(block.kind) for block in talk.blocks][: len(left)] == left
        if mode == "steer":
            states = sorted(str(b.tool.status) for b in talk.blocks if b.tool is not None)
            assert states == ["ok", "skipped"]
        answer = await client.call("chat.history", {"sessionKey": MAIN, "limit": 200})
        fresh = Conversation(MAIN)
        fresh.reload(blocks_from_history(objs(answer["messages"])))
        assert [block.signature() for block in fresh.blocks] == live
