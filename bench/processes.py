"""What a process has used so far, read from /proc: CPU seconds and resident megabytes."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of one process, children excluded."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def resident_mb(pid: int) -> float:
    """Resident set now, MB of 1,000,000 bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def load() -> str:
    """The load averages, to be quoted beside every figure."""
    return "load " + " ".join(f"{value:.1f}" for value in os.getloadavg())
