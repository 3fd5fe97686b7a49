"""Opens the console on a scripted engine, at a size, with a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from textual.pilot import Pilot

from claw_tui.app import ClawApp
from claw_tui.screens.approvals import ApprovalsScreen
from tests.tui.fake_client import MAIN, NOW, TELEGRAM, FakeClient, FakeClock, session

SMALL, LARGE = (80, 24), (120, 40)


@dataclass
class Console:
    app: ClawApp
    client: FakeClient
    clock: FakeClock
    pilot: Pilot[str]

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Let the loop run until something is so. Fails after 4,000 turns."""
        for _ in range(4000):
            if condition():
                return
            await self.pilot.pause(0.005)
        raise AssertionError(f"never happened: {what or condition}")

    async def settled(self) -> None:
        """Everything the engine said is in the store and on the screen."""
        await self.until(
            lambda: (
                self.client.drained
                and not self.app.store.dirty
                and self.app._pull_timer is None
                and not self.app.store.refetch
            ),
            "settled",
        )
        await self.pilot.pause()
        await self.until(lambda: not self.app.screen._layout_required, "laid out")
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settled()

    def screen_text(self) -> str:
        """What is on the screen, line by line, as the compositor has it."""
        screen = self.app.screen
        width, height = self.app.size
        lines = screen._compositor.render_strips()
        text = ["".join(seg.text for seg in strip) for strip in lines]
        assert len(text) == height
        assert width
        return "\n".join(text)

    async def open_queue(self) -> ApprovalsScreen:
        await self.press("f2")
        page = self.app.page
        assert isinstance(page, ApprovalsScreen)
        await self.until(lambda: self.app.keeper.state.written is not None, "card written")
        return page

    async def armed(self) -> None:
        await self.until(lambda: self.app.keeper.state.written is not None, "card written")
        self.clock.advance(0.6)

    def decided(self) -> list[tuple[object, object]]:
        return [(p["id"], p["decision"]) for p in self.client.asked("exec.approval.resolve")]


@asynccontextmanager
async def console(
    size: tuple[int, int] = SMALL,
    *,
    client: FakeClient | None = None,
    theme: str = "",
) -> AsyncIterator[Console]:
    client = client or FakeClient()
    clock = FakeClock()
    app = ClawApp(client, clock=clock, theme=theme)
    async with app.run_test(size=size) as pilot:
        found = Console(app, client, clock, pilot)
        await found.until(lambda: app.store.conversation().loaded, "first history")
        await found.settled()
        yield found


def four_sessions(client: FakeClient) -> FakeClient:
    client.answers["sessions.list"] = {
        "ts": NOW,
        "count": 4,
        "sessions": [
            session(MAIN, 0, state="running"),
            session(TELEGRAM, 3, state="waiting"),
            session("agent:main:discord:channel:ops", 112),
            session("agent:main:cron:digest", 422),
        ],
    }
    return client
