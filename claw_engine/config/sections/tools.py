"""Settings of the tools. A fresh install asks for every command: no safe bins, on-miss."""

from __future__ import annotations

from typing import Literal

from claw_engine.config.sections.base import Count, Names, Section, defaults
from claw_engine.config.sections.sandbox import ConfineSettings


class ExecSettings(ConfineSettings):
    """`tools.exec`; `timeout_sec` in seconds, `background_ms` and `cleanup_ms` in ms.

    `host` is None when the file names none.
    """

    host: Literal["sandbox", "gateway", "node"] | None = None
    security: Literal["deny", "allowlist", "full"] = "allowlist"
    ask: Literal["off", "on-miss", "always"] = "on-miss"
    path_prepend: Names = ()
    safe_bins: Names = ()
    safe_bin_trusted_dirs: Names = ()
    safe_bin_profiles: dict[str, object] = {}
    background_ms: Count = 10_000
    timeout_sec: Count = 1800
    cleanup_ms: Count = 1_800_000
    notify_on_exit: bool = True
    notify_on_exit_empty_success: bool = False


class FsSettings(Section):
    workspace_only: bool = False


class ToolsSettings(Section):
    profile: Literal["minimal", "coding", "messaging", "full"] | None = None
    allow: Names | None = None
    also_allow: Names = ()
    deny: Names = ()
    exec: ExecSettings = defaults(ExecSettings)
    fs: FsSettings = defaults(FsSettings)
