"""Run the long harnesses and write bench/results/soak.json; exit code 1 when a promise was broken.

python -m bench.soak                         all of it
python -m bench.soak --only kill --seeds 17  one seed of one harness again
python -m bench.soak --keep DIR              keep the directories of failures
python -m bench.soak --share 0.02            a slice, as `make test` takes it
python -m bench.soak --join A.json B.json    one report of harnesses run side by side
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.soak import faults, kills, replay
from bench.soak.report import Failure, Report

KILLS = 400
POWER_CUTS = 500
RECORDINGS = 10
RESULT = Path(__file__).parents[1] / "results" / "soak.json"
HARNESSES = ("kill", "power", "disk")


def main(argv: Sequence[str] | None = None) -> int:
    args = _arguments(argv)
    if args.join:
        Report.joined(args.join).write(args.out)
        return 0
    if args.keep is not None:
        args.keep.mkdir(parents=True, exist_ok=True)
    report = Report(
        datetime.now(UTC).isoformat(timespec="seconds"),
        " ".join(f"{value:.2f}" for value in os.getloadavg()),
        _commit(),
    )
    for name in HARNESSES if args.only is None else (args.only,):
        began = time.monotonic()
        asyncio.run({"kill": _kill, "power": _power, "disk": _disk}[name](args, report))
        report.durations[name] = round(time.monotonic() - began, 1)
        _say(f"{name}: {report.durations[name]:g} s, {len(report.failures)} failures so far")
    report.write(args.out)
    for failure in report.failures:
        _say(f"BROKEN {failure.kind} seed {failure.seed}: {failure.what}")
    counts = report.counts
    _say(
        f"{counts['kills']} kills, {counts['power cuts']} power cuts, {counts['bad disks']} bad"
        f" disks: {len(report.failures)} promises broken; {args.out}"
    )
    return 1 if report.failures else 0


async def _kill(args: argparse.Namespace, report: Report) -> None:
    enough = max(1, round(KILLS * args.share))
    seeds = args.seeds or list(range(enough))  # a seed makes several kills: more than enough
    said = _Progress("kill", enough)

    def progress(outcome: kills.Outcome) -> None:
        report.counts.update(outcome.counts)
        said.tell(report.counts["kills"], outcome.seed, outcome.failures)

    done = await kills.run(
        seeds, jobs=args.jobs, keep=args.keep, progress=progress,
        enough=None if args.seeds else enough,
    )  # fmt: skip
    report.seeds["kill"] = sorted(outcome.seed for outcome in done)
    for outcome in done:
        report.failures += outcome.failures


async def _power(args: argparse.Namespace, report: Report) -> None:
    seeds = args.seeds or list(range(max(1, round(POWER_CUTS * args.share))))
    said, done = _Progress("power", len(seeds)), itertools.count(1)

    def progress(seed: int, failures: list[Failure]) -> None:
        said.tell(next(done), seed, failures)

    out = await replay.run(
        seeds, recordings=RECORDINGS if args.share == 1 else 1, keep=args.keep,
        strict_folders=args.strict_folders, progress=progress,
    )  # fmt: skip
    report.seeds["power"] = seeds
    report.counts += out.counts
    report.failures += out.failures


async def _disk(args: argparse.Namespace, report: Report) -> None:
    wanted = list(faults.cases(await faults.count_writes()))
    if args.seeds:
        wanted = [(seed % 10, seed // 10) for seed in args.seeds]
    elif args.share < 1:
        wanted = wanted[:: round(1 / args.share)]
    said, done = _Progress("disk", len(wanted)), itertools.count(1)

    def progress(seed: int, failures: list[Failure]) -> None:
        said.tell(next(done), seed, failures)

    out = await faults.run(wanted, keep=args.keep, progress=progress)
    report.seeds["disk"] = [nth * 10 + kind for kind, nth in wanted]
    report.counts += out.counts
    report.failures += out.failures


class _Progress:
    """Failures at once, and a line for every twentieth that is done."""

    def __init__(self, name: str, of: int) -> None:
        self._name = name
        self._of = of
        self._told = 0

    def tell(self, done: int, seed: int, failures: list[Failure]) -> None:
        for failure in failures:
            _say(f"{self._name} seed {seed}: BROKEN ({failure.kind}) {failure.what}")
        if done - self._told >= 20 or done == self._of:
            self._told = done
            _say(f"{self._name}: {done} of {self._of}")


def _commit() -> str:
    """The commit the code stands at, with a mark when it was changed since; "" without git."""
    command = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", choices=HARNESSES)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--join", type=Path, nargs="+", default=[])
    parser.add_argument("--share", type=float, default=1.0, help="part of the whole, 0 to 1")
    parser.add_argument("--jobs", type=int, default=2, help="engines at a time while killing")
    parser.add_argument("--keep", type=Path, help="where directories of failures are kept")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument(
        "--strict-folders", action="store_true",
        help="power cuts may also lose new folders whose parent was not fsynced",
    )  # fmt: skip
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
