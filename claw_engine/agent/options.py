"""What a run takes from its pinned settings, as plain values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.agent.ports import Inbound
from claw_engine.agent.prompt.builder import Limits
from claw_engine.agent.prompt.facts import Host
from claw_engine.paths import StateDir
from claw_engine.sessions.routing import workspace_of

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings


class Options(Struct, frozen=True):
    """`timeout_s` in seconds, 0 = no limit."""

    timeout_s: float
    workspace: Path
    seeding: bool
    limits: Limits
    thinking: str
    timezone: str


LOCALTIME = Path("/etc/localtime")
TIMEOUT_FIELD = "timeoutSeconds"
"""Field of a message's `extra`: seconds, 0 = no limit, negative = the default."""


def local_timezone() -> str:
    """The IANA name of this machine's zone, as far as it can be told; else UTC."""
    if name := os.environ.get("TZ", "").lstrip(":"):
        return name
    try:
        # One look, for every run; a chain of links is rare.
        link = os.readlink(LOCALTIME)  # noqa: PTH115 - a Path of the answer costs more than it
    except OSError:
        return "UTC"
    _, found, name = link.partition("/zoneinfo/")
    if not found:
        _, found, name = os.path.realpath(LOCALTIME).partition("/zoneinfo/")
    return name if found else "UTC"


def this_host() -> Host:
    """Facts for the runtime line."""
    name = os.uname()
    shell = Path(os.environ.get("SHELL", "/bin/sh")).name
    return Host(f"{name.sysname} {name.release}", name.machine, shell, name.nodename, _manual())


def _manual() -> str:
    """The folder of our own manual, where it came along (a checkout; a wheel has none)."""
    folder = Path(__file__).parents[2] / "docs"
    return str(folder) if (folder / "agent.md").is_file() else ""


def options(
    settings: Settings, agent_id: str, state_dir: StateDir, message: Inbound | None = None
) -> Options:
    """Options of one run; the message may ask for a thinking level and a time limit of its own."""
    defaults = settings.agents.defaults
    extra = message.extra if message is not None else {}
    return Options(
        timeout_s=_seconds(extra.get(TIMEOUT_FIELD), defaults.timeout_seconds),
        workspace=workspace_of(settings, state_dir, agent_id),
        seeding=not defaults.skip_bootstrap,
        limits=Limits(defaults.bootstrap_max_chars, defaults.bootstrap_total_max_chars),
        thinking=(message.thinking if message else None) or defaults.thinking_default or "off",
        timezone=defaults.user_timezone or local_timezone(),
    )


def _seconds(asked: object, default: int) -> float:
    if isinstance(asked, int | float) and not isinstance(asked, bool) and asked >= 0:
        return float(asked)
    return float(default)
