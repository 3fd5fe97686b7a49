"""Settings of the log file and of what is hidden in it."""

from __future__ import annotations

from typing import Literal

from claw_engine.config.sections.base import Count, Names, Section

Level = Literal["silent", "fatal", "error", "warn", "info", "debug", "trace"]


class LoggingSettings(Section, frozen=True):
    """`file` None means `<state>/logs/claw-YYYY-MM-DD.log`; sizes in bytes."""

    level: Level = "info"
    console_level: Level = "info"
    file: str | None = None
    max_file_bytes: Count = 500 * 1024 * 1024
    redact_sensitive: Literal["off", "tools"] = "tools"
    redact_patterns: Names = ()
