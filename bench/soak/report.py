"""What a soak found, and the file it is written to. Values only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
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
    commit: str = ""
    seeds: dict[str, list[int]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    durations: dict[str, float] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[Path]) -> Report:
        """One report of harnesses that were run side by side; of different commits it says which
        harness ran at which. Raises OSError, ValueError."""
        whole = cls("")
        commits: dict[str, list[str]] = {}
        for path in parts:
            data = json.loads(path.read_text())
            commits.setdefault(data["commit"], []).extend(data["durations"])
            whole.started = min(whole.started or data["started"], data["started"])
            whole.load = data["load"]
            whole.seeds.update(data["seeds"])
            whole.counts.update(data["counts"])
            whole.failures += [Failure(**failure) for failure in data["failures"]]
            whole.durations.update(data["durations"])
        told = [f"{commit} ({', '.join(names)})" for commit, names in commits.items()]
        whole.commit = next(iter(commits)) if len(commits) == 1 else "; ".join(told)
        return whole

    def write(self, path: Path) -> None:
        data = asdict(self) | {"counts": dict(sorted(self.counts.items()))}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=1) + "\n")
