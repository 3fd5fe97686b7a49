"""Floods of tokens and long histories: nothing is lost, the end comes first. What they cost is
measured by `bench.painting`."""

from __future__ import annotations

from claw_tui.store.store import Store
from tests.tui.fake_client import MAIN, NOW, Script
from tests.tui.support import LARGE, console


def test_the_store_takes_twenty_thousand_deltas() -> None:
    store, s = Store(), Script()
    for event in s.opening("long"):
        store.apply("trace", event)
    events = [s("text", callId="c1", delta="word ") for _ in range(20_000)]
    for event in events:
        store.apply("trace", event)
    assert len(store.conversation().blocks[-1].text) == 100_000


async def test_of_five_thousand_streamed_tokens_none_is_lost() -> None:
    async with console(LARGE) as c:
        s = Script()
        c.client.trace(*s.opening("long"))
        await c.settled()
        for n in range(100):
            c.client.trace(*[s("text", callId="c1", delta=f"t{n * 50 + i} ") for i in range(50)])
            await c.pilot.pause(0.01)
        await c.settled()
        assert "t4999" in c.screen_text()
        assert len(c.app.store.conversation().blocks[-1].text.split()) == 5000


async def test_a_long_history_shows_its_end_first() -> None:
    from tests.tui.fake_client import FakeClient

    client = FakeClient()
    messages = []
    for n in range(100):
        messages.append({"role": "user", "content": f"question {n}", "timestamp": NOW + n})
        messages.append(
            {
                "role": "assistant",
                "provider": "x",
                "model": "y",
                "stopReason": "stop",
                "timestamp": NOW + n,
                "content": [{"type": "text", "text": f"## answer {n}\n\n" + "- **a** `b`\n" * 20}],
            }
        )
    client.answers["chat.history"] = {"sessionKey": MAIN, "messages": messages}
    async with console(LARGE, client=client) as c:
        view = c.app.main.conversation
        await c.until(lambda: all(p.final for p in view._painted.values()) and view._painted)
        assert view.following
        assert "- " not in c.screen_text().split("Lanes")[0]
        assert "•" in c.screen_text()
