"""Settings of scheduled runs that the lanes need."""

from __future__ import annotations

from claw_engine.config.sections.base import Count, Section


class CronSettings(Section, frozen=True):
    max_concurrent_runs: Count = 1
