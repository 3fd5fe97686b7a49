"""What a restart cut short, what stands to be read, what was allowed for good, what waits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from claw_engine.inbox.recovery import LOST_CALL
from claw_engine.protocol.names import INTERRUPTED_BY_RESTART
from claw_tui import themes
from claw_tui.screens.approvals import ApprovalsScreen
from claw_tui.screens.ask import ArmedPage
from claw_tui.screens.interrupted import InterruptedPage
from claw_tui.screens.notices import NoticesPage
from tests.tui.fake_client import MAIN, NOW, TELEGRAM, FakeClient, Script, record, status
from tests.tui.support import LARGE, SMALL, Console, console

SIZES = [SMALL, LARGE]
WAIT_NOTICE: dict[str, object] = {
    "code": "runs-interrupted",
    "level": "warn",
    "title": "2 runs were interrupted by the restart and wait for you.",
    "text": f"{MAIN}, {TELEGRAM}",
    "hint": "Nothing was repeated. runs.interrupted lists them, runs.resume decides.",
    "sticky": True,
    "ts": NOW,
}
DIFF = "line 12: expected ','\n--- last good\n+++ now\n-  port: 1\n+  port: [bold]2"


def cut(run_id: str, key: str, text: str) -> dict[str, object]:
    return {
        "runId": run_id,
        "sessionKey": key,
        "messages": [run_id],
        "text": text,
        "source": "console",
        "receivedAtMs": NOW - 120_000,
        "interruptedAtMs": NOW,
    }


def history_of(params: Mapping[str, object]) -> dict[str, object]:
    """The transcripts that recovery left: one died under a call, one before it began."""
    run_id = "r-main" if params["sessionKey"] == MAIN else "r-tele"
    call = {"type": "toolCall", "id": "t1", "name": "exec", "arguments": {"command": "rm -r old"}}
    messages: list[dict[str, object]] = [
        {"role": "user", "content": "clean up", "timestamp": NOW - 120_000,
         "__claw": {"id": "e1", "runId": run_id}},
    ]  # fmt: skip
    if run_id == "r-main":
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": "I'll delete it."}, call],
             "timestamp": NOW - 110_000, "stopReason": "toolUse", "provider": "p", "model": "m"},
            {"role": "toolResult", "toolCallId": "t1", "toolName": "exec", "isError": True,
             "timestamp": NOW, "content": [{"type": "text", "text": LOST_CALL}]},
        ]  # fmt: skip
    messages.append(
        {"role": "assistant", "content": [], "timestamp": NOW, "stopReason": "aborted",
         "errorMessage": INTERRUPTED_BY_RESTART}
    )  # fmt: skip
    return {"sessionKey": params["sessionKey"], "messages": messages}


def after_a_restart() -> FakeClient:
    client = FakeClient()
    left = [cut("r-main", MAIN, "clean up"), cut("r-tele", TELEGRAM, "[red]look[/] around")]
    client.answers["status"] = status(notices=[WAIT_NOTICE])
    client.answers["chat.history"] = history_of
    client.answers["runs.interrupted"] = lambda params: {"runs": list(left)}

    def settle(params: Mapping[str, object]) -> dict[str, object]:
        left[:] = [run for run in left if run["runId"] != params["runId"]]
        return {"ok": True, **params}

    client.answers["runs.resume"] = settle
    return client


async def run_command(c: Console, name: str) -> None:
    await c.press("escape", "colon")
    await c.pilot.press(*name)
    await c.press("enter")


async def on_interrupted(c: Console) -> InterruptedPage:
    await run_command(c, "interrupted")
    await c.until(lambda: isinstance(c.app.page, InterruptedPage), "page")
    await c.until(lambda: c.app.store.conversation(TELEGRAM).loaded, "conversations read")
    await c.settled()
    page = c.app.page
    assert isinstance(page, InterruptedPage)
    return page


@pytest.mark.parametrize("size", SIZES)
async def test_interrupted_runs_are_said_and_listed(size: tuple[int, int]) -> None:
    async with console(size, client=after_a_restart()) as c:
        text = c.screen_text()
        assert "2 interrupted" in text or "■2" in text
        assert "2 runs were interrupted" in text and ":interrupted" in text
        await on_interrupted(c)
        text = c.screen_text()
        for words in ("clean up", "rm -r old", "outcome unknown", "I'll delete it.", MAIN):
            assert words in text, words
        await c.press("j")
        assert "[red]look[/] around" in c.screen_text()
        assert "nothing of its answer was written to the conversation" in c.screen_text()
        await c.press("escape")
        assert c.app.screen is c.app.main


async def test_resume_with_an_unknown_outcome_asks_first_and_is_then_live() -> None:
    async with console(client=after_a_restart()) as c:
        await on_interrupted(c)
        await c.press("r")
        await c.until(lambda: "Whether it happened" in c.screen_text(), "asks")
        await c.press("escape")
        assert not c.client.asked("runs.resume")
        await c.press("r")
        await c.until(lambda: isinstance(c.app.screen, ArmedPage), "asks again")
        await c.armed()
        await c.press("y")
        await c.until(lambda: c.client.asked("runs.resume"), "resumed")
        assert c.client.asked("runs.resume") == [{"runId": "r-main", "action": "resume"}]
        await c.until(lambda: c.app.screen is c.app.main, "shown")
        s = Script("r-main", start=NOW + 1000)
        c.client.trace(
            s("run.queued", message="clean up", source="console", lane="main", waitingBehind=[]),
            s("run.started", model="m", provider="p", isAI=True, waitMs=0, cause="resume",
              messages=["r-main"]),
            s("text", callId="c1", delta="I look first."),
        )  # fmt: skip
        await c.settled()
        text = c.screen_text()
        assert "resumed" in text and "I look first." in text and text.count("clean up") >= 2
        assert "2 interrupted" not in text and "■2" not in text


async def test_resume_without_effects_needs_no_question_and_discard_lets_it_be() -> None:
    async with console(client=after_a_restart()) as c:
        await on_interrupted(c)
        await c.press("j", "r")
        await c.until(lambda: c.client.asked("runs.resume"), "resumed")
        assert c.client.asked("runs.resume")[0] == {"runId": "r-tele", "action": "resume"}
        await c.until(lambda: c.app.store.selected == TELEGRAM, "shown")
        await c.settled()
        await on_interrupted(c)
        await c.press("d")
        await c.until(lambda: len(c.client.asked("runs.resume")) == 2, "discarded")
        assert c.client.asked("runs.resume")[1] == {"runId": "r-main", "action": "discard"}
        c.client.emit("notice", {**WAIT_NOTICE, "level": "clear", "title": ""})
        await c.until(lambda: not c.app.store.interrupted and not c.app.store.refetch)
        await c.settled()
        assert "no run waits for a decision" in c.screen_text()
        assert "interrupted by the restart" not in c.screen_text()
        await c.press("r")
        assert "no run waits" in c.screen_text()


async def test_enter_on_the_notice_opens_the_runs() -> None:
    async with console(client=after_a_restart()) as c:
        await run_command(c, "notices")
        await c.until(lambda: isinstance(c.app.page, NoticesPage), "notices")
        assert f"{MAIN}, {TELEGRAM}" in c.screen_text()
        await c.press("enter")
        await c.until(lambda: isinstance(c.app.page, InterruptedPage), "runs")


@pytest.mark.parametrize("size", SIZES)
async def test_notices_stand_in_full_until_they_are_cleared(size: tuple[int, int]) -> None:
    async with console(size) as c:
        bad = {
            **WAIT_NOTICE,
            "code": "config.last_good",
            "level": "error",
            "title": "openclaw.json is broken",
            "text": DIFF,
            "hint": "claw doctor names the line",
        }
        c.client.emit("notice", bad)
        c.client.emit("notice", {**bad, "text": DIFF + "!"})
        c.client.emit("notice", {"code": "x", "level": "info", "title": "passing by", "ts": NOW})
        await c.settled()
        await run_command(c, "notices")
        await c.until(lambda: isinstance(c.app.page, NoticesPage), "notices")
        await c.settled()
        text = c.screen_text()
        for words in (*DIFF.split("\n"), "[bold]2!", "claw doctor names the line"):
            assert words in text, words
        assert text.count("openclaw.json is broken") == 2, "one row, one heading"
        c.client.emit("notice", {"code": "config.last_good", "level": "clear", "title": ""})
        await c.settled()
        assert "nothing stands" in c.screen_text()


def rule(rule_id: str, pattern: str, used: int | None, command: str | None) -> dict[str, object]:
    return {
        "id": rule_id,
        "agentId": "main",
        "pattern": pattern,
        "bound": False,
        "lastUsedAt": used,
        "lastUsedCommand": command,
        "lastResolvedPath": pattern,
    }


def with_rules() -> FakeClient:
    client = FakeClient()
    rules = [
        rule("u1", "/usr/bin/du", None, None),
        rule("u2", "/usr/bin/un*", NOW, "uname [b]-a[/] \u202e"),
    ]
    client.answers["exec.approvals.rules"] = lambda params: {"rules": list(rules)}

    def remove(params: Mapping[str, object]) -> dict[str, object]:
        gone = next(r for r in rules if r["id"] == params["id"])
        rules.remove(gone)
        return {"ok": True, "rule": gone}

    client.answers["exec.approvals.remove"] = remove
    return client


@pytest.mark.parametrize("size", SIZES)
async def test_rules_are_listed_and_one_key_takes_one_back(size: tuple[int, int]) -> None:
    async with console(size, client=with_rules()) as c:
        await c.press("f2", "tab")
        text = c.screen_text()
        assert text.index("/usr/bin/un*") < text.index("/usr/bin/du"), "last used first"
        assert "never" in text and "uname [b]-a[/] ⟪U+202E⟫" in text
        await c.press("u")
        await c.until(lambda: c.client.asked("exec.approvals.remove"), "removed")
        assert c.client.asked("exec.approvals.remove") == [{"id": "u2"}]
        await c.until(lambda: len(c.app.store.rules) == 1, "read again")
        await c.settled()
        text = c.screen_text()
        assert "rule removed: /usr/bin/un*" in text and "/usr/bin/du" in text
        await c.press("u")
        await c.until(lambda: not c.app.store.rules, "none left")
        await c.settled()
        assert "nothing runs unasked" in c.screen_text()
        await c.press("u")
        assert "no rule or grant to take back" in c.screen_text()


async def test_no_key_of_a_card_works_beside_the_queue() -> None:
    async with console(client=with_rules()) as c:
        c.client.emit("exec.approval.requested", record("a1", "touch x"))
        await c.settled()
        page = await c.open_queue()
        assert isinstance(page, ApprovalsScreen)
        await c.armed()
        for _ in range(2):
            await c.press("tab")
            c.clock.advance(5)
            await c.press("y", "n", "w", "r", "space", "enter")
        assert c.decided() == [] and page.section == "history"
        await c.press("tab")
        await c.until(lambda: c.app.keeper.state.written is not None, "card written")
        c.clock.advance(0.6)
        await c.press("y")
        await c.until(lambda: c.decided() == [("a1", "allow-once")], "armed anew")


async def test_a_new_rule_is_read_again() -> None:
    async with console(client=with_rules()) as c:
        asked = len(c.client.asked("exec.approvals.rules"))
        done = {**record("a1", "du"), "status": "resolved", "decision": "allow-always"}
        c.client.emit("exec.approval.resolved", done)
        await c.until(lambda: len(c.client.asked("exec.approvals.rules")) > asked, "read again")


@pytest.mark.parametrize("size", SIZES)
async def test_what_waits_stands_above_the_composer_until_its_turn(size: tuple[int, int]) -> None:
    """TU-08: queued items sit in a separate strip until dispatched."""
    async with console(size) as c:
        c.client.trace(*Script("r0").opening("first"))
        scripts = [Script(f"r{n}") for n in range(1, 6)]
        for n, s in enumerate(scripts):
            c.client.trace(
                s("run.queued", 100, message=f"wait-{n} [i]x", source="console", lane="main",
                  waitingBehind=["r0"], **({"steeredInto": "r0"} if n == 0 else {})),
            )  # fmt: skip
        await c.settled()
        lines = c.screen_text().split("\n")
        at = [i for i, text in enumerate(lines) if "queued" in text and "wait-" in text]
        assert len(at) == 3 and "+2 more" in lines[at[-1]] and "TYPE" in lines[at[-1] + 1]
        assert "wait-0 [i]x" in lines[at[0]] and "into run r0" in lines[at[0]]
        assert not any("wait-" in (b.text or "") for b in c.app.store.conversation().blocks)
        lead, member, *_ = scripts
        c.client.trace(
            member("run.started", cause="collected", answeredBy="r1", messages=["r2"], model="",
                   provider="", isAI=True, waitMs=1),
            lead("run.started", cause="message", messages=["r1", "r2"], model="m", provider="p",
                 isAI=True, waitMs=1),
        )  # fmt: skip
        await c.settled()
        text = c.screen_text()
        assert text.count("wait-0") == text.count("wait-1") == 1
        assert "more" not in text.split("TYPE")[0].split("wait-4")[-1]
        for s in scripts[2:]:
            c.client.trace(s("run.started", cause="message", messages=[s.run_id], model="m",
                             provider="p", isAI=True, waitMs=1))  # fmt: skip
        await c.settled()
        assert not c.app.main.query_one("#queued").display


async def test_a_bare_theme_reads_the_files_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text('name: mine\nprimary: "#010203"\n')
    monkeypatch.setattr(themes, "theme_dirs", lambda: [tmp_path])
    async with console(theme="mine") as c:
        assert c.app.current_theme.primary == "#010203"
        file.write_text('name: mine\nprimary: "#040506"\n')
        await run_command(c, "theme")
        await c.until(lambda: c.app.current_theme.primary == "#040506", "read again")
        assert c.app.theme == "mine"
        file.write_text("name: mine\nprimary: nonsense\n")
        await run_command(c, "theme")
        await c.until(lambda: "no colour" in c.screen_text(), "named")
        assert c.app.current_theme.primary == "#040506"
