"""The folders that skills are looked for in, the weakest first. Pure.

Places and order: OpenClaw (agent digest §7.1).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.skills.model import Source

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

BUNDLED_VARIABLE = "OPENCLAW_BUNDLED_SKILLS_DIR"


class Root(Struct, frozen=True):
    source: Source
    path: str


def roots_of(
    settings: Settings, env: Mapping[str, str], managed: Path, workspace: Path
) -> tuple[Root, ...]:
    """Every folder for an agent that works in `workspace`; `managed` is the state directory's."""
    home = env.get("HOME", "")
    roots = [
        Root(Source.EXTRA, os.path.normpath(_absolute(folder, home, workspace)))
        for folder in settings.skills.load.extra_dirs
        if folder.strip()
    ]
    if bundled := env.get(BUNDLED_VARIABLE, "").strip():
        roots.append(Root(Source.BUNDLED, bundled))
    roots.append(Root(Source.MANAGED, str(managed)))
    if home:
        roots.append(Root(Source.PERSONAL, f"{home.rstrip('/')}/.agents/skills"))
    roots.append(Root(Source.PROJECT, f"{workspace}/.agents/skills"))
    roots.append(Root(Source.WORKSPACE, f"{workspace}/skills"))
    return tuple(roots)


def _absolute(folder: str, home: str, workspace: Path) -> str:
    if home and (folder == "~" or folder.startswith("~/")):
        folder = home.rstrip("/") + folder[1:]
    return folder if folder.startswith("/") else f"{workspace}/{folder}"
