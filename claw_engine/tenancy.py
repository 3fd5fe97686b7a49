"""Whose state directory it is: one engine at a time, and nobody else's is touched."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from claw_engine.errors import ClawError
from claw_engine.paths import StateDir, StateDirUnusable
from claw_engine.sessions.generation import state_generation
from claw_engine.storage.errors import LockUnsupported, StateDiskError
from claw_engine.storage.locks import HeldBy, Lock, acquire, foreign_locks

_NOT_OURS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EISDIR})
"""Refusals that say: this directory is the wrong one, whatever its disk does."""


class EngineHeld(ClawError):
    """Another process runs an engine on this state directory."""

    def __init__(self, state_dir: Path, held: HeldBy) -> None:
        who = f"pid {held.pid}" if held.pid else "another process"
        super().__init__(
            f"An engine ({who}) already runs on {state_dir}.",
            hint="Attach to it with claw-tui, or stop it first.",
            details={"pid": held.pid, "door": held.info.get("door")},
        )
        self.held = held


class ForeignState(ClawError):
    """The state directory belongs to a program that must not be disturbed."""


def move_in(state: StateDir, now_ms: int, description: Mapping[str, object]) -> Lock:
    """Make the directory if need be and take it, for as long as the lock lives.

    Raises EngineHeld, ForeignState, LockUnsupported, StateDirUnusable, StateDiskError.
    """
    state.ensure()
    try:
        return _take(state, now_ms, description)
    except OSError as error:
        raise StateDirUnusable(state.root, error.strerror or str(error)) from error
    except LockUnsupported:
        raise
    except StateDiskError as error:
        if error.number in _NOT_OURS:
            raise StateDirUnusable(state.root, os.strerror(error.number)) from error
        raise


def _take(state: StateDir, now_ms: int, description: Mapping[str, object]) -> Lock:
    root = state.root
    if state_generation(root) == "sqlite":
        raise ForeignState(
            f"{root} holds the state of a newer OpenClaw (sessions in SQLite).",
            hint="It is never rewritten here. Choose another one with --state-dir.",
        )
    foreign = foreign_locks(root, now_ms)
    if foreign:
        raise ForeignState(
            f"Process {foreign[0].pid} is using {root} (lock {foreign[0].path.name}).",
            hint="Stop that program first, or choose another directory with --state-dir.",
        )
    taken = acquire(state.gateway_lock, description)
    if isinstance(taken, HeldBy):
        raise EngineHeld(root, taken)
    return taken
