"""A command longer than its place: its parts and their risks stay in view, and `y` waits until
its end was on the screen."""

from __future__ import annotations

import pytest

from claw_tui.screens.approvals import UNSEEN
from claw_tui.screens.ask import ArmedPage
from tests.tui.fake_client import record
from tests.tui.support import LARGE, SMALL, Console, console

LONG = "python3 -c '" + "\n".join(f"print({n})" for n in range(60)) + "' && rm -rf build"
PARTS = [
    {
        "text": "python3",
        "argv": ["python3"],
        "resolved": "/usr/bin/python3",
        "rule": None,
        "why": "no rule matches",
        "risks": ["runs code it is given"],
    },
    {
        "text": "rm -rf build",
        "argv": ["rm", "-rf", "build"],
        "resolved": "/usr/bin/rm",
        "rule": None,
        "why": "no rule matches",
        "risks": ["deletes recursively"],
    },
]


async def long_card(c: Console, others: int = 0, **over: object) -> None:
    c.client.emit("exec.approval.requested", record("a1", LONG, segments=PARTS, **over))
    for n in range(others):
        c.client.emit("exec.approval.requested", record(f"b{n}", f"touch {n}"))
    await c.settled()
    await c.open_queue()


@pytest.mark.parametrize(("size", "others"), [(SMALL, 0), (SMALL, 9), (LARGE, 0), ((60, 16), 4)])
async def test_the_parts_stay_and_y_waits_for_the_end(size: tuple[int, int], others: int) -> None:
    async with console(size) as c:
        await long_card(c, others, why="because " * 60)
        text = c.screen_text()
        assert "WHY" in text and "no sandbox" in text and "y once" in text
        if size != (60, 16):
            assert "deletes recursively" in text and "runs code it is given" in text
            assert "scroll to the end" in text
        await c.armed()
        await c.press("y")
        assert c.decided() == [] and UNSEEN in c.screen_text()
        for _ in range(60):
            await c.pilot.press("pagedown")
            await c.pilot.pause()
            if c.app.page.seen:  # type: ignore[attr-defined]  # the approvals screen's
                break
            if size != (60, 16):
                assert "deletes recursively" in c.screen_text()
        await c.settled()
        assert "rm -rf build" in c.screen_text()
        await c.press("y")
        assert c.decided() == [], "the wait begins with the frame that shows the end"
        await c.armed()
        await c.press("pageup", "pageup")
        await c.armed()
        await c.press("y")
        await c.until(lambda: c.decided() == [("a1", "allow-once")])


async def test_a_long_card_is_denied_unread_but_not_marked() -> None:
    async with console() as c:
        c.client.emit("exec.approval.requested", record("a1", LONG))
        await c.settled()
        await c.open_queue()
        await c.press("space")
        assert "look at the card first" in c.screen_text()
        await c.armed()
        await c.press("n")
        await c.until(lambda: c.decided() == [("a1", "deny")])


async def test_the_batch_page_waits_for_its_end_too() -> None:
    async with console() as c:
        for n in range(20):
            c.client.emit("exec.approval.requested", record(f"a{n:02}", f"touch a{n:02}"))
        await c.settled()
        await c.open_queue()
        for _ in range(20):
            await c.press("space", "j")
        await c.press("y")
        assert isinstance(c.app.screen, ArmedPage)
        await c.armed()
        await c.press("y")
        assert c.decided() == []
        await c.press(*["pagedown"] * 6)
        await c.armed()
        await c.press("y")
        await c.until(lambda: len(c.decided()) == 20)
