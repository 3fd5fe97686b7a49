"""Which generation of OpenClaw wrote a state directory. Never writes.

2026.2.26 keeps sessions in JSON files; the newer generation in SQLite (gateway digest §7.4). A
directory of the newer one must not be rewritten.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

Generation: TypeAlias = Literal["empty", "json", "sqlite"]

_SQLITE = ("state/openclaw.sqlite", "agents/*/agent/openclaw-agent.sqlite")
_JSON = (
    "openclaw.json",
    "exec-approvals.json",
    "agents/*/sessions/sessions.json",
    "agents/*/sessions/*.jsonl",
    "inbox/journal.jsonl",
)


def state_generation(state_dir: Path) -> Generation:
    """`sqlite` as soon as a database of the newer generation is there, else `json` or `empty`."""
    if _any(state_dir, _SQLITE):
        return "sqlite"
    return "json" if _any(state_dir, _JSON) else "empty"


def _any(root: Path, patterns: tuple[str, ...]) -> bool:
    return any(next(root.glob(pattern), None) is not None for pattern in patterns)
