"""A slice of the generated commands; `python -m bench.approvals fuzz` is the full size."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from bench.approvals import fuzz, grammar, oracle
from bench.approvals.world import make

SEED = int(os.environ.get("APPROVALS_SEED", "20261130"))
COMMANDS = int(os.environ.get("APPROVALS_COMMANDS", "3000"))
TRACED = int(os.environ.get("APPROVALS_TRACED", "40"))

needs_shfmt = pytest.mark.skipif(oracle.shfmt() is None, reason="needs shfmt (pip: shfmt-py)")


@needs_shfmt
def test_whatever_is_allowed_another_parser_finds_harmless(tmp_path: Path) -> None:
    report, allowed = fuzz.run(make(tmp_path / "machine", still=True), SEED, 0, COMMANDS)
    assert report.exceptions == []
    assert report.plain > COMMANDS // 4
    assert report.plain_rate >= 0.95, report.missed[:5]
    assert len(allowed) > report.plain_allowed, "no mutated command was harmless"


@needs_shfmt
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")
def test_what_was_allowed_starts_only_what_was_shown(tmp_path: Path) -> None:
    machine = make(tmp_path / "machine", still=True)
    _, allowed = fuzz.run(machine, SEED + 1, 0, TRACED * 4)
    sample = random.Random(SEED).sample(allowed, TRACED)
    assert fuzz.traced(machine, sample, folder=tmp_path / "traces") == []


def test_cases_are_the_same_every_time() -> None:
    assert [grammar.case(7, n) for n in range(50)] == [grammar.case(7, n) for n in range(50)]


# The harness must be able to fail.

CAUGHT = [
    "uname; sudo", "uname $(id)", "uname > x", "uname &", "! uname", "A=1 uname", "uname *",
    "uname ~", "uname `id`", "(uname)", "uname # x", "env A=1 uname", "env -S uname",
    "nice sh -c id", "sort -o x", "sort --outp=x", "grep x file", "git push", "find . -delete",
    "uname $HOME", "uname <<E\nx\nE", "uname\nsudo", "if uname; then uname; fi", "uname $'a'",
    "./uname", "timeout -x 5 uname", "uname {a,b}",
]  # fmt: skip


@needs_shfmt
@pytest.mark.parametrize("command", CAUGHT)
def test_the_oracle_refuses(tmp_path: Path, command: str) -> None:
    machine = make(tmp_path)
    refused = 0
    for dialect in oracle.DIALECTS:
        (tree,) = oracle.trees([command], dialect)
        try:
            oracle.programs(tree or [], machine)
        except oracle.Refused:
            refused += 1
    assert refused


@needs_shfmt
def test_the_oracle_keeps_commands_apart(tmp_path: Path) -> None:
    """One that swallows what follows is read alone, and so are its neighbours."""
    commands = ["uname -a", "echo 'x\ny' z", "uname '", "cat <<E", "uname $(", "uname \\", "id x"]
    trees = oracle.trees(commands, "posix")
    machine = make(tmp_path)
    read = [
        oracle.programs(tree, machine) if tree else None for tree in (trees[0], trees[1], trees[6])
    ]
    assert read == [[["uname", "-a"]], [["echo", "x\ny", "z"]], [["id", "x"]]]
    assert trees[2] is None and trees[4] is None
