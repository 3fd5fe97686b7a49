"""Generated commands: whatever the engine allows, the other parser must find harmless.

And a sample of the allowed ones really runs, traced, in bubblewrap: it may start nothing but what
its card showed.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bench.approvals import grammar, oracle
from bench.approvals.world import Machine
from claw_engine.approvals.evaluate import SHELL, Answer, Verdict

BATCH = 400
"""Commands a shfmt process reads at once."""

LONGEST_S = 20
"""Until a traced command is killed."""

_EXECVE = re.compile(r'execve\("((?:[^"\\]|\\.)*)"')


@dataclass
class Report:
    """What came out. `exceptions` must be empty; texts of commands with what was wrong."""

    seed: int
    commands: int = 0
    plain: int = 0
    plain_allowed: int = 0
    allowed: int = 0
    checked: int = 0
    traced: int = 0
    decide_s: float = 0.0
    exceptions: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def plain_rate(self) -> float:
        return self.plain_allowed / max(1, self.plain)


def run(
    machine: Machine, seed: int, first: int, count: int
) -> tuple[Report, list[tuple[str, Verdict]]]:
    """Decide over commands `first` to `first + count` of a seed and check every allowed one."""
    report = Report(seed)
    allowed: list[tuple[str, Verdict]] = []
    for number in range(first, first + count):
        case = grammar.case(seed, number)
        begin = time.perf_counter()
        verdict = machine.decide(case.text)
        report.decide_s += time.perf_counter() - begin
        report.commands += 1
        report.plain += case.plain
        if verdict.verdict is Answer.ALLOW:
            report.allowed += 1
            report.plain_allowed += case.plain
            allowed.append((case.text, verdict))
        elif case.plain:
            report.missed.append(f"{case.text!r}: {verdict.reasons}")
        else:
            report.reasons.update(
                reason.split(":")[-1].strip()[:60] for reason in verdict.reasons[:1]
            )
    batches = [allowed[at : at + BATCH] for at in range(0, len(allowed), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda batch: check(batch, machine), batches):
            report.exceptions += found
    report.checked = len(allowed)
    return report, allowed


def check(batch: Sequence[tuple[str, Verdict]], machine: Machine) -> list[str]:
    """What the oracle has against commands that were allowed, in both dialects."""
    wrong: list[str] = []
    for dialect in oracle.DIALECTS:
        found = oracle.trees([text for text, _ in batch], dialect)
        enforced = [_text(verdict) for _, verdict in batch]
        rebuilt = oracle.trees(enforced, dialect)
        for (text, verdict), tree, again in zip(batch, found, rebuilt, strict=True):
            try:
                if tree is None or again is None:
                    raise oracle.Refused("it does not parse")
                shown = [list(segment.argv) for segment in verdict.segments]
                read = oracle.programs(tree, machine)
                if read != shown:
                    raise oracle.Refused(f"other words: {read} instead of {shown}")
                ran = oracle.programs(again, machine)
                if [words[1:] for words in _plain(ran, shown)] != [words[1:] for words in shown]:
                    raise oracle.Refused(f"what runs has other words: {ran}")
            except oracle.Refused as refused:
                wrong.append(f"{dialect}: {text!r}: {refused}")
    return wrong


def _plain(ran: list[list[str]], shown: list[list[str]]) -> list[list[str]]:
    """The rebuilt words with paths of programs behind wrappers as they were typed."""
    if [len(words) for words in ran] != [len(words) for words in shown]:
        return ran
    return [
        [old if new.rsplit("/", 1)[-1] == old.rsplit("/", 1)[-1] and new.startswith("/") else new
         for new, old in zip(one, other, strict=True)]
        for one, other in zip(ran, shown, strict=True)
    ]  # fmt: skip


def _text(verdict: Verdict) -> str:
    argv = verdict.enforced_argv
    assert argv is not None
    if argv[:2] == (SHELL, "-c"):
        return argv[2]
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in argv)


# Traced runs


def traced(machine: Machine, allowed: Sequence[tuple[str, Verdict]], *, folder: Path) -> list[str]:
    """Run allowed commands under strace in bubblewrap: programs started that no card showed."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(text, verdict, folder / f"{n}") for n, (text, verdict) in enumerate(allowed)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [
            wrong for found in pool.map(lambda job: _trace(machine, *job), jobs) for wrong in found
        ]


def _trace(machine: Machine, text: str, verdict: Verdict, log: Path) -> list[str]:
    argv = verdict.enforced_argv
    assert argv is not None
    started = [
        "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev",
        "--proc", "/proc", "--bind", str(log.parent), str(log.parent), "--chdir", machine.cwd, "--",
        "strace", "-f", "-qq", "-e", "trace=execve", "-s", "4096", "-o", str(log), "--", *argv,
    ]  # fmt: skip
    # Killed after a while (`seq 9e99`): what it started until then counts.
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            started, env={**machine.env, "PATH": verdict.search_path}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LONGEST_S, check=False,
        )  # fmt: skip
    ran = _EXECVE.findall(log.read_text(errors="replace")) if log.exists() else []
    log.unlink(missing_ok=True)
    if not ran:
        return [f"{text!r}: was not traced"]
    return [f"{text!r}: started {path}" for path in set(ran) - shown(machine, verdict)]


def shown(machine: Machine, verdict: Verdict) -> set[str]:
    """Paths that the card names: programs, wrappers, and the shell that joins them."""
    paths = {segment.resolved for segment in verdict.segments if segment.resolved}
    words = {word.rsplit("/", 1)[-1] for segment in verdict.segments for word in segment.argv}
    paths |= {real for name, real in machine.wrappers.items() if name in words}
    if len(verdict.segments) > 1:
        paths.add(SHELL)
    return paths
