"""Settings of the tools. A fresh install asks for every command: no safe bins, on-miss."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from claw_engine.config.sections.base import Count, Names, Section
from claw_engine.config.sections.box import ElevatedSettings
from claw_engine.config.sections.sandbox import ConfineSettings
from claw_engine.config.sections.toolpolicy import (
    ApplyPatchSettings,
    LoopSettings,
    PolicySettings,
    ScopedTools,
)


class ExecSettings(ConfineSettings, frozen=True):
    """`tools.exec`; `timeout_sec` in seconds, `background_ms` and `cleanup_ms` in ms.

    `host` is None when the file names none.
    """

    host: Literal["sandbox", "gateway", "node"] | None = None
    security: Literal["deny", "allowlist", "full"] = "allowlist"
    ask: Literal["off", "on-miss", "always"] = "on-miss"
    path_prepend: Names = ()
    safe_bins: Names = ()
    safe_bin_trusted_dirs: Names = ()
    safe_bin_profiles: dict[str, object] = field(default_factory=dict)
    background_ms: Count = 10_000
    timeout_sec: Count = 1800
    cleanup_ms: Count = 1_800_000
    notify_on_exit: bool = True
    notify_on_exit_empty_success: bool = False
    apply_patch: ApplyPatchSettings = ApplyPatchSettings()


class FsSettings(Section, frozen=True):
    workspace_only: bool = False


class ToolsSettings(PolicySettings, frozen=True):
    exec: ExecSettings = ExecSettings()
    fs: FsSettings = FsSettings()
    elevated: ElevatedSettings = ElevatedSettings()
    by_provider: dict[str, PolicySettings] = field(default_factory=dict)
    loop_detection: LoopSettings = LoopSettings()
    sandbox: ScopedTools = ScopedTools()
    subagents: ScopedTools = ScopedTools()
