"""The process tool over real commands: what it tells, what it sends, what it stops."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from claw_engine.runs import AbortReason
from claw_engine.tools.base import ToolResult
from claw_engine.tools.exec.background import RETRY_MS
from claw_engine.tools.exec.processes import look
from tests.support.fakes import FakeClock
from tests.tools.desk import Desk


def details(result: ToolResult) -> dict[str, object]:
    assert result.details is not None
    return dict(result.details)


async def test_list_names_every_command_of_the_session(desk: Desk) -> None:
    one, _ = await desk.in_background("sleep 60")
    two, _ = await desk.in_background("exit 3")
    await desk.process("poll", two, timeout=20_000)
    result = await desk.call("process", action="list")
    first, second = result.text.splitlines()
    assert first.startswith(f"{one.id} running ") and first.endswith(":: sleep 60")
    assert second.startswith(f"{two.id} failed ") and second.endswith(":: exit 3")
    rows = details(result)["sessions"]
    assert isinstance(rows, list)
    assert [row["status"] for row in rows] == ["running", "failed"]
    assert rows[0]["pid"] == one.running.pid and rows[0]["endedAt"] is None
    assert rows[1]["exitCode"] == 3 and rows[1]["endedAt"] is not None


async def test_another_session_sees_nothing_of_it(desk: Desk) -> None:
    entry, _ = await desk.in_background("sleep 60")
    desk.session_key = "agent:main:other"
    assert "No command" in (await desk.call("process", action="list")).text
    for action in ("poll", "log", "kill", "remove", "submit"):
        result = await desk.process(action, entry)
        assert result.is_error and result.text.startswith("No session found")
        assert details(result)["status"] == "failed"
    assert look(entry.running.pid) is not None


async def test_poll_drains_and_says_how_it_ended(desk: Desk) -> None:
    entry, _ = await desk.in_background("read x; echo one; read x; echo two; exit 5")
    await desk.process("write", entry, data="go\n")
    await desk.wrote(entry, "one")
    first = await desk.process("poll", entry)
    assert first.text == "one\n\nProcess still running."
    assert details(first)["retryInMs"] == RETRY_MS[0]
    await desk.process("write", entry, data="go\n")
    second = await desk.process("poll", entry, timeout=20_000)
    assert second.text == "two\n\nProcess exited with code 5."
    assert details(second)["exitCode"] == 5
    assert "retryInMs" not in details(second)
    third = await desk.process("poll", entry)
    assert third.text == "(no new output)\n\nProcess exited with code 5."


async def test_polls_without_news_ask_for_patience(desk: Desk) -> None:
    entry, _ = await desk.in_background("read x; echo news; read x")
    said = [details(await desk.process("poll", entry))["retryInMs"] for _ in range(6)]
    assert said == [5_000, 10_000, 30_000, 60_000, 60_000, 60_000]
    await desk.process("write", entry, data="\n")
    await desk.wrote(entry, "news")
    assert details(await desk.process("poll", entry))["retryInMs"] == 5_000


async def test_a_poll_ends_with_its_run_and_spares_the_command(desk: Desk) -> None:
    entry, _ = await desk.in_background("sleep 60")
    task = asyncio.create_task(desk.process("poll", entry, timeout=120_000))
    await asyncio.sleep(0)
    desk.scope.abort(AbortReason.USER)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert look(entry.running.pid) is not None


async def test_a_flood_is_bounded_and_said(desk: Desk) -> None:
    entry, _ = await desk.in_background("seq 1 60000")
    result = await desk.process("poll", entry, timeout=30_000)
    assert result.text.startswith("[… ") and "dropped, see log" in result.text
    assert len(result.text) < 30_200
    assert "\n60000\n\nProcess exited with code 0." in result.text
    assert len(entry.tail) == 2_000
    log = await desk.process("log", entry, limit=1_000_000)
    assert len(log.text) < 200_200
    assert "dropped" in log.text
    assert details(log)["totalChars"] == sum(len(f"{n}\n") for n in range(1, 60001))


async def test_log_pages(desk: Desk) -> None:
    entry, _ = await desk.in_background("seq 0 999")
    await desk.process("poll", entry, timeout=20_000)
    last = await desk.process("log", entry)
    assert last.text.startswith("800\n") and "lines 801-1000 of 1000" in last.text
    page = await desk.process("log", entry, offset=10, limit=2)
    assert page.text.startswith("10\n11\n[… lines 11-12 of 1000")
    assert details(page)["totalLines"] == 1000 and details(page)["truncated"] is True


async def test_input_to_a_pipe(desk: Desk) -> None:
    entry, _ = await desk.in_background("cat")
    await desk.process("write", entry, data="a b")
    await desk.process("submit", entry)
    await desk.process("paste", entry, text="c\nd\n")
    keyed = await desk.process("send-keys", entry, literal="e", keys=["Space", "Enter"], hex=["66"])
    assert "no terminal" in keyed.text
    ended = await desk.process("write", entry, data="!", eof=True)
    assert ended.text.endswith("ended its input.")
    result = await desk.process("poll", entry, timeout=20_000)
    assert result.text == "a b\nc\nd\nef \n!\n\nProcess exited with code 0."


async def test_keys_on_a_terminal(desk: Desk) -> None:
    entry, _ = await desk.in_background("trap 'echo caught; exit 9' INT; echo up; cat", pty=True)
    await desk.wrote(entry, "up")
    await desk.process("write", entry, data="typed\n")
    await desk.wrote(entry, "typed\ntyped")  # the terminal's echo, then cat
    await desk.process("send-keys", entry, keys=["C-c"])
    result = await desk.process("poll", entry, timeout=20_000)
    assert "caught" in result.text
    assert result.text.endswith("Process exited with code 9.")


async def test_eof_on_a_terminal_is_ctrl_d(desk: Desk) -> None:
    entry, _ = await desk.in_background("cat; echo after", pty=True)
    await desk.process("write", entry, eof=True)
    result = await desk.process("poll", entry, timeout=20_000)
    assert "after" in result.text


@pytest.mark.parametrize(
    ("asks", "args", "marked"),
    [(True, {}, True), (False, {}, False), (False, {"bracketed": True}, True),
     (True, {"bracketed": False}, False)],
)  # fmt: skip
async def test_pasting_marks_the_text_if_the_program_wants_it(
    desk: Desk, asks: bool, args: dict[str, object], marked: bool
) -> None:
    mode = "printf '\\033[?2004h'; " if asks else ""
    size = 2 + (12 if marked else 0)
    script = f"stty -icanon -echo; {mode}echo up; head -c {size} | od -An -c | tr -d ' \\n'"
    entry, _ = await desk.in_background(script, pty=True)
    await desk.wrote(entry, "up")
    await desk.process("paste", entry, text="hi", **args)
    result = await desk.process("poll", entry, timeout=20_000)
    assert ("033[200~hi033[201~" in result.text) is marked
    assert "hi" in result.text


async def test_kill_clear_and_remove(desk: Desk) -> None:
    one, _ = await desk.in_background("sleep 60")
    refused = await desk.process("clear", one)
    assert refused.is_error and "still runs" in refused.text
    killed = await desk.process("kill", one)
    assert f"Stopped {one.id}" in killed.text and details(killed)["status"] == "killed"
    assert details(killed)["exitSignal"] == "SIGTERM"
    assert look(one.running.pid) is None
    assert "has ended before" in (await desk.process("kill", one)).text
    assert not (await desk.process("clear", one)).is_error
    two, _ = await desk.in_background("sleep 60")
    assert not (await desk.process("remove", two)).is_error
    assert look(two.running.pid) is None
    assert desk.table.of_session(desk.session_key) == []


IMPOSSIBLE = [
    ({"action": "poll"}, "sessionId is required"),
    ({"action": "fly"}, "`action`"),
    ({"action": "write", "sessionId": "ID"}, "nothing to send"),
    ({"action": "send-keys", "sessionId": "ID", "keys": ["Entr"]}, "Did you mean Enter"),
    ({"action": "send-keys", "sessionId": "ID", "hex": ["q"]}, "not a byte in hex"),
    ({"action": "write", "sessionId": "ID", "data": "\ud800"}, "not valid Unicode"),
    ({"action": "poll", "sessionId": "nobody-here"}, "No session found"),
]


@pytest.mark.parametrize(("args", "words"), IMPOSSIBLE)
async def test_impossible_calls(desk: Desk, args: dict[str, object], words: str) -> None:
    entry, _ = await desk.in_background("cat")
    given = {name: entry.id if value == "ID" else value for name, value in args.items()}
    result = await desk.call("process", **given)
    assert result.is_error
    assert words in result.text


async def test_no_input_where_there_is_none(desk: Desk) -> None:
    entry, _ = await desk.in_background("sleep 60", background=False, yieldMs=10)
    result = await desk.process("write", entry, data="x")
    assert result.is_error and "takes no input" in result.text
    await desk.process("kill", entry)
    late = await desk.process("write", entry, data="x")
    assert late.is_error and "any more" in late.text


MORE_THAN_A_PIPE_TAKES = "x" * 400_000


async def test_a_program_that_does_not_read_cannot_hold_the_call(desk: Desk) -> None:
    entry, _ = await desk.in_background("sleep 60")
    clock = FakeClock()
    desk.world = replace(desk.world, clock=clock)
    task = asyncio.create_task(desk.process("write", entry, data=MORE_THAN_A_PIPE_TAKES))
    await clock.advance(9)
    assert not task.done()
    await clock.advance(2)
    assert "does not read its input" in (await task).text


async def test_a_write_ends_with_the_command(desk: Desk) -> None:
    entry, _ = await desk.in_background("sleep 60")
    task = asyncio.create_task(desk.process("write", entry, data=MORE_THAN_A_PIPE_TAKES))
    await desk.process("kill", entry)
    assert (await task).is_error
