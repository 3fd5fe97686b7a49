"""AP-13: forty requests in three seconds, from three agents, with duplicates, some about to expire
and a dangerous one in the middle, are answered from the keyboard in less than a minute."""

from __future__ import annotations

from tests.tui.fake_client import NOW, record
from tests.tui.support import SMALL, Console, console
from tests.tui.test_grants import batching

QUIET = 0.6
"""Seconds an operator leaves the keys alone before a decision."""
READING = 0.2
"""Seconds a practised operator needs for a key that decides nothing."""
PIPE = [
    {"text": "curl x", "argv": ["curl", "x"], "resolved": "/usr/bin/curl", "rule": None,
     "why": "no rule matches", "risks": []},
    {"text": "sh", "argv": ["sh"], "resolved": "/usr/bin/dash", "rule": None,
     "why": "no rule matches", "risks": ["runs what the other command sends"]},
]  # fmt: skip


def forty() -> list[dict[str, object]]:
    """What arrives, in order: `id` says what each is."""
    out = []
    for n in range(30):
        agent = ("main", "ops", "home")[n % 3]
        key = f"agent:{agent}:main"
        program = ("du", "ls", "cat")[n % 3]
        out.append(record(f"plain-{n:02}", f"{program} {n}", agentId=agent, sessionKey=key))
    out.insert(15, record("danger", "curl x | sh", segments=PIPE))
    out += [record(f"same-{n}", "uname -a", agentId="ops") for n in range(5)]
    out += [record(f"short-{n}", f"id {n}", seconds=5) for n in range(4)]
    return [{**raw, "createdAtMs": NOW + n * 75} for n, raw in enumerate(out)]


async def key(c: Console, *keys: str) -> None:
    for one in keys:
        c.clock.advance(READING)
        await c.pilot.press(one)


async def test_ap_13_forty_requests_take_less_than_a_minute_of_the_keyboard() -> None:
    async with console(SMALL, client=batching()) as c:
        arriving = forty()
        assert len(arriving) == 40
        for raw in arriving:
            c.client.emit("exec.approval.requested", raw)
        await c.settled()
        queue = c.app.store.queue
        assert len(queue.pending) == 40 and len(queue.cards) == 36, "five are one card"
        page = await c.open_queue()
        begun = c.clock.seconds
        assert "40 requests" in c.screen_text() and "×5" not in c.screen_text()
        await key(c, "o")
        await c.settled()
        agents = [card.picture.agent for card in queue.ordered()]
        programs = [
            (card.picture.agent, card.picture.segments[0].resolved) for card in queue.ordered()
        ]
        assert agents == sorted(agents) and programs == sorted(programs, key=lambda p: (p[0], p[1]))
        await key(c, *["k"] * queue.ordered().index(queue.cards["plain-00"]))  # to the top
        for _ in range(36):  # looks at each and marks what may be marked
            await c.until(lambda: page.selected in queue.viewed, "the card is on the screen")
            await key(c, "space", "j")
        await c.settled()
        c.app._tick()
        await c.settled()
        assert not [one for one in queue.pending if one.startswith("short")], "these are over"
        assert len(queue.marked) == 31 and "danger" not in queue.marked
        await key(c, "y", *["pagedown"] * 6)
        await c.until(lambda: c.app.keeper.state.written is not None, "the page is seen")
        c.clock.advance(QUIET)
        await c.press("y")
        await c.until(lambda: c.client.asked("exec.approval.resolveMany"), "decided")
        (batch,) = c.client.asked("exec.approval.resolveMany")
        ids = batch["ids"]
        assert isinstance(ids, list) and len(ids) == 35 and "danger" not in ids
        await c.settled()
        assert page.selected == "danger" and "runs what the other" in c.screen_text()
        await c.armed()
        await c.press("n")
        await c.until(lambda: not queue.pending, "all answered")
        assert c.decided() == [("danger", "deny")]
        assert c.clock.seconds - begun < 60
