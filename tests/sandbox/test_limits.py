"""Limits of processes and memory: control groups of both versions, and what is left without."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from claw_engine.sandbox.limits import SPARE_PROCESSES, Limits, Wanted, limits, wanted

WISH = Wanted(100, 200 << 20)


def version_1(root: Path) -> Path:
    own = root / "own"
    own.write_text("8:pids:/user\n4:memory:/\n1:name=systemd:/\n0::/\n")
    for folder in ("pids/user", "memory"):
        (root / folder).mkdir(parents=True)
    return own


def version_2(root: Path, active: str) -> Path:
    own = root / "own"
    own.write_text("0::/user.slice/me\n")
    base = root / "user.slice" / "me"
    base.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory pids")
    (base / "cgroup.controllers").write_text("memory pids")
    (base / "cgroup.subtree_control").write_text(active)
    return own


def test_version_1(tmp_path: Path) -> None:
    found = limits(WISH, tmp_path, version_1(tmp_path), uid=0)
    assert not found.missing and not found.shell
    pids, memory = map(Path, found.groups)
    assert pids.parent == tmp_path / "pids" / "user"
    assert (pids / "pids.max").read_text() == "100"
    assert (memory / "memory.max").read_text() == str(200 << 20)


def test_version_2(tmp_path: Path) -> None:
    found = limits(WISH, tmp_path, version_2(tmp_path, "pids"), uid=1000)
    assert not found.missing
    (group,) = map(Path, found.groups)
    assert (group / "pids.max").read_text() == "100"
    asked = group.parent / "cgroup.subtree_control"
    assert asked.read_text() == "+memory"


def test_without_a_group(tmp_path: Path) -> None:
    """A user's processes are counted all together; root's are not, and that is said."""
    own = tmp_path / "own"
    own.write_text("0::/\n")
    found = limits(WISH, tmp_path, own, uid=1000)
    assert found.groups == () and f"ulimit -u {100 + SPARE_PROCESSES}" in found.shell
    assert f"ulimit -d {200 << 10}" in found.shell
    assert [what.partition(":")[0] for what in found.missing] == ["memory of all commands together"]
    assert any("root" in what for what in limits(WISH, tmp_path, own, uid=0).missing)
    assert limits(Wanted(), tmp_path, own, uid=0) == Limits()


def test_the_command_stays_what_it_is(tmp_path: Path) -> None:
    found = limits(Wanted(0, 1 << 30), tmp_path, tmp_path / "none", uid=1000)
    argv = found.around(("/bin/sh", "-c", 'echo "$0 $1"', "a b", "-- $x"))
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == "a b -- $x\n"
    process = subprocess.Popen(found.around(("/bin/sh", "-c", "echo $$")), stdout=subprocess.PIPE)
    assert int(process.communicate()[0]) == process.pid


def test_groups_of_engines_that_are_gone_are_swept(tmp_path: Path) -> None:
    own = version_1(tmp_path)
    old = tmp_path / "pids" / "user" / "claw-999999999-0"
    mine = tmp_path / "pids" / "user" / f"claw-{os.getpid()}-77"
    old.mkdir()
    mine.mkdir()
    limits(WISH, tmp_path, own, uid=0)
    assert not old.exists() and mine.exists()


def test_a_share_of_the_memory() -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert wanted(5, 50) == Wanted(5, total // 2)
    assert wanted(0, 0) == Wanted()
