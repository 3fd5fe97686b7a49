from __future__ import annotations

from claw_engine.events import EventBus
from claw_engine.sessions.events import SessionsChanged


async def test_changes_that_wait_become_one() -> None:
    bus = EventBus()
    following = bus.subscribe("sessions")
    for key in ("a", "b", "a"):
        bus.publish(SessionsChanged(frozenset({key})))
    assert following.pending == 1
    assert following.get_nowait() == SessionsChanged(frozenset({"a", "b"}))
