"""The conversation follows its end until the operator scrolls away, and only then not."""

from __future__ import annotations

from textual.events import MouseScrollDown, MouseScrollUp
from textual.scrollbar import ScrollTo

from tests.tui.fake_client import Script
from tests.tui.support import LARGE, SMALL, Console, console


async def long_talk(c: Console) -> Script:
    script = Script()
    words = "\n\n".join(f"word{n:03}" for n in range(120))
    c.client.trace(*script.opening("count"), script("text", callId="c1", delta=words))
    await c.settled()
    return script


async def wheel(c: Console, up: bool, times: int = 1) -> None:
    view = c.app.main.conversation
    kind = MouseScrollUp if up else MouseScrollDown
    step = -1 if up else 1
    for _ in range(times):
        view.post_message(kind(view, 5, 5, 0, step, 0, False, False, False))
    await c.settled()


async def test_resizing_and_other_screens_keep_following_the_end() -> None:
    async with console(LARGE) as c:
        script = await long_talk(c)
        view = c.app.main.conversation
        for width, height in ((120, 20), (70, 18), (140, 50), (80, 24), (120, 40)):
            await c.pilot.resize_terminal(width, height)
            await c.settled()
            await c.until(lambda: "word119" in c.screen_text(), f"{width}x{height}")
            assert view.following
        await c.press("f2")
        await c.pilot.resize_terminal(90, 22)
        c.client.trace(script("text", callId="c1", delta="\n\nnewest"))
        await c.settled()
        await c.press("escape")
        await c.until(lambda: "newest" in c.screen_text(), "newest after another screen")
        await c.press("escape", "z")
        await c.until(lambda: "newest" in c.screen_text(), "newest when zoomed")
        await c.press("tab", "tab", "tab")
        await c.until(lambda: "newest" in c.screen_text(), "newest after other panes")
        assert view.following and view.below == 0


async def test_scrolled_up_stays_there_says_how_much_is_below_and_sending_jumps() -> None:
    for size in (SMALL, LARGE):
        async with console(size) as c:
            await long_talk(c)
            view = c.app.main.conversation
            await wheel(c, up=True, times=3)
            assert not view.following
            assert f"↓ {view.below} more" in c.screen_text() and view.below > 0
            await c.pilot.resize_terminal(size[0], size[1] + 3)
            await c.settled()
            assert not view.following, "a resize is no scrolling"
            await wheel(c, up=False, times=40)
            assert view.following and "more" not in c.screen_text()
            view.post_message(ScrollTo(y=10))
            await c.settled()
            assert not view.following and view.scroll_offset.y == 10
            await c.press("h", "i", "enter")
            assert view.following and "word119" in c.screen_text()
