"""Every file name of the state directory, in one place.

Names and layout are OpenClaw 2026.2.26's; our own additions live in files and folders that it
ignores: `claw.sock`, `door.key`, `gateway.lock`, `lanes.json`,
`processes.json`, `inbox/`, `approvals/`, `trace/`, `usage/`.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from claw_engine.errors import ClawError


class StateDirUnusable(ClawError):
    """The state directory cannot be made or used: the wrong path, a missing permission."""

    exit_code = 1

    def __init__(self, root: Path, why: str) -> None:
        super().__init__(
            f"Cannot use {root} as the state directory: {why}.",
            hint="Name a directory that can be written with --state-dir.",
            details={"path": str(root)},
        )


class StateDir(Struct, frozen=True):
    """The state directory; `root` is absolute."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "openclaw.json"

    @property
    def config_last_good(self) -> Path:
        """A copy of the last configuration that loaded without an error (ours)."""
        return self.root / "openclaw.json.last-good"

    @property
    def door_sock(self) -> Path:
        return self.root / "claw.sock"

    @property
    def door_key(self) -> Path:
        return self.root / "door.key"

    @property
    def gateway_lock(self) -> Path:
        return self.root / "gateway.lock"

    @property
    def lanes_json(self) -> Path:
        """Pauses that survive a restart (ours)."""
        return self.root / "lanes.json"

    @property
    def processes_json(self) -> Path:
        """Commands in the background, to be found again after a crash (ours)."""
        return self.root / "processes.json"

    @property
    def restart_note(self) -> Path:
        """Why the last engine ended, for the next one (OpenClaw's restart sentinel)."""
        return self.root / "restart-sentinel.json"

    @property
    def inbox_dir(self) -> Path:
        return self.root / "inbox"

    def sessions_journal(self, agent_id: str) -> Path:
        """Changes that an agent's sessions.json does not hold yet (ours)."""
        return self.inbox_dir / f"sessions-{agent_id}.jsonl"

    @property
    def approvals_dir(self) -> Path:
        return self.root / "approvals"

    @property
    def approvals_journal(self) -> Path:
        """Requests and decisions, one JSON line each (ours)."""
        return self.approvals_dir / "requests.jsonl"

    @property
    def usage_db(self) -> Path:
        """What calls to models have cost (ours)."""
        return self.root / "usage" / "usage.db"

    @property
    def calibration_json(self) -> Path:
        """How far our token estimates are off, by model (ours)."""
        return self.root / "usage" / "calibration.json"

    @property
    def exec_approvals(self) -> Path:
        return self.root / "exec-approvals.json"

    @property
    def containers_json(self) -> Path:
        """The containers made for sandboxes."""
        return self.root / "sandbox" / "containers.json"

    @property
    def sandboxes_dir(self) -> Path:
        """Workspaces of sandboxes that have their own."""
        return self.root / "sandboxes"

    @property
    def agents_dir(self) -> Path:
        return self.root / "agents"

    def sessions_dir(self, agent_id: str) -> Path:
        return self.agents_dir / agent_id / "sessions"

    def sessions_json(self, agent_id: str) -> Path:
        return self.sessions_dir(agent_id) / "sessions.json"

    def transcript(self, agent_id: str, session_id: str) -> Path:
        return self.sessions_dir(agent_id) / f"{session_id}.jsonl"

    def workspace(self, agent_id: str) -> Path:
        """The default workspace of an agent when the configuration names none."""
        return self.root / ("workspace" if agent_id == "main" else f"workspace-{agent_id}")

    @property
    def skills_dir(self) -> Path:
        """Skills that were installed for all agents."""
        return self.root / "skills"

    @property
    def devices_dir(self) -> Path:
        """Paired devices and those that ask to be."""
        return self.root / "devices"

    @property
    def logs_dir(self) -> Path:
        return self.root / "logs"

    @property
    def trace_db(self) -> Path:
        """What runs did and said to models (ours)."""
        return self.root / "trace" / "trace.db"

    def ensure(self) -> None:
        """Create the root (0700). Raises StateDirUnusable."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            raise StateDirUnusable(self.root, "it is not a directory") from None
        except OSError as error:
            raise StateDirUnusable(self.root, error.strerror or str(error)) from error


def contains(root: Path, path: Path) -> bool:
    """Whether `path`, with all symlinks resolved, lies inside `root` or is it."""
    real_root = os.path.realpath(root)
    real = os.path.realpath(path)
    return real == real_root or real.startswith(real_root.rstrip(os.sep) + os.sep)
