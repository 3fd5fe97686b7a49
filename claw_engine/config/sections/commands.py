"""Settings of what may be asked of the engine itself, and by whom."""

from __future__ import annotations

from typing import Annotated, Literal

from claw_engine.config.sections.base import Names, Section
from claw_engine.shapes import Before


def _texts(value: object) -> object:
    """Ids of people are often plain numbers."""
    if not isinstance(value, list):
        return value
    return [str(i) if isinstance(i, int) and not isinstance(i, bool) else i for i in value]


class CommandsSettings(Section, frozen=True):
    """`restart`: whether a signal (SIGUSR1) may restart the engine. `owner_…` say whose messages
    are the user's own, and whether the model reads their ids or a hash of them."""

    restart: bool = True
    owner_allow_from: Annotated[Names, Before(_texts)] = ()
    owner_display: Literal["raw", "hash"] = "raw"
    owner_display_secret: str | None = None
