"""More than once: identical requests on one card, grants as choices, the permission mode, and
what runs unasked with one key to undo it."""

from __future__ import annotations

import pytest

from claw_tui.screens.ask import ArmedPage
from claw_tui.screens.choose import ChoicePage
from tests.tui.fake_client import NOW, TELEGRAM, FakeClient, record, status
from tests.tui.support import LARGE, SMALL, Console, console

OFFERS = [
    {"covers": "exact", "span": "minutes", "minutes": 15, "words": "exactly this, for 15 minutes"},
    {"covers": "exact", "span": "session", "words": "exactly this, until the session begins anew"},
    {"covers": "exact", "span": "lasting", "words": "exactly this, until you take it back"},
    {"covers": "programs", "span": "minutes", "minutes": 15, "words": "touch, 15 minutes"},
    {"covers": "programs", "span": "session", "words": "touch, this session"},
]
GRANTS = {"refusal": None, "offers": OFFERS}


def batching() -> FakeClient:
    """An engine that answers several at once."""
    client = FakeClient()

    def many(params: object) -> dict[str, object]:
        assert isinstance(params, dict)
        rows = []
        for one in params["ids"]:
            record_ = client._resolve({**params, "id": one})["record"]
            rows.append({"id": one, "ok": True, "record": record_})
        return {"ok": True, "results": rows}

    client.answers["exec.approval.resolveMany"] = many
    return client


async def same(c: Console, *ids: str) -> None:
    for one in ids:
        c.client.emit("exec.approval.requested", record(one, "touch x", grants=GRANTS))
    await c.settled()


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_y_decides_exactly_those_counted_when_it_armed(size: tuple[int, int]) -> None:
    async with console(size, client=batching()) as c:
        await same(c, "a1", "a2", "a3")
        page = await c.open_queue()
        text = c.screen_text()
        for words in ("×3", "3 times the same", "all 3", "esc later",
                      "always: /usr/bin/touch with any arguments"):  # fmt: skip
            assert words in text, words
        await c.armed()
        await same(c, "late")
        assert "×3" in c.screen_text()
        await c.press("y")
        await c.until(lambda: c.client.asked("exec.approval.resolveMany"))
        assert c.client.asked("exec.approval.resolveMany") == [
            {"ids": ["a1", "a2", "a3"], "decision": "allow-once"}
        ]
        await c.settled()
        assert page.selected == "late" and list(c.app.store.queue.pending) == ["late"]
        await c.press("y")
        assert len(c.client.asked("exec.approval.resolveMany")) == 1, "the new card waits anew"


async def test_one_more_before_the_card_is_armed_starts_the_wait_again() -> None:
    async with console(client=batching()) as c:
        await same(c, "a1")
        await c.open_queue()
        c.clock.advance(0.4)
        await same(c, "a2")
        assert "×2" in c.screen_text()
        await c.until(lambda: c.app.keeper.state.written is not None, "drawn again")
        c.clock.advance(0.2)
        await c.press("y")
        assert not c.client.asked("exec.approval.resolveMany") and not c.decided()
        await c.armed()
        await c.press("n")
        await c.until(lambda: c.client.asked("exec.approval.resolveMany"))
        assert c.client.asked("exec.approval.resolveMany")[0] == {
            "ids": ["a1", "a2"], "decision": "deny",
        }  # fmt: skip


async def test_w_offers_the_narrowest_first_and_each_choice_waits_for_its_own_silence() -> None:
    async with console(client=batching()) as c:
        await same(c, "a1")
        await c.open_queue()
        await c.press("w")
        page = c.app.screen
        assert isinstance(page, ChoicePage)
        text = c.screen_text()
        for words in ("this command   15 min", "for good", "any arguments", "a rule",
                      "Without asking: exactly this, for 15 minutes"):  # fmt: skip
            assert words in text, words
        await c.armed()
        await c.press("j")
        assert page.chosen == "exact-session"
        await c.press("y")
        assert c.client.asked("exec.approval.resolve") == []
        await c.armed()
        await c.press("y")
        await c.until(lambda: c.client.asked("exec.approval.resolve"))
        assert c.client.asked("exec.approval.resolve") == [
            {"id": "a1", "decision": "allow-once", "grant": {"covers": "exact", "span": "session"}}
        ]


async def test_a_shell_has_exact_grants_and_says_why_no_rule() -> None:
    async with console() as c:
        refused = {"patterns": [], "refusal": "sh is a shell", "recentMatches": []}
        offers = {"refusal": None, "offers": OFFERS[:3]}
        c.client.emit(
            "exec.approval.requested", record("a1", "sh x", always=refused, grants=offers)
        )
        await c.settled()
        await c.open_queue()
        assert "no always: sh is a shell" in c.screen_text()
        await c.press("w")
        text = c.screen_text()
        assert "No rule: sh is a shell." in text and "any arguments" not in text
        await c.press("escape")
        assert c.decided() == []


# ── what runs unasked ───────────────────────────────────────────────────────────────────────

HELD: dict[str, object] = {
    "id": "g1", "agentId": "main", "sessionKey": TELEGRAM, "covers": "exact", "span": "session",
    "untilMs": NOW + 3_600_000, "command": "touch x", "cwd": "/volume1", "programs": [],
    "madeAtMs": NOW, "madeBy": "console", "uses": 3, "lastUsedAt": NOW,
    "lastUsedCommand": "touch x", "sandbox": "none",
}  # fmt: skip


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_a_grant_is_listed_with_its_end_and_taken_back_with_one_key(
    size: tuple[int, int],
) -> None:
    client = FakeClient()
    held = [HELD]
    client.answers["exec.approvals.rules"] = lambda params: {"rules": [], "grants": list(held)}
    client.answers["exec.approvals.remove"] = lambda params: {"ok": True, "grant": held.pop()}
    async with console(size, client=client) as c:
        await c.press("f2", "tab")
        text = c.screen_text()
        for words in ("grant", "exactly this command", "3 uses", "telegram:42", "by console"):
            assert words in text, words
        await c.press("u")
        await c.until(lambda: not c.app.store.rules)
        await c.settled()
        assert client.asked("exec.approvals.remove") == [{"id": "g1"}]
        assert "grant removed: touch x" in c.screen_text()


async def test_lists_follow_what_another_console_does() -> None:
    client = FakeClient()
    held: list[object] = []
    client.answers["exec.approvals.rules"] = lambda params: {"rules": [], "grants": list(held)}
    async with console(client=client) as c:
        held.append(HELD)
        c.client.emit("exec.approvals.changed", {})
        await c.until(lambda: c.app.store.rules)
        await same(c, "a1")
        done = {**record("a1", "touch x"), "status": "resolved", "decision": "deny",
                "resolvedBy": "cli", "decidedAtMs": NOW}  # fmt: skip
        c.client.emit("exec.approval.resolved", done)
        await c.settled()
        assert "denied by cli: touch x" in c.screen_text()


async def test_the_history_says_who_when_how_and_what_came_of_it() -> None:
    async with console() as c:
        done = {**record("a1", "touch x"), "status": "resolved", "decision": "allow-once",
                "resolvedBy": "cli", "decidedAtMs": NOW, "reason": "fine"}  # fmt: skip
        c.client.emit("exec.approval.resolved", done)
        c.client.emit("exec.approval.resolved", {**done, "id": "a2", "decision": "deny"})
        c.client.emit("exec.approval.ran", {"id": "a1", "ran": {"exitCode": 3, "durationMs": 800}})
        await c.settled()
        await c.press("f2", "tab", "tab", "j")
        text = c.screen_text()
        for words in ("once by cli", "fine", "exit 3 · 0.8 s", "request a1", "/volume1"):
            assert words in text, words
        await c.press("k")
        assert "denied by cli" in c.screen_text()


# ── permission modes ────────────────────────────────────────────────────────────────────────


def switching() -> FakeClient:
    client = FakeClient()

    def put(params: object) -> dict[str, object]:
        assert isinstance(params, dict)
        full = params["mode"] == "full"
        until = NOW + 3_600_000 if full else None
        return {"mode": params["mode"], "fullUntilMs": until, "bypassWarning": None}

    client.answers["permission.set"] = put
    client.answers["permission.get"] = {"mode": "guarded", "fullUntilMs": None}
    return client


async def test_the_mode_is_switched_with_the_sentence_of_what_it_opens() -> None:
    async with console(client=switching()) as c:
        await c.press("escape", "m")
        assert isinstance(c.app.screen, ChoicePage)
        assert "guarded" in c.screen_text() and "(now)" in c.screen_text()
        await c.press("k")
        assert "It runs no command" in c.screen_text()
        await c.armed()
        await c.press("y")
        await c.until(lambda: c.client.asked("permission.set"))
        assert c.client.asked("permission.set") == [{"mode": "look"}]
        await c.settled()
        assert " look " in c.screen_text().splitlines()[0]


async def test_full_is_confirmed_twice_and_never_leaves_the_status_line() -> None:
    async with console(client=switching()) as c:
        await c.press("escape", "m", "j", "j")
        await c.armed()
        await c.press("y")
        await c.until(lambda: type(c.app.screen) is ArmedPage, "asked again")
        assert c.client.asked("permission.set") == []
        assert "Every agent and every session" in c.screen_text()
        await c.press("y")
        assert c.client.asked("permission.set") == [], "its own silence comes first"
        await c.armed()
        await c.press("y")
        await c.until(lambda: c.client.asked("permission.set") == [{"mode": "full"}])
        await same(c, "a1", "a2")
        await c.pilot.resize_terminal(60, 16)
        for view in ("8", "1", "9"):
            await c.press(view)
            assert "FULL until" in c.screen_text().splitlines()[0]
        c.client.answers["permission.get"] = {"mode": "guarded", "fullUntilMs": None}
        over = {"code": "permission-mode", "level": "info", "title": "over", "text": "", "hint": ""}
        c.client.emit("notice", {**over, "sticky": False, "ts": 1})
        await c.until(lambda: c.app.store.engine.permission == "guarded")
        await c.settled()
        assert "FULL" not in c.screen_text().splitlines()[0]


async def test_a_gateway_without_modes_says_so() -> None:
    client = FakeClient()
    client.answers["status"] = status()
    async with console(client=client) as c:
        await c.press("escape", "m")
        assert "no permission modes" in c.screen_text()
