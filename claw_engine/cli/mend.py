"""Mending what needs no decision, for the verbs with --fix."""

from __future__ import annotations

import os

from claw_engine.audits import fix, subject_of
from claw_engine.paths import StateDir
from claw_engine.world import RealDisk


def mend(state: StateDir) -> list[str]:
    """Words for each thing done. Raises NothingToAudit."""
    disk = RealDisk()
    try:
        return fix(subject_of(state, os.environ, disk), disk)
    finally:
        disk.close()
