"""The backends without root: what a NAS user gets. Runs as nobody where the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_engine.sandbox import launcher
from claw_engine.sandbox.base import Plan, Sandbox, Scope
from claw_engine.sandbox.bwrap import Bwrap, find_program
from claw_engine.sandbox.landlock import Landlock
from claw_engine.sandbox.rules import Place, rules_for
from tests.sandbox.rig import GOT, is_root

NOBODY = 65534
PYTHON = "/usr/bin/python3"


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory that nobody can reach and owns; the tests' own one is closed for others."""
    path = Path(tempfile.mkdtemp(dir="/var/tmp"))
    for folder in ("state/workspace", "home/work"):
        (path / folder).mkdir(parents=True)
    (path / "state" / "door.key").write_text(GOT)
    (path / "home" / ".profile").write_text("# mine\n")
    for folder, _, files in os.walk(path):
        for name in ("", *files):
            os.chown(Path(folder) / name, NOBODY, NOBODY)
    yield path
    shutil.rmtree(path)


def backend_named(name: str) -> Sandbox:
    if name == "bwrap":
        program = find_program()
        if program is None:
            pytest.skip("bubblewrap is not installed")
        return Bwrap(program)
    if launcher.abi() < 1:
        pytest.skip("this kernel has no Landlock")
    readable = Path(launcher.__file__).stat().st_mode & 0o004 and Path(PYTHON).exists()
    if not readable:
        pytest.skip("nobody cannot run the launcher here")
    return Landlock(launcher.abi(), PYTHON)


@pytest.mark.skipif(not is_root(), reason="only root can become nobody")
@pytest.mark.parametrize("name", ["bwrap", "landlock"])
def test_confined_as_nobody(root: Path, name: str) -> None:
    state, home = root / "state", root / "home"
    place = Place(str(state / "workspace"), str(state), (str(home),))

    def run(command: str, *, confined: bool) -> str:
        argv = ("/bin/sh", "-c", command)
        env = {"PATH": "/usr/bin:/bin"}
        plan = Plan(
            argv, str(state / "workspace"), env, rules_for(place, Scope.MACHINE), uid=NOBODY
        )
        chosen = backend_named(name).wrap(plan).argv if confined else argv
        done = subprocess.run(
            chosen, env=env, cwd=state / "workspace", user=NOBODY, group=NOBODY, extra_groups=[],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if confined and "bwrap: " in done.stderr and "user namespace" in done.stderr:
            pytest.skip(f"no user namespaces here: {done.stderr.strip()}")
        return done.stdout

    assert "uid=65534" in run("id", confined=True)
    attacks = {
        f"cat {state}/door.key": GOT,
        f"echo x >> {home}/.profile && echo {GOT}": GOT,
        f"echo x >> {home}/.bash_profile && echo {GOT}": GOT,
        f"mv {state}/door.key {home}/work/key && mv {home}/work/key {state}/door.key "
        f"&& echo {GOT}": GOT,
    }
    for command in attacks:
        assert GOT not in run(command, confined=True), command
        assert GOT in run(command, confined=False), "the attack is no attack"
    assert GOT in run(f"echo x > made && echo x > {home}/work/made && echo {GOT}", confined=True)
