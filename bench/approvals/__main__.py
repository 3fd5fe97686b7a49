"""The harness of the decision core.

    python -m bench.approvals fuzz [--count N] [--trace N] [--seed S]   (100000, 2000)
    python -m bench.approvals races [--count N] [--only SWAP…]          (1000 each)
    python -m bench.approvals speed

Prints what came out, keeps it as a file under bench/results/, exit code 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from bench.approvals import fuzz, oracle, races, speed
from bench.approvals.world import make
from bench.processes import load

RESULTS = Path(__file__).parents[1] / "results"
PLAIN_GOAL = 0.95
SLICE = 20_000


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.approvals")
    parser.add_argument("what", choices=["fuzz", "races", "speed"])
    parser.add_argument("--count", type=int)
    parser.add_argument("--trace", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--only", nargs="*", metavar="SWAP", help="races: these alone")
    parser.add_argument("--keep", action="store_true", help="write the result file")
    args = parser.parse_args(arguments)
    lines = [f"{args.what}, {date.today():%Y-%m-%d}, Python {sys.version.split()[0]}, {load()}"]
    with tempfile.TemporaryDirectory() as folder:
        match args.what:
            case "fuzz":
                good = _fuzz(Path(folder), args, lines)
            case "races":
                good = _races(Path(folder), args, lines)
            case _:
                good = _speed(Path(folder), lines)
    lines.append("holds" if good else "BROKEN")
    print("\n".join(lines))
    if args.keep:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"approvals-{args.what}.txt").write_text("\n".join(lines) + "\n")
    return 0 if good else 1


def _fuzz(folder: Path, args: argparse.Namespace, lines: list[str]) -> bool:
    if oracle.shfmt() is None:
        print("shfmt is not installed: pip install shfmt-py", file=sys.stderr)
        return False
    machine = make(folder / "machine", still=True)
    count, begin = args.count or 100_000, time.monotonic()
    total, allowed = fuzz.Report(args.seed), []
    for first in range(0, count, SLICE):
        report, found = fuzz.run(machine, args.seed, first, min(SLICE, count - first))
        total.commands += report.commands
        total.plain += report.plain
        total.plain_allowed += report.plain_allowed
        total.allowed += report.allowed
        total.decide_s += report.decide_s
        total.exceptions += report.exceptions
        total.missed += report.missed
        total.reasons.update(report.reasons)
        allowed += random.Random(first).sample(found, min(len(found), args.trace))
        print(f"{total.commands} decided, {len(total.exceptions)} exceptions", file=sys.stderr)
    sample = random.Random(args.seed).sample(allowed, min(len(allowed), args.trace))
    decided = time.monotonic() - begin
    total.exceptions += fuzz.traced(machine, sample, folder=folder / "traces")
    lines += [
        f"seed {args.seed}: {total.commands} commands, {total.allowed} allowed, all of these read "
        f"by shfmt in two dialects, {len(sample)} run under strace",
        f"exceptions: {len(total.exceptions)}",
        *total.exceptions[:50],
        f"plain commands allowed: {total.plain_allowed} of {total.plain} ({total.plain_rate:.2%})",
        *total.missed[:10],
        f"time: {decided:.0f} s deciding and reading, {time.monotonic() - begin - decided:.0f} s "
        f"running; {total.decide_s / total.commands * 1000:.3f} ms a decision (wall)",
        "asked because, most often: "
        + "; ".join(f"{words} ({n})" for words, n in total.reasons.most_common(25)),
    ]
    return not total.exceptions and total.plain_rate >= PLAIN_GOAL


def _races(folder: Path, args: argparse.Namespace, lines: list[str]) -> bool:
    good = True
    for swap in races.SWAPS:
        if args.only and swap.name not in args.only:
            continue
        found = races.run(folder / swap.name, swap, args.count or 1000, args.seed)
        lines.append(found.line())
        print(found.line(), file=sys.stderr)
        good = good and found.holds
    return good


def _speed(folder: Path, lines: list[str]) -> bool:
    found = speed.measure(make(folder))
    lines += [one.line() for one in found]
    return all(one.least_ms <= speed.GOAL_MS for one in found)


if __name__ == "__main__":
    sys.exit(main())
