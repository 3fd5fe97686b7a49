"""What is said in passing leaves; what stands leaves when it is over."""

from __future__ import annotations

import pytest

from claw_tui import app as app_room
from tests.tui.fake_client import record
from tests.tui.support import console


async def test_a_word_in_passing_leaves_the_toast_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_room, "TOAST_SECONDS", 0.2)
    async with console() as c:
        c.app.store.notice("error", "a standing trouble")
        c.app.store.notice("info", "stopping the run")
        await c.until(lambda: "stopping the run" in c.screen_text())
        await c.until(lambda: "stopping the run" not in c.screen_text(), "it leaves")
        await c.until(lambda: "a standing trouble" in c.screen_text())


async def test_a_full_disk_and_a_shutdown_leave_when_they_are_over() -> None:
    async with console() as c:
        disk = {"code": "state-disk-full", "level": "error", "title": "no room on the disk"}
        c.client.emit("notice", disk)
        c.client.emit("shutdown", {"reason": "restart"})
        await c.settled()
        assert "shutting down" in c.screen_text()
        c.app.store.connected({})
        await c.settled()
        assert "shutting down" not in c.screen_text() and "no room" in c.screen_text()
        c.client.emit("notice", {"code": "state-disk-full", "level": "clear"})
        await c.settled()
        assert "no room" not in c.screen_text()


async def test_the_request_line_names_the_one_that_the_queue_selects() -> None:
    async with console() as c:
        for name in ("a1", "a2", "a3"):
            c.client.emit("exec.approval.requested", record(name, f"touch {name}"))
        await c.settled()
        assert "touch a1" in c.screen_text() and "touch a3" not in c.screen_text()
        assert (await c.open_queue()).selected == "a1"
