"""The painter's timer: a loop that comes too late may skip frames, never all of them."""

from __future__ import annotations

import itertools

import pytest
from textual import _time

from tests.tui.support import SMALL, console


async def test_a_loop_that_is_always_late_paints_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = itertools.count(1.0, 60.0)  # Textual's timers find every moment long past

    class Late:
        sleep = staticmethod(_time.sleep)

        @staticmethod
        def get_time() -> float:
            return next(late)

    async with console(size=SMALL) as shown:
        monkeypatch.setattr("textual.timer._time", Late)
        shown.app.store.notice("warn", "seen after all")
        await shown.settled()
        assert "seen after all" in shown.screen_text()
