"""Wires the usage room to the state directory, the settings and the notice board."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from claw_engine.agent.options import local_timezone
from claw_engine.config.settings import Settings
from claw_engine.notices import NoticeBoard
from claw_engine.paths import StateDir
from claw_engine.usage.calibration import Calibration
from claw_engine.usage.ledger import UNREAD, Ledger
from claw_engine.usage.meter import Meter
from claw_engine.world import World

UNWRITTEN = "usage-unwritten"
"""The notice that stands while the ledger cannot be read or written."""
ANEW = "usage-damaged"
"""The notice that stands when a damaged ledger was put aside."""


def meter_for(
    world: World, state: StateDir, board: NoticeBoard, settings: Callable[[], Settings],
    session_id: Callable[[str], str],
) -> Meter:  # fmt: skip
    """The engine's meter; nothing is read before it is needed."""

    def trouble(why: str) -> None:
        if not why:
            board.clear(UNWRITTEN)
            return
        title = "What models cost is not written down at the moment."
        hint = "It is kept in memory meanwhile."
        if why.endswith(UNREAD):
            title = "What models cost can neither be read nor written down at the moment."
            hint = why  # says which file, and what the budgets count
        board.tell(UNWRITTEN, "warn", title, text=why, hint=hint, sticky=True)

    def anew(kept: Path) -> None:
        board.tell(
            ANEW, "warn", "The ledger of what models cost was damaged: its sums and the budgets "
            "began anew, from nothing spent.",
            hint=f"The old file is kept as {kept}. What was spent before does not count any more.",
            sticky=True,
        )  # fmt: skip

    return Meter(
        world.clock,
        Ledger(world, state.usage_db, trouble, anew),
        Calibration(world, state.calibration_json),
        lambda: settings().budgets,
        lambda: timezone_of(settings()),
        session_id,
        lambda code, title: board.tell(code, "warn", title),
    )


def timezone_of(settings: Settings) -> str:
    """The person's time zone: where days begin."""
    return settings.agents.defaults.user_timezone or local_timezone()
