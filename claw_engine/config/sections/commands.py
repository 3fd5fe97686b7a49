"""Settings of what may be asked of the engine itself."""

from __future__ import annotations

from claw_engine.config.sections.base import Section


class CommandsSettings(Section, frozen=True):
    """`restart`: whether a signal (SIGUSR1) may restart the engine."""

    restart: bool = True
