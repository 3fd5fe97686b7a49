"""The console as a person uses it: modes, sending, stopping, views, panes, reconnecting."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.console import RenderableType
from textual.events import Paste
from textual.screen import Screen
from textual.widgets import Input

from claw_tui.app import ClawApp
from claw_tui.screens.ask import GreyPage, Prompt, QuitPage, TooSmall
from claw_tui.store.store import Link
from claw_tui.widgets.bars import Banner
from claw_tui.widgets.composer import Composer
from claw_tui.widgets.sessions import SessionList
from tests.tui.fake_client import (
    MAIN,
    NOW,
    TELEGRAM,
    FakeClient,
    FakeClock,
    Script,
    lane,
    record,
    session,
    status,
)
from tests.tui.support import LARGE, SMALL, Console, console, four_sessions


async def type_text(c: Console, text: str) -> None:
    c.app.main.composer.insert(text)
    await c.settled()


async def test_enter_sends_and_the_draft_is_kept_over_nav() -> None:
    async with console() as c:
        assert c.app.main.mode == "TYPE"
        await c.pilot.press("h", "i", "q")
        await c.press("escape")
        assert (c.app.main.mode, c.app.main.composer.text) == ("NAV", "hiq")
        await c.press("i", "enter")
        await c.until(lambda: c.client.asked("chat.send"))
        sent = c.client.asked("chat.send")[0]
        assert (sent["sessionKey"], sent["message"]) == (MAIN, "hiq")
        assert sent["idempotencyKey"]
        assert c.app.main.composer.text == ""


async def test_letters_in_the_composer_never_fire_commands() -> None:
    async with console() as c:
        await c.pilot.press(*"qsPXXaz189?:/")
        await c.settled()
        assert c.app.screen is c.app.main
        assert c.app.main.composer.text == "qsPXXaz189?:/"
        assert not c.client.asked("runs.stopAll") and not c.client.asked("lanes.pause")


async def test_newlines_history_and_growth() -> None:
    async with console() as c:
        box = c.app.main.composer
        await type_text(c, "one")
        await c.press("ctrl+j")
        await type_text(c, "two\\")
        await c.press("enter")
        await type_text(c, "three")
        assert box.text == "one\ntwo\nthree"
        assert box.size.height == 3
        await type_text(c, "\n4\n5\n6\n7\n8")
        assert box.size.height == 6
        await c.press("enter")
        assert box.text == ""
        await type_text(c, "second")
        await c.press("enter")
        await c.press("up")
        assert box.text == "second"
        await c.press("up")
        assert box.text.startswith("one\ntwo")
        await c.press("down", "down", "down", "down", "down", "down", "down", "down")
        await c.press("down")
        assert box.text == ""


async def test_a_message_that_cannot_be_sent_comes_back() -> None:
    client = FakeClient()
    async with console(client=client) as c:
        del client.answers["chat.send"]
        await type_text(c, "precious")
        await c.press("enter")
        await c.until(lambda: c.app.main.composer.text == "precious")
        assert "chat.send" in c.screen_text()


async def test_ctrl_c_stops_the_run_then_offers_to_leave() -> None:
    """QU-05: by the console's key."""
    async with console() as c:
        c.client.trace(*Script().opening("work"))
        await c.settled()
        await c.press("ctrl+c")
        assert c.client.asked("chat.abort") == [{"sessionKey": MAIN}]
    async with console() as c:
        await c.press("ctrl+c")
        assert "again within 2 s" in c.screen_text()
        c.clock.advance(2.1)
        await c.press("ctrl+c")
        assert c.app.screen is c.app.main
        c.clock.advance(1)
        await c.press("ctrl+c")
        assert isinstance(c.app.screen, QuitPage)
        await c.press("escape")
        assert c.app.screen is c.app.main


async def test_x_twice_within_two_seconds_stops_everything() -> None:
    """QU-05: by the key that stops everything."""
    async with console() as c:
        await c.press("escape", "X")
        assert "X again" in c.screen_text()
        c.clock.advance(2.5)
        await c.press("X")
        assert not c.client.asked("runs.stopAll")
        c.clock.advance(1)
        await c.press("X")
        assert c.client.asked("runs.stopAll") == [{}]
        assert "stopped 2 runs" in c.screen_text()


async def test_pause_is_a_banner_in_every_view() -> None:
    async with console() as c:
        await c.press("escape", "P")
        assert c.client.asked("lanes.pause") == [{}]
        for key in ("1", "8", "5"):
            await c.press(key)
            assert c.app.page.query_one(Banner).display
            assert "PAUSED" in c.screen_text()
        await c.press("P")
        assert c.client.asked("lanes.resume") == [{}]
        assert "PAUSED" not in c.screen_text()


async def test_views_without_an_engine_say_their_sentence() -> None:
    async with console() as c:
        await c.press("escape")
        for key in "2345679":
            await c.press(key)
            assert isinstance(c.app.screen, GreyPage)
            assert c.app.page.view == key
        await c.press("escape")
        assert c.app.screen is c.app.main


async def test_one_pane_at_eighty_columns_three_at_a_hundred_and_twenty() -> None:
    async with console(SMALL, client=four_sessions(FakeClient())) as c:
        assert "discord:ops" not in c.screen_text()
        await c.press("escape", "tab")
        assert "nothing waits" in c.screen_text()
        await c.press("tab")
        assert "discord:ops" in c.screen_text()
    async with console(LARGE, client=four_sessions(FakeClient())) as c:
        text = c.screen_text()
        assert "discord:ops" in text and "nothing waits" in text and "Lanes" in text
        await c.press("escape", "z")
        assert "discord:ops" not in c.screen_text()
        await c.press("z")
        assert "discord:ops" in c.screen_text()


async def test_opening_a_session_shows_its_history_and_types() -> None:
    client = four_sessions(FakeClient())
    client.answers["chat.history"] = lambda params: {
        "sessionKey": params["sessionKey"],
        "messages": [
            {"role": "user", "content": f"hello {params['sessionKey']}", "timestamp": NOW}
        ],
    }
    async with console(client=client) as c:
        await c.press("escape", "[", "g", "j")
        await c.press("enter")
        assert c.app.store.selected == TELEGRAM
        await c.until(lambda: f"hello {TELEGRAM}" in c.screen_text())
        assert c.app.main.mode == "TYPE"


async def test_filtering_the_sessions() -> None:
    async with console(client=four_sessions(FakeClient())) as c:
        await c.press("escape", "[", "slash")
        assert isinstance(c.app.screen, Prompt)
        c.app.screen.query_one(Input).value = "!cron"
        await c.press("enter")
        assert [r.key for r in c.app.main.query_one(SessionList).rows if "cron" in r.key] == []
        assert "! inverts" not in c.screen_text()


async def test_the_command_line_completes_and_explains() -> None:
    async with console() as c:
        await c.press("escape", "colon")
        await c.pilot.press(*"theme cl")
        await c.settled()
        assert "theme claw-light" in c.screen_text()
        c.app.screen.query_one(Input).value = "theme claw-light"
        await c.press("enter")
        await c.until(lambda: c.app.theme == "claw-light")
        await c.press("colon")
        c.app.screen.query_one(Input).value = "pasue"
        await c.press("enter")
        await c.until(lambda: "did you mean pause" in c.screen_text())


@pytest.mark.parametrize(
    ("run_ids", "said"),
    [([], "nothing was going on in this session"), (["r1"], "stopping the run"),
     (["r1", "r2"], "stopping 2 runs")],
)  # fmt: skip
async def test_stop_as_words_says_what_it_stopped(run_ids: list[str], said: str) -> None:
    async with console() as c:
        c.client.answers["chat.send"] = {"ok": True, "aborted": bool(run_ids), "runIds": run_ids}
        await c.pilot.press(*"/stop")
        await c.press("enter")
        await c.until(lambda: said in c.screen_text())


async def test_a_refused_key_says_why_until_the_next_key() -> None:
    async with console() as c:
        await c.press("escape", "s")
        assert "no run is going on" in c.screen_text()
        await c.press("g")
        assert "no run is going on" not in c.screen_text()


async def test_a_lost_connection_is_said_and_everything_is_read_again() -> None:
    async with console() as c:
        c.client.refuse_connect = True
        c.client.lose("engine gone")
        await c.until(lambda: c.app.store.link is Link.LOST)
        await c.settled()
        assert "connection lost" in c.screen_text()
        c.client.refuse_connect = False
        c.client.answers["sessions.list"] = {"sessions": [session(MAIN), session(TELEGRAM)]}
        await c.until(lambda: c.app.store.link is Link.CONNECTED, "reconnected")
        await c.until(lambda: TELEGRAM in c.app.store.sessions.rows)
        await c.settled()
        assert "connection lost" not in c.screen_text()


async def test_an_engine_that_is_not_there_at_first_is_waited_for() -> None:
    client = FakeClient()
    client.refuse_connect = True
    app = ClawApp(client)
    async with app.run_test(size=SMALL) as pilot:
        for _ in range(50):
            await pilot.pause(0.01)
            if app.store.link is Link.LOST:
                break
        assert app.store.link is Link.LOST
        client.refuse_connect = False
        for _ in range(300):
            await pilot.pause(0.01)
            if app.store.link is Link.CONNECTED:
                break
        assert app.store.link is Link.CONNECTED


async def test_a_terminal_that_is_too_small_says_so() -> None:
    async with console() as c:
        await c.pilot.resize_terminal(50, 12)
        await c.until(lambda: isinstance(c.app.screen, TooSmall))
        await c.pilot.resize_terminal(80, 24)
        await c.until(lambda: c.app.screen is c.app.main)


async def test_wide_input_wraps_on_cells_and_keeps_the_cursor() -> None:
    """TU-01: one cell too many, then a narrow terminal, then a large paste."""
    async with console() as c:
        box = c.app.main.composer
        await type_text(c, "漢" * 39 + "a" + "漢")
        await c.pilot.resize_terminal(60, 16)
        await c.settled()
        box.post_message(Paste("語" * 500))
        await c.until(lambda: len(box.text) == 541)
        await c.settled()
        assert box.size.height == 6
        assert box.region.contains(*box.cursor_screen_offset)


async def test_below_the_smallest_size_nothing_is_lost() -> None:
    """TU-01: the line of the case, 40x10, a paste of 500 wide characters, and back."""
    async with console() as c:
        box = c.app.main.composer
        typed = "漢" * 39 + "a" + "漢"
        await type_text(c, typed)
        assert box.region.contains(*box.cursor_screen_offset)
        await c.pilot.resize_terminal(40, 10)
        await c.until(lambda: isinstance(c.app.screen, TooSmall))
        c.app.post_message(Paste("語" * 500))
        await c.settled()
        await c.pilot.resize_terminal(80, 24)
        await c.until(lambda: c.app.screen is c.app.main)
        await c.settled()
        assert box.text.startswith(typed)
        await c.until(lambda: box.region.contains(*box.cursor_screen_offset), "cursor in the box")
        for row in c.screen_text().split("\n"):
            assert cell_len(row) == 80


async def test_ctrl_l_paints_everything_again() -> None:
    """TU-03: the redraw key."""
    async with console() as c:
        frames: list[object] = []
        show = c.app._display

        def seen(screen: Screen[object], renderable: RenderableType | None) -> None:
            frames.append(renderable)
            show(screen, renderable)

        c.app._display = seen  # type: ignore[method-assign]  # listens, then does the same
        await c.press("ctrl+l")
        assert any(type(frame).__name__ == "LayoutUpdate" for frame in frames)


async def test_idle_paints_nothing() -> None:
    async with console() as c:
        serial = c.app.gate.frame_serial
        c.clock.advance(5)
        for _ in range(60):
            await c.pilot.pause(0.02)
        assert c.app.gate.frame_serial == serial
        assert c.app._ticker is not None and not c.app._ticker._active.is_set()


async def test_the_bell_rings_once_for_a_new_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console() as c:
        rings: list[int] = []
        monkeypatch.setattr(c.app, "bell", lambda: rings.append(1))
        c.client.emit("exec.approval.requested", record("a1", "ls"))
        c.client.emit("exec.approval.requested", record("a1", "ls"))
        await c.settled()
        assert rings == [1]
        assert c.app.main.mode == "TYPE"
        assert "01:52" in c.screen_text()


async def test_ten_thousand_sessions_are_drawn_where_visible() -> None:
    client = FakeClient()
    client.answers["sessions.list"] = {
        "sessions": [session(f"agent:main:s{n:05}", n) for n in range(10_000)]
    }
    async with console(LARGE, client=client) as c:
        await c.press("escape", "[", "G")
        assert "s09999" in c.screen_text()


async def test_copy_takes_the_chosen_block() -> None:
    async with console() as c:
        c.client.trace(*Script().disk_story())
        await c.settled()
        await c.press("escape", "c")
        assert c.app.clipboard == "rm -rf /volume1/backup/old"


async def test_reasoning_and_output_open_and_close() -> None:
    """TU-10: large output is folded with its size."""
    async with console(LARGE) as c:
        s = Script()
        lines = "\n".join(f"line {n}" for n in range(500))
        c.client.trace(
            *s.opening("x"),
            s("tool.started", callId="c1", toolCallId="t", name="exec", args={"command": "seq"}),
            s(
                "tool.ended",
                toolCallId="t",
                name="exec",
                status="ok",
                text=lines,
                exitCode=0,
                durationMs=3,
                decision=None,
            ),
        )
        await c.settled()
        assert "… 500 lines, 4.4 kB" in c.screen_text()
        await c.press("escape", "enter")
        await c.press("g", "G")
        assert "page 1 of 3" in c.screen_text()
        await c.press("l", "G")
        assert "page 2 of 3" in c.screen_text()
        await c.press("enter", "G")
        assert "page" not in c.screen_text().split("Lanes")[0].replace("pages", "")


async def test_live_text_follows_the_tail_and_stays_when_scrolled_up() -> None:
    async with console() as c:
        s = Script()
        c.client.trace(*s.opening("long"))
        for n in range(80):
            c.client.trace(s("text", callId="c1", delta=f"word{n:03}\n\n"))
        await c.settled()
        view = c.app.main.conversation
        assert view.following and "word079" in c.screen_text()
        await c.press("escape", "pageup")
        top = view.scroll_offset.y
        c.client.trace(s("text", callId="c1", delta="more\n\nmore\n\n"))
        await c.settled()
        assert view.scroll_offset.y == top
        await c.press("G")
        assert "more" in c.screen_text()


async def test_every_hint_is_a_key_that_works() -> None:
    async with console() as c:
        c.client.emit("exec.approval.requested", record("a1", "ls"))
        c.client.emit("lanes", {"paused": False, "lanes": [lane("main", 4, 1)]})
        await c.settled()
        for text in ("esc nav", "F2 approvals"):
            assert text in c.screen_text()
        await c.press("escape")
        for text in ("i type", "a approvals", "? all keys"):
            assert text in c.screen_text()


async def test_help_shows_the_whole_warning() -> None:
    client = FakeClient()
    client.answers["status"] = status(bypassWarning="SENTENCE " * 12)
    async with console(client=client) as c:
        await c.press("escape", "question_mark")
        assert "All keys" in c.screen_text()
        await c.press(*["pagedown"] * 12)
        assert "SENTENCE SENTENCE" in c.screen_text()
        await c.press("escape")
        assert isinstance(c.app.focused, Composer) or c.app.screen is c.app.main


async def test_without_utf8_only_ascii_leaves_for_the_terminal() -> None:
    """TU-03 with LANG=C."""
    client, clock = four_sessions(FakeClient()), FakeClock()
    app = ClawApp(client, clock=clock, ascii_only=True)
    async with app.run_test(size=LARGE) as pilot:
        c = Console(app, client, clock, pilot)
        client.trace(*Script().disk_story())
        await c.until(lambda: app.store.conversation().loaded)
        await c.settled()
        text = c.screen_text()
        assert text.isascii()
        assert {len(row) for row in text.split("\n")} == {120}
        assert "+- Sessions -" in text
