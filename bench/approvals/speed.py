"""How long a decision takes, in CPU milliseconds: the promise is 1 ms for 4 KB of command.

The least of many is what it costs; the rest is what else the machine does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.approvals.world import RULED, Machine

RUNS = 300
GOAL_MS = 1.0
CHAINED = RULED[:15]


@dataclass(frozen=True, slots=True)
class Speed:
    """Minimum, median, 95th percentile and maximum in ms of CPU time."""

    name: str
    size: int
    least_ms: float
    median_ms: float
    p95_ms: float
    worst_ms: float

    def line(self) -> str:
        return (
            f"{self.name:28} {self.size:6} B  min {self.least_ms:.3f} ms  "
            f"median {self.median_ms:.3f} ms  "
            f"p95 {self.p95_ms:.3f} ms  max {self.worst_ms:.3f} ms"
        )


def samples() -> dict[str, str]:
    """Commands of about 4 KB: many words, one quoted word, escapes, a chain, one that asks."""
    return {
        "one short command": "uname -a",
        "4 KB of plain words": "ls " + " ".join(f"folder{n}/file-{n}.txt" for n in range(190)),
        "4 KB of quoted words": "ls " + " ".join(f"'argument number {n}'" for n in range(185)),
        "4 KB in one word": "echo '" + "some text; $(not run) " * 185 + "'",
        "4 KB of escapes": "echo " + "\\a\\ b" * 820,
        "4 KB in double quotes": 'echo "' + 'say \\"hi\\" now ' * 270 + '"',
        "4 KB in a chain of 40": " && ".join(f"echo {n} " + "w" * 88 for n in range(40)),
        "4 KB, 40 parts, 15 programs": "; ".join(
            f"{CHAINED[n % len(CHAINED)]} {n} " + "w" * 88 for n in range(40)
        ),
        "4 KB with a substitution": "ls " + "a" * 4000 + " $(id)",
        "4 KB of parentheses": "(" * 4096,
        "4 KB of letters not ASCII": "echo " + "ünïcödé " * 350,
    }


def measure(machine: Machine) -> list[Speed]:
    found = []
    for name, command in samples().items():
        machine.decide(command)
        times = []
        for _ in range(RUNS):
            begin = time.thread_time()
            machine.decide(command)
            times.append((time.thread_time() - begin) * 1000)
        times.sort()
        middle, late = times[len(times) // 2], times[-len(times) // 20]
        found.append(Speed(name, len(command.encode()), times[0], middle, late, times[-1]))
    return found
