"""The last check before a command: what it lets run, how like the original, and what it refuses.

Case AP-03.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.approvals.races import Racers
from claw_engine.approvals.evaluate import Answer, Verdict
from claw_engine.approvals.model import Decision
from claw_engine.sandbox.keeper import Keeper, Wishes
from claw_engine.tools.exec import pinned
from claw_engine.tools.exec.confine import Confinement
from claw_engine.tools.exec.pins import Start, by_person, by_rules
from claw_engine.tools.exec.tool import ExecTool
from claw_engine.tools.registry import ToolRegistry
from claw_engine.world import RealClock, RealDisk, RealIds, RealSpawn, World
from tests.approvals.conftest import Box, box

__all__ = ["box"]


def approved(box: Box, command: str) -> Start:
    """What starts after a person allowed the command as it is now."""
    return by_person(box.decide(command), box.env, box.fs, fixed_cwd=False)


def ruled(box: Box, verdict: Verdict) -> Start:
    assert verdict.verdict is Answer.ALLOW, verdict.reasons
    return by_rules(verdict, box.env, box.fs, fixed_cwd=False)


def ran(box: Box, start: Start) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        start.argv, env=dict(start.env), cwd=box.cwd, text=True, capture_output=True, timeout=30,
        check=False,
    )  # fmt: skip


def said(box: Box, command: str) -> str:
    done = ran(box, approved(box, command))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_changeable_starts_as_it_is(box: Box) -> None:
    verdict = box.decide("uname -s")
    assert by_person(verdict, box.env, box.fs, fixed_cwd=True).argv == ("/usr/bin/uname", "-s")
    assert by_person(verdict, box.env, box.fs, fixed_cwd=False).argv[-2:] == (
        "/usr/bin/uname", "-s",
    )  # fmt: skip


def test_text_that_needs_a_shell_goes_to_one(box: Box) -> None:
    env = {"PATH": "/usr/bin:/bin"}
    start = by_person(box.decide("echo $HOME > x"), env, box.fs, fixed_cwd=True)
    assert start.argv == ("/bin/sh", "-c", "echo $HOME > x")


SHOWS = 'echo "$0|$#|$1|$2"; pwd\n'


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("sh ./s.sh 'a b' c", "./s.sh"),
        ("sh -eu s.sh 'a b' c", "s.sh"),
        ("bash --norc sub/../s.sh 'a b' c", "sub/../s.sh"),
        ("nice sh s.sh 'a b' c", "s.sh"),
        ("env nice -n 1 sh s.sh 'a b' c", "s.sh"),
    ],
)
def test_a_shell_script_sees_its_name_and_arguments(box: Box, command: str, name: str) -> None:
    (box.cwd / "sub").mkdir()
    (box.cwd / "s.sh").write_text(SHOWS)
    assert said(box, command) == f"{name}|2|a b|c\n{box.cwd}"


@pytest.mark.parametrize(
    "line", ["#!/bin/sh", "#!/bin/sh -eu", "#!/usr/bin/env bash", "#! /bin/bash"]
)
def test_an_executable_script_runs_by_its_first_line(box: Box, line: str) -> None:
    script = box.program("work/s", f"{line}\n{SHOWS}")
    assert said(box, "./s 'a b' c") == f"{box.cwd}/./s|2|a b|c\n{box.cwd}"
    box.program("bin/tool", f"{line}\n{SHOWS}")
    assert said(box, "timeout 20 tool 'a b' c").endswith(f"tool|2|a b|c\n{box.cwd}")
    assert script.exists()


def test_a_program_without_a_first_line_is_the_shells(box: Box) -> None:
    box.program("work/s", SHOWS)
    assert said(box, "./s 'a b' c") == f"{box.cwd}/./s|2|a b|c\n{box.cwd}"


PYTHON = shutil.which("python3") or sys.executable
PROGRAM = """\
# -*- coding: latin-1 -*-
from __future__ import annotations
import sys, os, sibling
if __name__ == "__main__":
    print(sys.argv, __file__, sys.path[0] == os.path.dirname(os.path.realpath(__file__)))
    print(sibling.VALUE, "sys" in globals(), "é".encode("latin-1"))
"""


@pytest.mark.parametrize("options", ["", "-u ", "-B -O "])
def test_a_python_program_finds_its_neighbours(box: Box, options: str) -> None:
    (box.cwd / "sub").mkdir()
    (box.cwd / "sub/sibling.py").write_text("VALUE = 7\n")
    (box.cwd / "sub/x.py").write_text(PROGRAM, "latin-1")
    plain = subprocess.run(
        [PYTHON, *options.split(), "sub/x.py", "a b"], cwd=box.cwd, capture_output=True, check=True
    )
    assert "True\n7 True" in plain.stdout.decode()
    assert said(box, f"{PYTHON} {options}sub/x.py 'a b'") == plain.stdout.decode().strip()


def test_awk_and_sed_read_their_programs_from_the_copy(box: Box) -> None:
    (box.cwd / "p.awk").write_text('BEGIN { print "awk" }\n')
    (box.cwd / "p.sed").write_text("s/a/b/\n")
    (box.cwd / "in").write_text("a\n")
    assert said(box, "awk -f p.awk") == "awk"
    assert said(box, "sed -f p.sed in") == "b"


def test_a_binary_runs_from_its_own_file(box: Box) -> None:
    shutil.copy("/bin/readlink", box.bin / "mine")
    assert said(box, "mine /proc/self/exe") == str(box.bin / "mine")
    assert said(box, "nice mine -f /proc/self/cwd") == str(box.cwd)


def test_a_program_is_called_by_the_name_that_was_typed(box: Box) -> None:
    shutil.copy("/bin/dash", box.root / "opt/real")
    (box.bin / "other").symlink_to(box.root / "opt/real")
    assert said(box, "other -c 'echo $0'").endswith("/bin/other")


def test_the_exit_code_and_a_signal_pass_through(box: Box) -> None:
    (box.cwd / "s.sh").write_text("exit 7\n")
    assert ran(box, approved(box, "sh s.sh")).returncode == 7
    (box.cwd / "s.sh").write_text("kill -9 $$\n")
    assert ran(box, approved(box, "sh s.sh")).returncode == -9


def test_standard_input_is_the_commands(box: Box) -> None:
    (box.cwd / "s.sh").write_text("read a; echo got $a\n")
    start = approved(box, "sh s.sh")
    done = subprocess.run(
        start.argv, env=dict(start.env), cwd=box.cwd, input=b"x\n", capture_output=True, check=True
    )
    assert done.stdout == b"got x\n"


def overwrite(box: Box) -> None:
    (box.cwd / "s.sh").write_text("echo B\n")


def rename_over(box: Box) -> None:
    (box.cwd / "new").write_text("echo B\n")
    (box.cwd / "new").chmod(0o755)
    (box.cwd / "new").replace(box.cwd / "s.sh")


def relink(box: Box) -> None:
    (box.cwd / "b.sh").write_text("echo B\n")
    (box.cwd / "s.sh").unlink()
    (box.cwd / "s.sh").symlink_to("b.sh")


def another_folder(box: Box) -> None:
    box.cwd.rename(box.root / "aside")
    shutil.copytree(box.root / "aside", box.cwd)


def gone(box: Box) -> None:
    (box.cwd / "s.sh").unlink()


@pytest.mark.parametrize("swap", [overwrite, rename_over, relink, another_folder, gone])
@pytest.mark.parametrize(
    "command", ["sh s.sh", "./s.sh", "sh s.sh | cat", ". ./s.sh", "cat s.sh > /dev/null; sh s.sh"]
)
def test_a_swap_after_the_engines_own_check_is_seen(
    box: Box, command: str, swap: Callable[[Box], None]
) -> None:
    box.program("work/s.sh", "echo A\n")
    start = approved(box, command)
    swap(box)
    done = ran(box, start)
    assert done.returncode == pinned.CHANGED
    assert done.stdout == ""
    assert "changed since it was approved" in done.stderr


def test_a_script_that_appears_after_the_question_does_not_run(box: Box) -> None:
    start = approved(box, "sh later.sh")
    (box.cwd / "later.sh").write_text("echo B\n")
    done = ran(box, start)
    assert (done.returncode, done.stdout) == (pinned.CHANGED, "")


def test_a_program_planted_on_path_is_seen_in_text_for_a_shell_too(box: Box) -> None:
    start = approved(box, "uname > out; sh -c 'id -u'")
    assert ran(box, start).returncode == 0
    for name in ("uname", "id"):
        planted = box.program(f"bin/{name}", "#!/bin/sh\necho B\n")
        done = ran(box, start)
        assert (done.returncode, done.stdout) == (pinned.CHANGED, "")
        planted.unlink()


def test_a_first_line_leads_to_what_it_led_to(box: Box) -> None:
    """`env NAME` is found anew along PATH: another program there is a change."""
    box.program("work/s", "#!/usr/bin/env thing\n")
    (box.bin / "thing").symlink_to("/bin/cat")
    early = box.root / "early"
    early.mkdir()
    box_env = {**box.env, "PATH": f"{early}:{box.env['PATH']}"}
    verdict = box.decide("./s")
    start = by_person(verdict, box_env, box.fs, fixed_cwd=False)
    shutil.copy("/bin/echo", early / "thing")
    done = ran(box, start)
    assert done.returncode == pinned.CHANGED


def test_a_file_that_is_being_written_does_not_run(box: Box) -> None:
    script = box.program("work/s.sh", "echo A\n")
    start = approved(box, "sh s.sh")
    with script.open("r+"):
        assert ran(box, start).returncode == pinned.CHANGED
    assert ran(box, start).stdout == "A\n"


def test_a_rules_program_runs_with_the_content_of_its_rule(box: Box) -> None:
    tool = box.program("bin/tool", "#!/bin/sh\necho A $1\n")
    verdict = box.decide("tool x", box.rule(tool))
    assert ran(box, ruled(box, verdict)).stdout == "A x\n"
    tool.write_text("#!/bin/sh\necho B\n")
    done = ran(box, ruled(box, verdict))
    assert (done.returncode, done.stdout) == (pinned.CHANGED, "")


def test_what_runs_unasked_is_not_steered(box: Box) -> None:
    """It finds the system's programs first, and the operator's EDITOR is not its business."""
    box.program("bin/uname", "#!/bin/sh\necho planted\n")
    tool = box.program("opt/tool", "#!/bin/sh\nuname -s; echo ${GIT_SSH_COMMAND-none} $LANG\n")
    verdict = box.decide(str(tool), box.rule(tool))
    env = {**box.env, "GIT_SSH_COMMAND": "x", "LANG": "C"}
    start = by_rules(verdict, env, box.fs, fixed_cwd=False)
    assert ran(box, start).stdout == f"{os.uname().sysname}\nnone C\n"


# Behind the walls


@pytest.mark.parametrize("backend", ["bwrap", "landlock"])
async def test_the_last_check_works_in_the_sandbox(tmp_path: Path, backend: str) -> None:
    disk = RealDisk()
    desk = Racers(tmp_path, World(RealClock(), RealIds(), disk, RealSpawn()))
    await desk.broker.start()
    keeper = Keeper(desk.world, desk.state.root, dict(os.environ), Wishes(backend=backend))
    await keeper.check()
    if not keeper.confines:
        pytest.skip(f"no {backend} here")
    desk.registry = ToolRegistry([ExecTool(confinement=Confinement(keeper))])
    job = desk.workspace / "job"
    job.mkdir()
    (job / "s.sh").write_text('echo "$0 $1"\n')
    (job / "x").write_text('#!/bin/sh\necho "$0"\n')
    (job / "x").chmod(0o755)
    shutil.copy("/bin/echo", job / "mine")
    (job / "p.py").write_text("import sys\nprint(sys.argv)\n")
    wanted = {
        "sh s.sh 1": "s.sh 1", "./x": f"{job}/./x", "./mine E": "E", "sh s.sh 1 | cat": "s.sh 1",
        f"{sys.executable} p.py 2": "['p.py', '2']",
    }  # fmt: skip
    for command, said_there in wanted.items():
        result, record = await desk.answered(
            Decision.ALLOW_ONCE, "exec", command=command, workdir=str(job)
        )
        assert (result.text, record.ask.sandbox) == (said_there, backend), command
    await desk.table.close()
    await desk.broker.close()
    disk.close()
