"""The same changes as `git apply` makes, from patches that git wrote: never another text."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from claw_engine.tools.patch.apply import apply
from claw_engine.tools.patch.parse import PatchRefused, UpdateFile, parse

ROUNDS = int(os.environ.get("CLAW_PATCHES", "40"))
"""Pairs of texts; each costs two processes."""

HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
WORDS = ("alpha", "beta", "gamma", "  delta", "}", "", "\treturn", "x = 1")

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def lines_of(dice: random.Random) -> list[str]:
    """Some lines that repeat, some that do not."""
    return [
        dice.choice(WORDS) if dice.random() < 0.4 else f"line {number} {dice.random():.6f}"
        for number in range(dice.randint(1, 60))
    ]


def changed(dice: random.Random, lines: list[str]) -> list[str]:
    out = list(lines)
    for _ in range(dice.randint(1, 5)):
        at = dice.randrange(len(out) + 1)
        match dice.randrange(3):
            case 0:
                out[at:at] = [f"new {dice.random():.6f}"]
            case 1:
                del out[at : at + dice.randint(1, 3)]
            case _:
                out[at : at + 1] = [dice.choice(WORDS)]
    return out


def diff(folder: Path, old: str, new: str) -> str:
    (folder / "a").write_text(old)
    (folder / "b").write_text(new)
    command = ["git", "diff", "--no-index", "--no-color", "-U3", "a", "b"]
    # It exits with 1 when the files differ.
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def git_applied(folder: Path, unified: str) -> str:
    """What git makes of it: the reference."""
    plain = re.sub(r"^(diff|index).*\n", "", unified, flags=re.M)
    plain = plain.replace("+++ b/b", "+++ b/a")
    subprocess.run(["git", "apply", "-"], cwd=folder, input=plain, text=True, check=True)
    return (folder / "a").read_text()


def as_patch(unified: str) -> str:
    """Git's hunks in our format: their line numbers are lost."""
    body = unified.splitlines()
    start = next(i for i, line in enumerate(body) if HUNK.match(line))
    hunks = ["@@" if HUNK.match(line) else line for line in body[start:]]
    return "\n".join(["*** Begin Patch", "*** Update File: a", *hunks, "*** End Patch"])


def test_git_and_we_agree_or_we_refuse(tmp_path: Path) -> None:
    dice = random.Random(20260226)
    landed = 0
    for _ in range(ROUNDS):
        before = lines_of(dice)
        old, new = text(before), text(changed(dice, before))
        if old == new or not new:
            continue
        unified = diff(tmp_path, old, new)
        (operation,) = parse(as_patch(unified))
        assert isinstance(operation, UpdateFile)
        try:
            ours = apply(old, operation.chunks, "a")
        except PatchRefused as refused:
            # Without line numbers some hunks fit in several places: that must be what it says.
            assert "places" in str(refused), refused
            continue
        assert ours == git_applied(tmp_path, unified) == new
        landed += 1
    assert landed > ROUNDS * 0.7
