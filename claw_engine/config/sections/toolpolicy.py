"""Settings that say which tools there are: profiles, allow and deny lists, the loop detector.

Names and defaults: OpenClaw 2026.2.26. What the lists mean is decided in tools/policy.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from claw_engine.config.sections.base import Count, Names, Section

Profile = Literal["minimal", "coding", "messaging", "full"]


class ToolLists(Section, frozen=True):
    """One scope's lists. None means: not given; `allow` and `also_allow` exclude each other."""

    allow: Names | None = None
    also_allow: Names | None = None
    deny: Names | None = None

    def __post_init__(self) -> None:
        if self.allow is not None and self.also_allow is not None:
            raise ValueError(
                "allow and alsoAllow exclude each other in one place: allow is the whole list, "
                "alsoAllow adds to what the profile gives"
            )


class PolicySettings(ToolLists, frozen=True):
    """Lists with a profile: `tools.byProvider.*`."""

    profile: Profile | None = None


class ScopedTools(Section, frozen=True):
    """`tools.sandbox` and `tools.subagents`: lists for such sessions only."""

    tools: ToolLists = ToolLists()


class LoopDetectors(Section, frozen=True):
    generic_repeat: bool | None = None
    known_poll_no_progress: bool | None = None
    ping_pong: bool | None = None


class LoopSettings(Section, frozen=True):
    """`tools.loopDetection`; None means: the agent takes the global value, that one the default."""

    enabled: bool | None = None
    history_size: Count | None = None
    warning_threshold: Count | None = None
    critical_threshold: Count | None = None
    global_circuit_breaker_threshold: Count | None = None
    detectors: LoopDetectors = LoopDetectors()


class ApplyPatchSettings(Section, frozen=True):
    """`tools.exec.applyPatch`: off unless asked for, then for models of OpenAI only."""

    enabled: bool = False
    workspace_only: bool = True
    allow_models: Names = ()


class AgentTools(PolicySettings, frozen=True):
    """`agents.list[].tools`."""

    by_provider: dict[str, PolicySettings] = field(default_factory=dict)
    loop_detection: LoopSettings = LoopSettings()
    sandbox: ScopedTools = ScopedTools()
