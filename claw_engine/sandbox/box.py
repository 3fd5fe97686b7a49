"""Which session works in a sandbox of its own, in which one, and what it sees there. Pure.

A box is a container, or a confined view of this machine with nothing of the user's in it. Modes,
scopes, accesses and paths inside: OpenClaw 2026.2.26 (gateway digest §6.4). Knows no process.
"""

from __future__ import annotations

import hashlib
import os
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.paths import StateDir

if TYPE_CHECKING:
    from claw_engine.config.sections.box import BoxSettings

AGENT_MOUNT = "/agent"
"""Where a container sees the agent's workspace read-only."""

SHARED = "shared"
_MAX_NAME = 63
_UNSAFE = re.compile(r"[^a-z0-9._-]+")


class WorkspaceAccess(StrEnum):
    """What a box sees of the agent's workspace."""

    NONE = "none"
    """Nothing: it has a workspace of its own."""
    READ = "ro"
    """It can be read; the workspace it writes is its own."""
    WRITE = "rw"
    """It is the box's workspace."""


class Backend(StrEnum):
    DOCKER = "docker"
    BWRAP = "bwrap"
    LANDLOCK = "landlock"


class Box(Struct, frozen=True):
    """One session's box. Paths are of this machine, `workspace` what it writes.

    `key` is shared by all sessions of the same box. `backend` None means that none works here,
    for the reason in `broken`: then nothing runs in it.
    """

    key: str
    name: str
    agent_id: str
    access: WorkspaceAccess
    workspace: str
    agent_workspace: str
    settings: BoxSettings
    backend: Backend | None = None
    broken: str = ""

    @property
    def workdir(self) -> str:
        """Its workspace by the path that a command in it sees."""
        return self.settings.docker.workdir if self.backend is Backend.DOCKER else self.workspace

    def shows(self, path: str) -> bool:
        """Whether it names something in the agent's workspace, and that may be read."""
        readable = self.access is WorkspaceAccess.READ
        return readable and _below(path, self.agent_workspace) is not None

    def outside(self, path: str) -> str:
        """What a path of a container means to the file tools; other paths stay as they are."""
        if self.backend is Backend.DOCKER:
            mounts = [(self.settings.docker.workdir, ".")]
            if self.access is WorkspaceAccess.READ:
                mounts.append((AGENT_MOUNT, self.agent_workspace))
            for inside, real in mounts:
                if path == inside:
                    return real
                if path.startswith(f"{inside}/"):
                    return f"{real}/{path[len(inside) + 1 :]}".removeprefix("./")
        return path

    def inside(self, path: str) -> str | None:
        """A path of this machine as a command in the box sees it; None = not at all."""
        if self.backend is not Backend.DOCKER:
            return path
        below = _below(path, self.workspace)
        if below is not None:
            return f"{self.workdir}/{below}".rstrip("/")
        below = _below(path, self.agent_workspace)
        if below is not None and self.access is WorkspaceAccess.READ:
            return f"{AGENT_MOUNT}/{below}".rstrip("/")
        return None


class Standing(Struct, frozen=True):
    """Where a run's commands belong: its box, and what the operator granted to its session.

    `elevated` is off, ask or full; `exec_host` the session's own word, None when it has none.
    """

    box: Box | None = None
    elevated: str = "off"
    exec_host: str | None = None


def is_boxed(settings: BoxSettings, session_key: str, main_key: str) -> bool:
    """Whether a session works in a box; `main_key` is the main session of its agent."""
    match settings.mode:
        case "all":
            return True
        case "non-main":
            return session_key not in (main_key, "global")
        case _:
            return False


def scope_of(settings: BoxSettings) -> str:
    """`session`, `agent` or `shared`; the older `perSession` counts where no scope is given."""
    if settings.scope is not None:
        return settings.scope
    if settings.per_session is not None:
        return "session" if settings.per_session else SHARED
    return "agent"


def box_of(
    settings: BoxSettings,
    *,
    session_key: str,
    agent_id: str,
    agent_workspace: str,
    state_root: str,
) -> Box:
    """The box of a session that has one; which backend it gets is not decided here."""
    access = WorkspaceAccess(settings.workspace_access)
    match scope_of(settings):
        case "session":
            key = session_key
        case "shared":
            # What each sees of its own agent's workspace cannot be in one container.
            key = SHARED if access is WorkspaceAccess.NONE else f"{SHARED}:{agent_id}"
        case _:
            key = f"agent:{agent_id}"
    given = os.path.expanduser(settings.workspace_root or "")  # noqa: PTH111 - text paths throughout
    root = given or str(StateDir(Path(state_root)).sandboxes_dir)
    own = agent_workspace if access is WorkspaceAccess.WRITE else f"{root}/{slug(key)}"
    # The state directory is in the name: two engines never take each other's container.
    name = f"{settings.docker.container_prefix}{slug(key, state_root)}"[:_MAX_NAME]
    return Box(key, name, agent_id, access, own, agent_workspace, settings)


def slug(key: str, salt: str = "") -> str:
    """A file and container name of a key; two keys never share one."""
    digest = hashlib.sha256(f"{salt}\0{key}".encode()).hexdigest()[:8]
    safe = _UNSAFE.sub("-", key.lower()).strip("-")[:32]
    return f"{safe or 'box'}-{digest}"


def _below(path: str, root: str) -> str | None:
    if path == root:
        return ""
    return path[len(root) + 1 :] if path.startswith(root.rstrip("/") + "/") else None
