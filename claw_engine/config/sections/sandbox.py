"""Settings of confinement: our own keys of `tools.exec`, which OpenClaw does not know."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from claw_engine.config.sections.base import Amount, Names, Section

Percent = Annotated[Amount, Meta(le=100)]


class ConfineSettings(Section, frozen=True):
    """How commands are confined.

    `confine_network` auto cuts the network off for commands that nobody was asked about.
    `confine_writable` are paths to open for writing, `confine_reach` what stays reachable on
    purpose: `ssh`, or paths of sockets; the warning in the status line names them.
    `confine_processes` and `confine_memory_percent` (of this machine's memory) are limits of all
    confined commands together, 0 for none.
    """

    confine: Literal["auto", "bwrap", "landlock", "none"] = "auto"
    confine_network: Literal["auto", "keep", "none"] = "auto"
    confine_writable: Names = ()
    confine_reach: Names = ()
    confine_processes: Amount = 4096
    confine_memory_percent: Percent = 90
