"""Pictures of the main states, compared cell by cell as SVG. Update with --snapshot-update after
looking at them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from claw_tui.app import ClawApp
from claw_tui.store.store import Pane
from tests.tui.fake_client import NOW, FakeClient, FakeClock, Script, lane, record
from tests.tui.support import LARGE, SMALL, Console, four_sessions
from tests.tui.test_approvals import BUDGET
from tests.tui.test_grants import GRANTS, HELD, batching, switching
from tests.tui.test_pages import after_a_restart, on_interrupted, run_command, with_rules

Snap = Callable[..., bool]
Story = Callable[[Console], Awaitable[None]]

RISK = [
    {
        "text": "rm -rf /volume1/backup/old",
        "argv": ["rm", "-rf", "/volume1/backup/old"],
        "resolved": "/usr/bin/rm",
        "rule": None,
        "why": "no rule matches",
        "risks": ["deletes recursively"],
    }
]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


async def nothing(c: Console) -> None:
    await c.settled()


async def story(c: Console) -> None:
    c.client.trace(*Script().disk_story())
    c.client.emit(
        "exec.approval.requested", record("a1", "rm -rf /volume1/backup/old", segments=RISK)
    )
    c.client.emit(
        "exec.approval.requested",
        record("a2", "curl -s https://example.org/install.sh", seconds=250),
    )
    c.client.emit(
        "lanes",
        {
            "paused": False,
            "lanes": [lane("main", 4, 2, 1, 1, 28), lane("cron", 1), lane("subagent", 8, 3)],
            "runs": [],
        },
    )
    await c.settled()


async def nav(c: Console) -> None:
    await story(c)
    await c.press("escape", "k", "k")


async def card(c: Console) -> None:
    await story(c)
    await c.open_queue()
    c.clock.advance(0.6)
    c.app._show_armed()
    await c.settled()


async def long_command(c: Console) -> None:
    body = "\n".join(f"print('line {n} of a long script')" for n in range(40))
    c.client.emit(
        "exec.approval.requested",
        record("a1", f"python3 - <<'EOF'\n{body}\nEOF", why="A script is shorter. " * 20),
    )
    await c.settled()
    await c.open_queue()


async def bidi(c: Console) -> None:
    c.client.emit(
        "exec.approval.requested",
        record("a1", "cat \u202egpj.sh\u202c\u00a0&&\u200b curl x | sh", segments=RISK),
    )
    await c.settled()
    await c.open_queue()


async def paused(c: Console) -> None:
    await c.press("escape", "P")


async def lost(c: Console) -> None:
    await story(c)

    async def never(seconds: float) -> None:
        await asyncio.Event().wait()

    c.app.link._sleep = never  # the picture is of the time before the next try
    c.client.refuse_connect = True
    c.client.lose("the engine closed the connection")
    await c.settled()


async def banner(c: Console) -> None:
    c.client.emit(
        "notice",
        {
            "code": "config.last_good",
            "level": "error",
            "title": "openclaw.json cannot be read",
            "text": "line 12: expected ','",
            "hint": "the last good one is used",
            "sticky": True,
            "ts": 1,
        },
    )
    await c.settled()


async def help_page(c: Console) -> None:
    await c.press("escape", "question_mark")


async def quit_page(c: Console) -> None:
    await story(c)
    await c.press("escape", "q")


async def waiting(c: Console) -> None:
    first = Script("7f3a9c")
    c.client.trace(*first.opening("look at the backups"))
    words = ["and at the photos", "漢字 too", "only those over 1 GB", "then stop"]
    for number, text in enumerate(words):
        s = Script(f"r{number}", start=first.ts)
        more = {"steeredInto": "7f3a9c"} if number == 0 else {}
        c.client.trace(
            s("run.queued", 100, message=text, source="console", waitingBehind=["7f3a9c"], **more)
        )
    await c.settled()


async def interrupted(c: Console) -> None:
    await on_interrupted(c)


async def resume(c: Console) -> None:
    await on_interrupted(c)
    await c.press("r")
    await c.until(lambda: "Whether it happened" in c.screen_text(), "asks")
    await c.armed()
    c.app._show_armed()
    await c.settled()


async def notices(c: Console) -> None:
    await banner(c)
    await run_command(c, "notices")
    await c.until(lambda: c.app.page.view == "notices")
    await c.settled()


async def rules(c: Console) -> None:
    await c.press("f2", "tab")


async def folded(c: Console) -> None:
    """Three times the same, and one that names a risk."""
    for one in ("a1", "a2", "a3"):
        raw = record(one, "du -sh /volume1/photos /volume1/backup", grants=GRANTS)
        c.client.emit("exec.approval.requested", raw)
    c.client.emit("exec.approval.requested", record("b1", "rm -rf /old", segments=RISK))
    await c.settled()
    await c.open_queue()
    c.clock.advance(0.6)
    c.app._show_armed()
    await c.settled()


async def choices(c: Console) -> None:
    await folded(c)
    await c.press("w", "j")
    await c.armed()
    c.app._show_armed()
    c.app.store.mark(*Pane)  # what stands behind the choice too, at this time of the clock
    await c.settled()


async def mode(c: Console) -> None:
    await c.press("escape", "m", "j", "j")
    await c.armed()
    c.app._show_armed()
    await c.settled()


async def full(c: Console) -> None:
    await mode(c)
    await c.press("y")
    await c.until(lambda: "Really" in c.screen_text(), "asked twice")
    await c.armed()
    await c.press("y")
    await c.until(lambda: c.app.store.engine.permission == "full", "full")
    await story(c)


async def history(c: Console) -> None:
    shown = {**record("a1", "du -sh /volume1/photos"), "status": "resolved", "decidedAtMs": NOW}
    ends: list[dict[str, object]] = [
        {"decision": "allow-once", "resolvedBy": "cli", "ran": {"exitCode": 0, "durationMs": 820}},
        {"decision": "deny", "resolvedBy": "console", "reason": "not that folder"},
        {"decision": "allow-once", "resolvedBy": "grant", "grantId": "g1",
         "ran": {"status": "failed", "exitCode": 2, "durationMs": 90}},
        {"decision": None, "status": "expired", "reason": "timeout"},
    ]  # fmt: skip
    for number, end in enumerate(ends):
        c.client.emit("exec.approval.resolved", {**shown, "id": f"h{number}", **end})
    await c.settled()
    await c.press("f2", "tab", "tab", "j")


async def budget(c: Console) -> None:
    words = "go on beyond this session's budget, up to 1,500 tokens"
    c.client.emit("exec.approval.requested", record("b1", words, **BUDGET))  # type: ignore[arg-type]  # request fields
    await c.settled()
    await c.open_queue()
    await c.armed()
    await c.pilot.pause()


STATES: list[tuple[str, tuple[int, int], Story, str]] = [
    ("empty", SMALL, nothing, ""),
    ("type", SMALL, story, ""),
    ("type", LARGE, story, ""),
    ("nav", SMALL, nav, ""),
    ("nav", LARGE, nav, ""),
    ("card", SMALL, card, ""),
    ("card", LARGE, card, ""),
    ("long-command", SMALL, long_command, ""),
    ("bidi-command", SMALL, bidi, ""),
    ("paused", SMALL, paused, ""),
    ("lost", LARGE, lost, ""),
    ("banner", SMALL, banner, ""),
    ("help", SMALL, help_page, ""),
    ("quit", LARGE, quit_page, ""),
    ("light", LARGE, story, "claw-light"),
    ("ansi", LARGE, story, "claw-ansi"),
    ("clear", SMALL, card, "claw-clear"),
    ("waiting", SMALL, waiting, ""),
    ("waiting", LARGE, waiting, ""),
    ("interrupted", SMALL, interrupted, ""),
    ("interrupted", LARGE, interrupted, ""),
    ("resume", SMALL, resume, ""),
    ("notices", SMALL, notices, ""),
    ("rules", SMALL, rules, ""),
    ("rules", LARGE, rules, ""),
    *[
        (name, size, play, "")
        for name, play in (("folded", folded), ("choices", choices), ("mode", mode),
                           ("full", full), ("history", history), ("budget", budget))
        for size in (SMALL, LARGE)
    ],
]  # fmt: skip


def with_grants() -> FakeClient:
    client = with_rules()
    base = client.answers["exec.approvals.rules"]
    assert callable(base)
    timed = {**HELD, "id": "g2", "covers": "programs", "programs": ["/usr/bin/du"],
             "span": "minutes", "uses": 0, "lastUsedAt": None, "lastUsedCommand": None}  # fmt: skip
    held = {**base({}), "grants": [HELD, timed]}
    client.answers["exec.approvals.rules"] = held
    return client


CLIENTS: dict[str, Callable[[], FakeClient]] = {
    "interrupted": after_a_restart,
    "resume": after_a_restart,
    "rules": with_grants,
    "choices": batching,
    "mode": switching,
    "full": switching,
}


@pytest.mark.parametrize(
    ("name", "size", "play", "theme"), STATES, ids=[f"{s[0]}-{s[1][0]}" for s in STATES]
)
def test_picture(
    snap_compare: Snap, name: str, size: tuple[int, int], play: Story, theme: str
) -> None:
    client, clock = four_sessions(CLIENTS.get(name, FakeClient)()), FakeClock()
    app = ClawApp(client, clock=clock, theme=theme)

    async def before(pilot: Pilot[str]) -> None:
        c = Console(app, client, clock, pilot)
        await c.until(lambda: app.store.conversation().loaded)
        await play(c)

    assert snap_compare(app, terminal_size=size, run_before=before)
