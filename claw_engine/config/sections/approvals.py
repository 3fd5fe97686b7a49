"""Settings of approvals: how long a request waits, and the permission mode.

Our own keys live in one section, `claw`, which OpenClaw does not know.
"""

from __future__ import annotations

from typing import Literal

from claw_engine.config.sections.base import Count, Section
from claw_engine.config.sections.budgets import BudgetsSettings

DEFAULT_TIMEOUT_MS = 30 * 60 * 1000

PermissionMode = Literal["look", "guarded", "workspace", "full"]
ResumePolicy = Literal["ask", "auto", "never"]
"""What becomes of a run that a restart cut short."""
Durability = Literal["power", "process"]
"""What an acknowledged message survives: a power cut, or only the end of the process."""


class TraceSettings(Section, frozen=True):
    """What is kept of runs (docs/trace.md); age in days, size in MB."""

    enabled: bool = True
    max_age_days: Count = 30
    max_mb: Count = 500


class ClawSettings(Section, frozen=True):
    """The `claw` section: what this engine adds. Times in ms."""

    permission_mode: PermissionMode = "guarded"
    approval_timeout_ms: Count = DEFAULT_TIMEOUT_MS
    resume: ResumePolicy = "ask"
    durability: Durability = "power"
    trace: TraceSettings = TraceSettings()
    budgets: BudgetsSettings = BudgetsSettings()


class ApprovalsSettings(Section, frozen=True):
    """How long a request waits for an answer, in ms (`claw.approvalTimeoutMs`)."""

    timeout_ms: Count = DEFAULT_TIMEOUT_MS
