"""Settings of confinement: our own keys of `tools.exec`, which OpenClaw does not know."""

from __future__ import annotations

from typing import Literal

from claw_engine.config.sections.base import Names, Section


class ConfineSettings(Section):
    """How commands are confined.

    `confine_network` auto cuts the network off for commands that nobody was asked about.
    `confine_writable` are paths to open for writing, `confine_reach` what stays reachable on
    purpose: `ssh`, or paths of sockets; the warning in the status line names them.
    """

    confine: Literal["auto", "bwrap", "landlock", "none"] = "auto"
    confine_network: Literal["auto", "keep", "none"] = "auto"
    confine_writable: Names = ()
    confine_reach: Names = ()
