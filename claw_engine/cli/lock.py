"""Who runs an engine on a state directory, asked of its lock. Standard library only, and light."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

LOOK_S = 0.05
"""Seconds between looks while something is waited for."""


def holder(state_dir: Path) -> Mapping[str, object] | None:
    """What the engine that holds the directory wrote about itself; None when there is none.

    `pid`, `startedAt` (ms), `mode`, `version`, `door`, `port`; empty while it only begins.
    """
    try:
        with (state_dir / "gateway.lock").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                return None
            found = json.loads(file.read() or b"{}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:  # it is being written
        return {}
    return found if isinstance(found, dict) else {}


def wait(done: Callable[[], bool], seconds: float) -> bool:
    """Look until `done` or the time is over; whether it was."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= end:
            return False
        time.sleep(LOOK_S)
    return True
