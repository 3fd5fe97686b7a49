"""Must hold: two consoles and a command line answer the same request at once; one decision, and
all see it. A slice; the full size is `python -m bench.approvals_race`."""

from __future__ import annotations

import os
from pathlib import Path

from bench.approvals_race import race

ROUNDS = int(os.environ.get("CLAW_RACE_ROUNDS", "25"))


async def test_one_decision_and_all_see_it(tmp_path: Path) -> None:
    outcome = await race(tmp_path, ROUNDS)
    assert outcome.broken == []
    assert outcome.rounds == ROUNDS == sum(outcome.won.values())
