"""What a command in a session's sandbox tries against this machine, on each real backend.

Every target is harmless: if a sandbox fails, a file of the test is read or a test's process is
signalled, nothing of the machine is harmed. Bombs are small and count themselves.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_engine.sandbox.boxes import Boxes
from claw_engine.tools.guard import Access, Guard
from tests.sandbox.boxes_rig import BOX_BACKENDS, BoxRig, box_rig
from tests.sandbox.rig import GOT, Machine, is_root


@pytest.fixture(scope="module", params=BOX_BACKENDS)
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BoxRig]:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    rig = box_rig(machine, str(request.param))
    yield rig
    rig.close()
    machine.close()


@pytest.fixture
def rig(made: BoxRig) -> BoxRig:
    """One box for all tests of a backend; each finds its workspace empty."""
    own = Path(made.box.workspace)
    for path in own.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    (own / ".tmp").mkdir()
    return made


def test_it_works_at_all(rig: BoxRig) -> None:
    done = rig.sh("echo hello > made && cat made && pwd")
    assert done.stdout.split() == ["hello", rig.box.workdir], done.stderr
    assert (Path(rig.box.workspace) / "made").read_text() == "hello\n"


# ── write outside ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "place", ["home", "projects", "agent workspace", "state", "beside", "/usr", "/etc", "/var"]
)
def test_write_outside(rig: BoxRig, place: str) -> None:
    machine = rig.machine
    folder = {
        "home": machine.home,
        "projects": machine.home / "projects",
        "agent workspace": machine.workspace,
        "state": machine.state,
        "beside": Path(rig.box.workspace).parent,
    }.get(place, Path(place))
    target = folder / "claw-test-of-sandbox"
    rig.sh(f"set -C; : > {target}")
    made = target.exists()
    target.unlink(missing_ok=True)
    assert not made


def test_out_of_the_workspace_by_name(rig: BoxRig) -> None:
    rig.sh("mkdir -p a; : > a/../../claw-test; mv a ../claw-test-2; ln ../AGENTS.md x")
    left = {path.name for path in Path(rig.box.workspace).parent.iterdir()}
    assert left == {Path(rig.box.workspace).name}


# ── read secrets ────────────────────────────────────────────────────────────────────────────────


def test_read_secrets(rig: BoxRig) -> None:
    machine = rig.machine
    (machine.workspace / "private.md").write_text(f"{GOT} notes")
    for path in (
        machine.state / "door.key", machine.home / ".ssh" / "id_ed25519",
        machine.workspace / "private.md", machine.home / ".profile",
    ):  # fmt: skip
        done = rig.sh(f"cat {path}; cat /proc/1/root{path}; cat /proc/self/root{path}; "
                      f"for p in /proc/[0-9]*; do cat $p/root{path}; done")  # fmt: skip
        assert GOT not in done.stdout and "# mine" not in done.stdout, path


@pytest.mark.skipif(not is_root(), reason="needs root to be an attack")
def test_read_the_systems_secrets(rig: BoxRig) -> None:
    assert ":" not in rig.sh("cat /etc/shadow /etc/gshadow 2>/dev/null").stdout


def test_its_environment_has_nothing_of_ours(rig: BoxRig) -> None:
    names = {line.partition("=")[0] for line in rig.sh("env").stdout.splitlines()}
    assert not names & {"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "TMUX"}
    assert str(rig.machine.home) not in rig.sh("env").stdout


# ── network ─────────────────────────────────────────────────────────────────────────────────────

CONNECT = """
import socket, sys
for where in ("127.0.0.1", sys.argv[2]):
    try:
        socket.create_connection((where, int(sys.argv[1])), 3); print("GOT through")
    except OSError: pass
"""


def test_no_network(rig: BoxRig) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        if rig.is_docker:
            out = rig.sh(
                f"for h in 127.0.0.1 {_address()}; do nc -w 3 $h {port} </dev/null "
                f"&& echo {GOT}; done"
            ).stdout
        else:
            out = rig.python(CONNECT, port, _address())
            plain = subprocess.run(
                ["python3", "-c", CONNECT, str(port), "127.0.0.1"], capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            assert GOT in plain.stdout, "the attack is no attack"
    assert GOT not in out


def _address() -> str:
    """An address of this machine other than loopback, if it has one; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


# ── other processes ─────────────────────────────────────────────────────────────────────────────

PTRACE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, int(sys.argv[1]), None, None) == 0:
    os.waitpid(int(sys.argv[1]), 0x40000000); libc.ptrace(17, int(sys.argv[1]), None, None)
    print("GOT attached")
"""


def test_other_processes(rig: BoxRig) -> None:
    other = subprocess.Popen(["/bin/sleep", "600"], env={"SECRET": f"{GOT} it"})
    try:
        if not rig.is_docker:
            assert GOT not in rig.python(PTRACE, other.pid)
        # Its number may be another process's in there: what counts is what became of this one.
        out = rig.sh(f"cat /proc/{other.pid}/environ; kill -9 {other.pid}").stdout
        assert GOT not in out
        assert other.poll() is None
        names = rig.sh("for p in /proc/[0-9]*; do cat $p/environ; done").stdout
        assert GOT not in names
    finally:
        other.kill()
        other.wait()


# ── devices and mounts ──────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not is_root(), reason="needs root to be an attack")
def test_device_nodes(rig: BoxRig) -> None:
    rig.sh("mknod disk b 7 0; mknod mem c 1 5")
    made = [name for name in ("disk", "mem") if (Path(rig.box.workspace) / name).exists()]
    for name in made:
        (Path(rig.box.workspace) / name).unlink()
    assert not made
    there = "/dev/vda /dev/sda /dev/nvme0n1 /dev/mem /dev/kmsg /dev/loop0"
    opened = rig.sh(f"for d in {there}; do head -c 1 $d >/dev/null && echo {GOT}; done")
    assert GOT not in opened.stdout


def test_mounts(rig: BoxRig) -> None:
    key = rig.machine.state / "door.key"
    done = rig.sh(
        f"umount -l {rig.machine.state}; mkdir -p m; mount -t tmpfs x m && echo {GOT}; "
        f"mount --bind / m && cat m{key}; unshare -m sh -c 'umount -l {rig.machine.state}; "
        f"cat {key}'; nsenter -t 1 -m cat {key}; chroot /proc/1/root cat {key}"
    )
    assert GOT not in done.stdout


@pytest.mark.skipif(not is_root(), reason="needs root to be an attack")
def test_kernel_settings(rig: BoxRig) -> None:
    """Opened for writing, never written: a failing sandbox must not cost the machine anything."""
    for name in ("kernel/core_pattern", "kernel/hostname", "vm/swappiness"):
        done = rig.sh(f"(: <>/proc/sys/{name}) 2>/dev/null && echo {GOT}")
        assert GOT not in done.stdout, name


# ── symlink staging ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("what", ["file", "folder", "chain"])
def test_links_for_the_file_tools(rig: BoxRig, what: str) -> None:
    """A command leaves a link; a tool outside the box that follows it must know where it leads."""
    key, state = rig.machine.state / "door.key", rig.machine.state
    home = rig.machine.home
    rig.sh({
        "file": f"ln -s {home}/.profile out",
        "folder": f"ln -s {home} dir; ln -s dir/.profile out",
        "chain": f"mkdir d; ln -s {home} d/up; ln -s d/up/.profile out",
    }[what])  # fmt: skip
    guard = Guard(Path(rig.box.workspace), state)
    target = guard.decide("out")
    assert target.access is Access.ASK
    rig.sh(f"ln -s {key} key")
    with pytest.raises(Exception, match="state directory"):
        guard.decide("key")


def test_seeds_never_go_through_a_link(rig: BoxRig) -> None:
    import asyncio

    own, boxes = Path(rig.box.workspace), rig.boxes
    assert isinstance(boxes, Boxes)
    (rig.machine.workspace / "SOUL.md").write_text("mine")
    target = rig.machine.home / "projects" / "planted"
    rig.sh(f"rm -f SOUL.md; ln -s {target} SOUL.md")
    assert os.path.lexists(own / "SOUL.md")
    asyncio.run(boxes.prepare(rig.box))
    assert not target.exists()


# ── bombs ───────────────────────────────────────────────────────────────────────────────────────

FORKS = "n=0; while [ $n -lt 200 ]; do sleep 20 & n=$((n+1)); echo $n; done 2>/dev/null"
MEMORY = """
kept = []
for n in range(40):
    kept.append(bytearray(b"x" * (10 << 20)))
print("GOT 400 MB")
"""


def test_fork_bomb(rig: BoxRig) -> None:
    """64 processes at most; it counts to 200 where nothing stops it, and ends by itself."""
    if not rig.is_docker and rig.boxes.keeper.limits.missing and is_root():
        pytest.skip(f"not limited here: {'; '.join(rig.boxes.keeper.limits.missing)}")
    done = rig.sh(f"{FORKS}; true", 120)
    counted = max((int(n) for n in done.stdout.split()), default=0)
    assert counted < 200
    rig.end_all()
    assert rig.sh("echo alive").stdout == "alive\n"


def test_memory_bomb(rig: BoxRig) -> None:
    if rig.is_docker:
        out = rig.sh(f"head -c 400000000 /dev/zero | tail -n 1 | wc -c && echo {GOT}").stdout
        assert f"400000000\n{GOT}" not in out
    else:
        assert GOT not in rig.python(MEMORY)
    assert rig.sh("echo alive").stdout == "alive\n"
