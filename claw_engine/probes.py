"""What `claw doctor` looks at: each room adds its probes here, nobody else knows them.

A probe only looks and says what it found; it repairs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

log = logging.getLogger("claw.engine")


class Health(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Found(Struct, frozen=True):
    """One line of the report; `name` says what was looked at, `hint` what helps."""

    name: str
    health: Health
    text: str
    hint: str = ""


Look: TypeAlias = Callable[[], Awaitable[Sequence[Found]]]


class Probes:
    """Rooms add theirs at wiring; `run` asks them all, in that order."""

    def __init__(self) -> None:
        self._looks: dict[str, Look] = {}

    def add(self, room: str, look: Look) -> None:
        """Raises ValueError when the room has one already."""
        if room in self._looks:
            raise ValueError(f"two probes of {room}")
        self._looks[room] = look

    async def run(self) -> Sequence[tuple[str, Found]]:
        """What every room found; one that fails says so and keeps nobody else from looking."""
        rows: list[tuple[str, Found]] = []
        for room, look in self._looks.items():
            try:
                found = await look()
            except Exception as error:
                log.exception("probe of %s failed", room)
                found = [Found(room, Health.FAIL, f"The probe itself failed: {error}.")]
            rows += [(room, row) for row in found]
        return rows


def to_wire(rows: Sequence[tuple[str, Found]]) -> list[Mapping[str, object]]:
    """As `doctor.probes` sends them."""
    return [
        {
            "room": room,
            "name": found.name,
            "health": found.health.value,
            "text": found.text,
            "hint": found.hint,
        }
        for room, found in rows
    ]
