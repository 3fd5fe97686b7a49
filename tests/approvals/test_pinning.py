"""Interpreters of scripts, the order of PATH, and variables that steer other programs."""

from __future__ import annotations

import shutil

import pytest

from claw_engine.approvals.environment import for_unasked
from claw_engine.approvals.evaluate import Answer
from claw_engine.approvals.pinning import pinned_path
from tests.approvals.conftest import Box


@pytest.mark.parametrize(
    ("line", "covered"),
    [
        ("#!/bin/sh", True),
        ("#!/bin/sh -eu", True),
        ("#!/usr/bin/env sh", True),
        ("#!/usr/bin/env -S sh -eu", False),
        ("#!/usr/bin/env A=1 sh", False),
        ("#!/usr/bin/env", False),
        ("#!{bin}/mine", False),
        ("#!/usr/bin/env mine", False),
        ("#!/nowhere/sh", False),
    ],
)
def test_a_script_is_covered_only_with_an_interpreter_nobody_can_swap(
    box: Box, line: str, covered: bool
) -> None:
    shutil.copy("/bin/dash", box.bin / "mine")
    tool = box.program("opt/tool", line.format(bin=box.bin) + "\necho ran\n")
    verdict = box.decide(str(tool), box.rule(tool))
    assert (verdict.verdict is Answer.ALLOW) == covered
    assert bool(box.decide(str(tool)).always.patterns) == covered


def test_what_an_approved_script_is_run_by_is_bound(box: Box) -> None:
    shutil.copy("/bin/dash", box.bin / "mine")
    tool = box.program("opt/tool", "#!/usr/bin/env mine\n")
    paths = {file.path for file in box.decide(str(tool)).binding.files}
    assert {str(tool), "/usr/bin/env", f"{box.bin}/mine"} <= paths


def test_folders_the_agent_can_write_come_last(box: Box) -> None:
    env = {"PATH": f"{box.bin}:bin:/usr/bin:.::{box.root}/opt:/bin:/usr/bin"}
    assert pinned_path(env, box.fs) == f"/usr/bin:/bin:{box.bin}:{box.root}/opt"
    assert box.decide("uname", policy=None).search_path == ""


def test_unasked_commands_get_no_steering_variables() -> None:
    env = {"PATH": "x", "GIT_SSH_COMMAND": "x", "EDITOR": "x", "LESSOPEN": "|x", "HOME": "/h",
           "LANG": "C", "TAR_OPTIONS": "x", "NPM_CONFIG_X": "x", "PYTHONSTARTUP": "x"}  # fmt: skip
    assert for_unasked(env, "/usr/bin") == {"PATH": "/usr/bin", "HOME": "/h", "LANG": "C"}
