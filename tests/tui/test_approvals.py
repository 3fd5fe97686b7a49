"""Deciding from the keyboard: the card's truth, the arming rule on the real screen (AP-09,
AP-13, must hold 2), and what no content can do (TU-06)."""

from __future__ import annotations

import re

import pytest
from textual.events import Paste

from claw_engine.client.base import ConnectionLost
from claw_tui.screens.approvals import ApprovalsScreen
from claw_tui.screens.ask import ArmedPage, Prompt
from claw_tui.store.store import Link
from tests.tui.fake_client import TELEGRAM, FakeClient, Script, record
from tests.tui.support import LARGE, SMALL, Console, console

RM = "rm -rf build"
RISK = [
    {
        "text": RM,
        "argv": ["rm", "-rf", "build"],
        "resolved": "/usr/bin/rm",
        "rule": None,
        "why": "no rule matches",
        "risks": ["deletes recursively"],
    }
]


async def ask(c: Console, *ids: str, **over: object) -> None:
    for approval_id in ids:
        c.client.emit(
            "exec.approval.requested", record(approval_id, f"touch {approval_id}", **over)
        )  # type: ignore[arg-type]  # request fields
    await c.settled()


async def test_y_allows_once_after_half_a_second_of_quiet() -> None:
    async with console() as c:
        await ask(c, "a1")
        await c.open_queue()
        await c.press("y")
        assert c.decided() == []
        assert "half a second" in c.screen_text()
        c.clock.advance(0.6)
        await c.press("y")
        await c.until(lambda: c.decided() == [("a1", "allow-once")])


async def test_n_denies_and_r_denies_with_a_reason() -> None:
    async with console() as c:
        await ask(c, "a1", "a2")
        await c.open_queue()
        c.clock.advance(0.6)
        await c.press("n")
        await c.until(lambda: c.decided() == [("a1", "deny")])
        await c.settled()
        await c.armed()
        await c.press("r")
        assert isinstance(c.app.screen, Prompt)
        await c.press("enter")
        assert isinstance(c.app.screen, Prompt), "an empty reason is refused"
        await c.pilot.press(*"yes no y")
        await c.press("enter")
        await c.until(lambda: len(c.decided()) == 2)
        assert c.client.asked("exec.approval.resolve")[1] == {
            "id": "a2",
            "decision": "deny",
            "reason": "yes no y",
        }


async def test_a_called_off_reason_decides_nothing() -> None:
    async with console() as c:
        await ask(c, "a1")
        await c.open_queue()
        c.clock.advance(0.6)
        await c.press("r", "escape")
        assert c.decided() == []
        await c.armed()
        await c.press("n")
        await c.until(lambda: c.decided() == [("a1", "deny")])


async def test_a_decision_that_did_not_arrive_says_so_beside_the_card() -> None:
    async with console() as c:
        await ask(c, "a1")
        await c.open_queue()
        c.client.refuse_connect = True
        c.client.lose()
        await c.until(lambda: c.app.store.link is Link.LOST)
        await c.settled()
        await c.armed()
        await c.press("y")
        await c.until(lambda: c.decided() == [("a1", "allow-once")])
        await c.settled()
        assert "the engine went away" in c.screen_text().splitlines()[-1]
        assert "a1" in c.app.store.queue.pending


async def test_keys_meant_for_the_composer_decide_nothing() -> None:
    """AP-09: typing while a request arrives; enter, space, repeats and a paste."""
    async with console() as c:
        await c.pilot.press("h")
        await ask(c, "a1", segments=RISK)
        await c.pilot.press("y", "o", "space", "y")  # AP-09: no time passes in between
        c.app.main.composer.post_message(Paste("y\ny\n"))
        await c.settled()
        assert c.app.main.composer.text == "hyo yy\ny\n"
        await c.press("f2")
        await c.press("enter", "space", "y", "y", "y", "enter")
        c.app.post_message(Paste("y"))
        await c.settled()
        assert c.decided() == []


async def test_pasted_text_never_decides_even_when_armed() -> None:
    async with console() as c:
        await ask(c, "a1")
        await c.open_queue()
        c.clock.advance(5)
        c.app.post_message(Paste("y"))
        await c.settled()
        assert c.decided() == []
        await c.press("y")
        assert c.decided() == [], "the paste started the quiet time again"


async def test_holding_y_over_ten_cards_decides_at_most_the_armed_one() -> None:
    async with console() as c:
        await ask(c, *[f"a{n}" for n in range(10)])
        await c.open_queue()
        c.clock.advance(0.6)
        for _ in range(90):
            await c.pilot.press("y")
            c.clock.advance(1 / 30)
        await c.settled()
        assert c.decided() == [("a0", "allow-once")]


async def test_with_output_stalled_y_decides_nothing() -> None:
    async with console() as c:
        await ask(c, "a1")
        written: list[str] = []
        behind = [0]
        await c.open_queue()
        c.app.gate.connect(written.append, lambda: behind[0])
        c.clock.advance(0.6)
        behind[0] = 4_000
        for _ in range(6):
            c.clock.advance(0.6)
            await c.press("y")
        assert c.decided() == []
        assert "behind" in c.screen_text()
        behind[0] = 0
        c.app.terminal_drained()
        await c.settled()
        assert c.decided() == []
        await c.until(lambda: c.app.keeper.state.written is not None)
        c.clock.advance(0.6)
        await c.press("y")
        await c.until(lambda: c.decided() == [("a1", "allow-once")])


async def test_resize_filter_reconnect_and_view_switch_start_the_wait_again() -> None:
    async with console() as c:
        await ask(c, "a1", "a2")
        page = await c.open_queue()
        c.clock.advance(0.6)
        await c.pilot.resize_terminal(82, 25)
        await c.settled()
        assert not c.app.keeper.armed()
        await c.armed()
        assert c.app.keeper.armed()
        page.filter("a1")
        assert not c.app.keeper.armed()
        await c.armed()
        c.app._link_reset()
        assert not c.app.keeper.armed()
        await c.armed()
        await c.press("1")
        assert not c.app.keeper.armed()
        await c.press("8")
        assert not c.app.keeper.armed()
        assert c.decided() == []


async def test_the_card_stays_selected_when_others_come_and_go() -> None:
    async with console() as c:
        await ask(c, "a1", "a2")
        page = await c.open_queue()
        await c.press("j")
        assert page.selected == "a2"
        await c.armed()
        await ask(c, "a3")
        c.client.emit("exec.approval.resolved", {**record("a1", "x"), "status": "expired"})
        await c.settled()
        assert page.selected == "a2"
        await c.press("y")
        await c.until(lambda: c.decided() == [("a2", "allow-once")])


async def test_expiry_takes_the_card_away_and_disarms() -> None:
    async with console() as c:
        c.client.emit("exec.approval.requested", record("a1", "ls", seconds=3))
        c.client.emit("exec.approval.requested", record("a2", "ls -l"))
        await c.settled()
        page = await c.open_queue()
        c.clock.advance(3.1)
        c.app._tick()
        await c.settled()
        assert page.selected == "a2"
        await c.press("y")
        assert c.decided() == []


async def test_w_shows_the_pattern_and_waits_for_its_own_silence() -> None:
    always = {
        "patterns": ["/usr/bin/touch"],
        "refusal": None,
        "recentMatches": ["touch a", "touch b"],
    }
    async with console() as c:
        await ask(c, "a1", always=always)
        await c.open_queue()
        c.clock.advance(0.6)
        await c.press("w")
        assert isinstance(c.app.screen, ArmedPage)
        text = c.screen_text()
        assert "/usr/bin/touch" in text and "let 2 run" in text and "touch b" in text
        await c.press("y")
        assert c.decided() == []
        await c.armed()
        await c.press("y")
        await c.until(lambda: c.decided() == [("a1", "allow-always")])


async def test_w_is_not_offered_where_the_engine_refuses_it() -> None:
    async with console(LARGE) as c:
        await ask(c, "a1", always={"patterns": [], "refusal": "bash is a shell"})
        await c.open_queue()
        assert "always…" not in c.screen_text()
        await c.press("w")
        assert isinstance(c.app.screen, ApprovalsScreen)
        assert "bash is a shell" in c.screen_text()


BUDGET: dict[str, object] = {
    "kind": "budget", "cwd": "", "why": "", "segments": [], "toolCallId": "",
    "reasons": ["900 tokens of 1,000 tokens spent, and this call needs about 200 tokens",
                "claw.budgets.session.tokens is 1000"],
    "always": {"patterns": [], "refusal":
               "raise it in the settings: claw.budgets.session.tokens"},
    "grants": {"offers": [], "refusal": "it is no command"},
}  # fmt: skip


@pytest.mark.parametrize("size", [SMALL, (100, 30), LARGE])
async def test_a_budgets_card_shows_its_keys_and_no_place(size: tuple[int, int]) -> None:
    async with console(size) as c:
        words = "go on beyond this session's budget, up to 1,500 tokens"
        c.client.emit("exec.approval.requested", record("b1", words, **BUDGET))  # type: ignore[arg-type]  # request fields
        await c.settled()
        await c.open_queue()
        rows = [row.strip("│ ") for row in c.screen_text().splitlines()]
        assert any(row.startswith("y once") and "n deny" in row for row in rows), rows
        top = next(at for at, row in enumerate(rows) if "1 of 1" in row)
        assert rows[top + 1].startswith(f"PAY  {words}")
        assert not any(row.startswith("IN ") or " ON " in row for row in rows)
        assert any(f"budget {words[:20]}" in row for row in rows)
        await c.press("w")
        assert "claw.budgets.session.tokens" in c.screen_text().splitlines()[-1]
        c.clock.advance(0.6)
        await c.press("y")
        await c.until(lambda: c.decided() == [("b1", "allow-once")])


async def test_enter_and_escape_never_decide() -> None:
    async with console() as c:
        await ask(c, "a1")
        await c.open_queue()
        c.clock.advance(1)
        await c.press("enter")
        assert "all fields" in c.screen_text()
        c.clock.advance(1)
        await c.press("escape")
        assert "all fields" not in c.screen_text()
        c.clock.advance(1)
        await c.press("escape")
        assert c.app.screen is c.app.main
        assert c.decided() == []


async def test_forty_requests_are_answered_from_the_keyboard() -> None:
    """AP-13: one line each; marks leave out the dangerous and the never viewed."""
    async with console(LARGE) as c:
        await ask(c, *[f"a{n:02}" for n in range(20)])
        await ask(c, "boom", segments=RISK)
        page = await c.open_queue()
        marked = 0
        for _ in range(21):
            await c.pilot.press("space", "j")
        await c.settled()
        marked = len(c.app.store.queue.marked)
        assert marked == 20 and "boom" not in c.app.store.queue.marked
        await c.press("y")
        assert isinstance(c.app.screen, ArmedPage)
        await c.press("pagedown", "pagedown")
        await c.armed()
        await c.press("y")
        await c.until(lambda: len(c.decided()) == 20)
        await c.settled()
        assert page.selected == "boom"


async def test_a_failed_decision_can_be_tried_again() -> None:
    client = FakeClient()
    client.answers["exec.approval.resolve"] = ConnectionLost("gone")
    async with console(client=client) as c:
        await ask(c, "a1")
        await c.open_queue()
        c.clock.advance(0.6)
        await c.press("y")
        await c.until(lambda: len(c.decided()) == 1)
        await c.settled()
        del client.answers["exec.approval.resolve"]
        await c.armed()
        await c.press("y")
        await c.until(lambda: len(c.decided()) == 2)


async def test_a_long_command_scrolls_and_why_host_and_keys_stay() -> None:
    command = "python3 -c '" + "\n".join(f"print({n})" for n in range(60)) + "'"
    async with console(SMALL) as c:
        c.client.emit(
            "exec.approval.requested", record("a1", command, why="because " * 60, cwd="/volume1")
        )
        await c.settled()
        await c.open_queue()
        for _ in range(8):
            text = c.screen_text()
            assert "WHY" in text and "ON this host, no sandbox" in text and "y once" in text
            await c.press("pagedown")
        assert "print(59)" in c.screen_text()


async def test_a_bidi_command_shows_every_hidden_character() -> None:
    async with console() as c:
        c.client.emit(
            "exec.approval.requested",
            record("a1", "cat \u202etxt.sh\u202c\u200b\u00a0x\x1b[2J", cwd="/vol\u200eume"),
        )
        await c.settled()
        assert "⟪U+202E⟫" in c.screen_text()
        await c.open_queue()
        text = c.screen_text()
        for shown in ("⟪U+202E⟫", "⟪U+202C⟫", "⟪U+200B⟫", "⟪U+00A0⟫", "␛[2J", "⟪U+200E⟫"):
            assert shown in text.replace("\n", "").replace("│", "")
        assert "\u202e" not in text and "\x1b" not in text


HOSTILE = [
    "[/]",
    "[/var/log]",
    "[b + x",
    "[link=http://x]y",
    "[@click=app.quit]approve[/]",
    "[red]ok",
    '{"a":[true,false]}',
]


async def test_text_from_outside_is_never_markup() -> None:
    """TU-06: every string in every place, literally, with no action and no exception."""
    for hostile in HOSTILE:
        client = FakeClient()
        key = f"agent:main:{hostile}"
        client.answers["sessions.list"] = {
            "sessions": [
                {
                    "key": key,
                    "sessionId": "s",
                    "updatedAt": 1,
                    "state": "idle",
                    "displayName": hostile,
                }
            ]
        }
        async with console(LARGE, client=client) as c:
            await c.app.open_session(key)
            s = Script(key=key)
            c.client.trace(
                *s.opening(hostile),
                s("reasoning", callId="c1", delta=hostile),
                s(
                    "tool.started",
                    callId="c1",
                    toolCallId="t",
                    name=hostile[:9],
                    args={"path": hostile},
                ),
                s("tool.output", toolCallId="t", delta=hostile),
                s("text", callId="c2", delta=hostile),
                s("notice", level="info", text=hostile),
                s(
                    "run.ended",
                    status="failed",
                    stopReason="error",
                    text="",
                    durationMs=1,
                    usage=None,
                    error={"title": hostile, "hint": hostile},
                ),
            )
            c.client.emit(
                "notice",
                {
                    "code": "x",
                    "level": "error",
                    "title": hostile,
                    "text": "",
                    "hint": "",
                    "sticky": False,
                    "ts": 1,
                },
            )
            await c.settled()
            text = c.screen_text()
            # list, border title, user, reasoning, argument, output, notice, error twice, toast
            assert text.count(hostile) >= 9, (hostile, text)
            c.client.emit(
                "exec.approval.requested",
                record(
                    "a1",
                    hostile,
                    why=hostile,
                    cwd=hostile,
                    sessionKey=key,
                    agentId=hostile,
                    envChanges=[hostile],
                    redirections=[hostile],
                    reasons=[hostile],
                    segments=[
                        {
                            "text": hostile,
                            "argv": [hostile],
                            "resolved": hostile,
                            "rule": None,
                            "why": hostile,
                            "risks": [hostile],
                        }
                    ],
                    always={"patterns": [hostile], "refusal": None, "recentMatches": [hostile]},
                ),
            )
            await c.settled()
            await c.open_queue()
            await c.press("enter")
            assert c.screen_text().count(hostile) >= 5
            await c.press("w")
            assert c.screen_text().count(hostile) >= 2
            await c.press("escape")
            await c.press("ctrl+p")
            await c.press("escape")
            for strip in c.app.screen._compositor.render_strips():
                for segment in strip:
                    meta = segment.style.meta if segment.style else {}
                    assert "@click" not in meta
                    assert not (segment.style and segment.style.link)


WIDE = [
    "├─ box",
    "warn ⚠\ufe0f end",
    "family 👨\u200d👩\u200d👧 end",
    "か\u3099 decomposed",
    "ﾊﾝｶｸ half",
    "漢字かな full",
    "🇩🇪 flag",
    "👍🏽 tone",
]


async def test_borders_stay_in_their_columns_under_wide_glyphs() -> None:
    """TU-03 on the compositor: every character's own width adds up to the border's column."""
    import pyte
    from rich.cells import cell_len

    async with console(LARGE) as c:
        s = Script()
        c.client.trace(*s.opening("go"))
        for n in range(200):
            c.client.trace(s("text", callId="c1", delta=f"{n} {WIDE[n % len(WIDE)]}  \n"))
        await c.settled()
        screen = pyte.Screen(120, 40)
        stream = pyte.Stream(screen)
        lines = c.screen_text().split("\n")
        for y, text in enumerate(lines):
            assert cell_len(text) == 120
            stream.feed(f"\x1b[{y + 1};1H{text}")
        body = screen.display[2:35]
        for column in (0, 25, 26, 93, 94, 119):
            assert {row_cells(row)[column] for row in body} <= {"│", "╭", "╰", "╮", "╯", "─", " "}
        assert sum(row_cells(row)[26] == "│" for row in body) == len(body)
        assert re.search("漢字かな", "\n".join(body).replace("\x00", ""))


def row_cells(row: str) -> list[str]:
    """pyte's display line back to one entry a cell."""
    from rich.cells import cell_len

    out: list[str] = []
    for char in row:
        out.append(char)
        out.extend([""] * (cell_len(char) - 1))
    return out


async def test_the_queue_shows_session_and_countdown() -> None:
    async with console(LARGE) as c:
        await ask(c, "a1", sessionKey=TELEGRAM)
        await c.open_queue()
        text = c.screen_text()
        assert "telegram:42" in text and "01:52" in text
        c.clock.advance(10)
        c.app._tick()
        await c.settled()
        assert "01:42 left" in c.screen_text()
