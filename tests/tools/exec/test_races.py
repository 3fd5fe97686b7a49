"""A slice of the swap races (case AP-03); `python -m bench.approvals races` is the full size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.approvals.races import SWAPS, Swap, race

RACES = int(os.environ.get("APPROVALS_RACES", "10"))
SLICE = ("script replaced", "binary replaced", "symlink", "cwd", "PATH entry", "env")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("swap", [s for s in SWAPS if s.name in SLICE], ids=lambda s: s.name)
async def test_never_runs_the_other_thing(tmp_path: Path, swap: Swap) -> None:
    found = await race(tmp_path, swap, RACES)
    assert found.holds, found.line()
