"""What a soak found, and the file it is written to. Values only."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Failure:
    """A broken promise: the seed that shows it again, where it was met, and what is wrong."""

    seed: int
    kind: str
    what: str


@dataclass(slots=True)
class Report:
    """`counts` says how often what was done, `durations` how many seconds each harness took."""

    started: str
    load: str = ""
    seeds: dict[str, list[int]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    durations: dict[str, float] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        data = asdict(self) | {"counts": dict(sorted(self.counts.items()))}
        path.write_text(json.dumps(data, indent=1) + "\n")
