"""An allowed command that knows every path cannot approve the next one.

Each attack is also run unconfined, where it must succeed: an attack that never works proves
nothing. Where a backend cannot stop one, the warning line must name the route.
"""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from claw_engine.sandbox.base import Scope
from tests.sandbox.rig import GOT, Machine, is_root

READ = "import sys\nprint(open(sys.argv[1], errors='replace').read(4000))"
WRITE = "import sys\nopen(sys.argv[1], 'a').write('x'); print('GOT it written')"
CONNECT = """
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print("GOT connected")
"""
RENAME = "import os, sys\nos.rename(sys.argv[1], sys.argv[2]); print('GOT it moved')"


def stopped(machine: Machine, backend: str, script: str, *args: object) -> None:
    """The attack works unconfined, and does not on `backend`."""
    confined = machine.attack(machine.keeper(backend), script, *args)
    assert GOT not in confined
    assert GOT in machine.attack(machine.keeper("none"), script, *args), "the attack is no attack"


# ── the state directory ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["door.key", "exec-approvals.json"])
@pytest.mark.parametrize("script", [READ, WRITE])
def test_state_files(machine: Machine, backend: str, name: str, script: str) -> None:
    (machine.state / name).write_text(GOT)
    before = (machine.state / name).read_text()
    assert GOT not in machine.attack(machine.keeper(backend), script, machine.state / name)
    assert (machine.state / name).read_text() == before
    assert GOT in machine.attack(machine.keeper("none"), script, machine.state / name)


@pytest.mark.parametrize("link", ["symlink", "proc", "relative"])
def test_state_by_other_names(machine: Machine, backend: str, link: str) -> None:
    key = machine.state / "door.key"
    other: dict[str, object] = {
        "symlink": machine.workspace / "innocent",
        "proc": f"/proc/self/root{key}",
        "relative": "../door.key",
    }
    if link == "symlink":
        (machine.workspace / "innocent").symlink_to(key)
    stopped(machine, backend, READ, other[link])


def test_through_the_root_of_any_process(machine: Machine, backend: str) -> None:
    script = """
import glob, sys
for root in glob.glob("/proc/[0-9]*/root"):
    try: print(open(root + sys.argv[1]).read())
    except OSError: pass
"""
    stopped(machine, backend, script, machine.state / "door.key")


@pytest.mark.parametrize("what", ["state", "parent"])
def test_state_moved_away_and_replaced(machine: Machine, backend: str, what: str) -> None:
    folder = machine.state if what == "state" else machine.state.parent
    stopped(machine, backend, RENAME, folder, folder.with_name("elsewhere"))


def test_a_hard_link_made_inside(machine: Machine, backend: str) -> None:
    script = "import os, sys\nos.link(sys.argv[1], 'mine'); print(open('mine').read())"
    stopped(machine, backend, script, machine.state / "door.key")


def test_mounts_cannot_be_taken_away(machine: Machine, backend: str) -> None:
    key = machine.state / "door.key"
    command = (
        f"umount {machine.state}; umount -l {machine.state}; cat {key}; "
        f"unshare -Urm sh -c 'umount -l {machine.state}; cat {key}'; "
        f"unshare -m sh -c 'umount -l {machine.state}; cat {key}'; "
        f"mount -t tmpfs x /tmp && echo {GOT}; "
        f"nsenter -t 1 -m cat {key}; chroot /proc/1/root cat {key}"
    )
    done = machine.run(machine.keeper(backend), ("/bin/sh", "-c", command))
    assert GOT not in done.stdout


def test_workspace_is_what_it_was(machine: Machine, backend: str) -> None:
    out = machine.attack(machine.keeper(backend), WRITE, machine.workspace / "made")
    assert GOT in out
    assert (machine.workspace / "made").read_text() == "x"


# ── the engine's process ────────────────────────────────────────────────────────────────────────

PROC = """
import os, sys
pid = sys.argv[1]
for name in ("environ", "maps", "auxv"):
    try: print("GOT", open(f"/proc/{pid}/{name}", "rb").read(10))
    except OSError as error: print(name, error.strerror)
for name in ("cwd", "root", "exe"):
    try: print("GOT", os.readlink(f"/proc/{pid}/{name}"))
    except OSError as error: print(name, error.strerror)
for name in ("fd/0", "mem", "cwd/."):
    try: os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY)); print("GOT", name)
    except OSError as error: print(name, error.strerror)
"""
PTRACE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, int(sys.argv[1]), None, None) == 0:
    os.waitpid(int(sys.argv[1]), 0x40000000); libc.ptrace(17, int(sys.argv[1]), None, None)
    print("GOT attached")
"""
KILL = "import os, sys\nos.kill(int(sys.argv[1]), 0); print('GOT a signal through')"


@pytest.mark.parametrize("script", [PROC, PTRACE, KILL], ids=["proc", "ptrace", "kill"])
def test_the_engines_process(machine: Machine, backend: str, script: str) -> None:
    engine = subprocess.Popen(["/bin/sleep", "600"])
    try:
        stopped(machine, backend, script, engine.pid)
    finally:
        engine.kill()
        engine.wait()


# ── terminals and multiplexers ──────────────────────────────────────────────────────────────────


def test_no_terminal_of_the_operator(machine: Machine, backend: str) -> None:
    master, slave = pty.openpty()
    try:
        stopped(machine, backend, WRITE, os.ttyname(slave))
    finally:
        os.close(master)
        os.close(slave)


def test_no_controlling_terminal(machine: Machine, backend: str) -> None:
    assert GOT not in machine.attack(machine.keeper(backend), WRITE, "/dev/tty")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_tmux(machine: Machine, backend: str) -> None:
    env = {**machine.env, "TERM": "xterm"}
    env.pop("TMUX", None)
    proof = machine.root / "typed"
    subprocess.run(["tmux", "-f", "/dev/null", "new-session", "-d", "sh"], env=env, check=True)
    try:
        sock = next((machine.root / f"tmux-{os.geteuid()}").iterdir())
        command = ("tmux", "-S", str(sock), "run-shell", f"touch {proof}")
        keeper = machine.keeper(backend)
        machine.run(keeper, command)
        through = proof.exists()
        assert through == (keeper.warning is not None and "tmux" in keeper.warning)
        assert not (backend == "bwrap" and through)
        machine.run(machine.keeper("none"), command)
        assert proof.exists(), "the attack is no attack"
    finally:
        subprocess.run(["tmux", "kill-server"], env=env, check=False)


# ── services that act for their callers ─────────────────────────────────────────────────────────

SERVICES = {
    "bus": "the user bus",
    "systemd/private": "the user's systemd",
    "docker.sock": "docker.sock",
    "podman/podman.sock": "podman.sock",
    "wayland-0": "the Wayland display",
}


@pytest.mark.parametrize("name", SERVICES)
def test_services_of_the_user(machine: Machine, backend: str, name: str) -> None:
    path = machine.listen(machine.runtime / name)
    keeper = machine.keeper(backend)
    through = GOT in machine.attack(keeper, CONNECT, path)
    named = keeper.warning is not None and SERVICES[name] in keeper.warning
    assert through == named
    assert not (backend == "bwrap" and through)
    assert GOT in machine.attack(machine.keeper("none"), CONNECT, path)


def test_docker_wherever_it_is(machine: Machine, backend: str) -> None:
    path = machine.listen(machine.home / "projects" / "d.sock")
    machine.env["DOCKER_HOST"] = f"unix://{path}"
    keeper = machine.keeper(backend)
    through = GOT in machine.attack(keeper, CONNECT, path)
    assert through == (backend == "landlock")
    assert (keeper.warning is not None and "docker.sock" in keeper.warning) == through


def test_bwrap_hides_every_listening_socket(machine: Machine) -> None:
    hidden = machine.listen(machine.home / "projects" / "editor.sock")
    own = machine.listen(machine.workspace / "server.sock")
    keeper = machine.keeper("bwrap")
    assert GOT not in machine.attack(keeper, CONNECT, hidden)
    assert GOT in machine.attack(keeper, CONNECT, own)
    assert GOT in machine.attack(machine.keeper("bwrap", reach=(str(hidden),)), CONNECT, hidden)


def test_sockets_with_odd_names_and_one_that_is_gone(machine: Machine) -> None:
    """A socket that vanishes between the look and the start does not keep the command from it."""
    odd = [machine.listen(machine.home / name) for name in ("a b", "it's", 'q"$(x)`x`')]
    gone = machine.listen(machine.home / "gone")
    keeper, workspace = machine.keeper("bwrap"), str(machine.workspace)
    for path in odd:
        argv = (sys.executable, "-I", "-c", CONNECT, str(path))
        plan = keeper.plan(argv, workspace, machine.env, workspace)
        assert {str(path), *map(str, {gone} & {*machine.home.iterdir()})} <= plan.sockets
        gone.unlink(missing_ok=True)
        done = subprocess.run(
            keeper.wrap(plan).argv, capture_output=True, text=True, check=False,
            env=dict(plan.env), cwd=workspace,
        )  # fmt: skip
        assert "ConnectionRefused" in done.stderr
        assert GOT not in done.stdout


def test_what_is_reached_on_purpose_is_named(machine: Machine, backend: str) -> None:
    """Also below a hidden directory."""
    path = machine.listen(machine.runtime / "docker.sock")
    opened = machine.keeper(backend, reach=(str(path),))
    assert GOT in machine.attack(opened, CONNECT, path)
    assert opened.warning is not None
    assert "docker.sock" in opened.warning


def test_the_ssh_agent_stays_where_no_sshd_listens(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claw_engine.sandbox.machine import Machine as Looked

    agent = machine.listen(machine.runtime / "keyring" / "ssh")
    env = {**machine.env, "SSH_AUTH_SOCK": str(agent)}
    monkeypatch.setattr(Looked, "_tcp_ports", lambda self: frozenset())
    keeper = machine.keeper("bwrap")
    assert GOT in machine.attack(keeper, CONNECT, agent, env=env)
    assert GOT not in machine.attack(keeper, CONNECT, agent, env=env, scope=Scope.WORKSPACE)
    monkeypatch.setattr(Looked, "_tcp_ports", lambda self: frozenset({22}))
    assert GOT not in machine.attack(keeper, CONNECT, agent, env=env)


def test_no_variable_leads_there(machine: Machine, backend: str) -> None:
    machine.env |= {"TMUX": "/x,1,0", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "STY": "1.x"}
    out = machine.run(machine.keeper(backend), ("/usr/bin/env",)).stdout
    for name in ("TMUX=", "DBUS_SESSION_BUS_ADDRESS=", "STY=", "XDG_RUNTIME_DIR="):
        assert name not in out


@pytest.mark.parametrize("command", ["systemd-run --user true", "crontab", "at"])
def test_programs_that_would_run_it_later(machine: Machine, backend: str, command: str) -> None:
    """The real programs, where they are installed, with an operator's rights."""
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    # Where the sandbox fails: a comment more in the table, a job that does nothing in 99 days.
    feed = {
        "crontab": "(crontab -l; echo '# claw-test') 2>/dev/null | crontab -",
        "at": "echo true | at now + 99 days",
    }.get(command, command)
    done = machine.run(machine.keeper(backend), ("/bin/sh", "-c", f"{feed} && echo {GOT}"))
    assert GOT not in done.stdout


# ── what runs later ─────────────────────────────────────────────────────────────────────────────

HOME_FILES = (
    ".profile", ".bash_profile", ".zshenv", ".pam_environment", ".config/autostart",
    ".ssh/authorized_keys", ".local", "bin/ls", "new",
)  # fmt: skip


@pytest.mark.parametrize("name", HOME_FILES)
def test_start_up_files(machine: Machine, backend: str, name: str) -> None:
    existed = (machine.home / name).exists()
    stopped(machine, backend, WRITE, machine.home / name)
    assert existed == (name == ".profile")


def test_start_up_file_moved_or_replaced(machine: Machine, backend: str) -> None:
    (machine.home / "projects" / "p").write_text("evil")
    stopped(machine, backend, RENAME, machine.home / "projects" / "p", machine.home / ".profile")


def test_start_up_file_behind_a_link(machine: Machine, backend: str) -> None:
    dotfiles = machine.home / "projects" / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "zshrc").write_text("# mine")
    (machine.home / ".zshrc").symlink_to(dotfiles / "zshrc")
    stopped(machine, backend, WRITE, dotfiles / "zshrc")
    for target in (dotfiles, dotfiles / "zshrc"):
        out = machine.attack(machine.keeper(backend), RENAME, target, target.with_name("elsewhere"))
        assert GOT not in out


def test_data_in_the_home_stays_writable(machine: Machine, backend: str) -> None:
    out = machine.attack(machine.keeper(backend), WRITE, machine.home / "projects" / "notes")
    assert GOT in out


@pytest.mark.skipif(not is_root(), reason="needs root to be an attack")
@pytest.mark.parametrize("folder", ["/etc", "/usr/local/bin", "/etc/cron.d", "/root", "/bin"])
def test_system_directories_for_root(machine: Machine, backend: str, folder: str) -> None:
    if not Path(folder).is_dir():
        pytest.skip(f"no {folder} here")
    script = """
import os, sys
path = sys.argv[1] + "/claw-test-of-sandbox"
os.close(os.open(path, os.O_CREAT | os.O_EXCL)); os.unlink(path); print("GOT it made")
"""
    stopped(machine, backend, script, folder)


@pytest.mark.skipif(not is_root(), reason="needs root to be an attack")
@pytest.mark.parametrize("name", ["kernel/core_pattern", "vm/swappiness", "kernel/hostname"])
def test_kernel_settings_for_root(machine: Machine, backend: str, name: str) -> None:
    script = """
import sys
text = open(sys.argv[1]).read()
open(sys.argv[1], "w").write(text); print("GOT it set (to what it was)")
"""
    stopped(machine, backend, script, f"/proc/sys/{name}")


@pytest.mark.skipif(not is_root(), reason="needs root to be an attack")
def test_no_device_nodes(machine: Machine, backend: str) -> None:
    script = """
import os, stat
os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(7, 0)); print("GOT a device"); os.unlink("disk")
"""
    stopped(machine, backend, script)


def test_the_engines_own_code(machine: Machine, backend: str) -> None:
    import claw_engine

    made = Path(claw_engine.__file__).with_name("planted_by_a_test.py")
    try:
        assert GOT not in machine.attack(machine.keeper(backend), WRITE, made)
        assert GOT not in machine.attack(
            machine.keeper(backend), WRITE, Path(sys.prefix) / "planted_by_a_test"
        )
    finally:
        made.unlink(missing_ok=True)


# ── ssh to this machine ─────────────────────────────────────────────────────────────────────────


def test_keys_are_hidden_where_an_sshd_listens(
    machine: Machine, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claw_engine.sandbox.machine import Machine as Looked

    key = machine.home / ".ssh" / "id_ed25519"
    assert GOT in machine.attack(machine.keeper(backend), READ, key)
    monkeypatch.setattr(Looked, "_tcp_ports", lambda self: frozenset({22}))
    keeper = machine.keeper(backend)
    assert GOT not in machine.attack(keeper, READ, key)
    assert keeper.warning is None or "ssh" not in keeper.warning
    opened = machine.keeper(backend, reach=("ssh",))
    assert GOT in machine.attack(opened, READ, key)
    assert opened.warning is not None and "ssh to this machine" in opened.warning


# ── confined to the workspace ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["projects/notes", "new", ".cache/x"])
def test_workspace_scope_writes_nowhere_else(machine: Machine, backend: str, name: str) -> None:
    (machine.home / ".cache").mkdir(exist_ok=True)
    keeper = machine.keeper(backend)
    assert GOT not in machine.attack(keeper, WRITE, machine.home / name, scope=Scope.WORKSPACE)
    made = machine.workspace / "made"
    assert GOT in machine.attack(keeper, WRITE, made, scope=Scope.WORKSPACE)


def test_workspace_scope_has_no_keys_and_no_network(machine: Machine, backend: str) -> None:
    import socket

    keeper = machine.keeper(backend)
    key = machine.home / ".ssh" / "id_ed25519"
    assert GOT not in machine.attack(keeper, READ, key, scope=Scope.WORKSPACE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = (
            "import socket, sys\n"
            "socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5); print('GOT through')"
        )
        assert GOT in machine.attack(keeper, script, port)
        assert GOT not in machine.attack(keeper, script, port, scope=Scope.WORKSPACE)
