"""A socket's owner, asked of the kernel: the same as /proc says of our own connections."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from claw_engine.gateway.web.proc_net import tcp_rows
from claw_engine.gateway.web.run_child import SETTLED_S, RunChildren
from claw_engine.gateway.web.sock_diag import owner_and_inode

HOSTS = ("127.0.0.1", "::1")


@pytest.fixture(params=HOSTS)
def ends(request: pytest.FixtureRequest) -> tuple[socket.socket, socket.socket]:
    host = request.param
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"{host} is not here")
    client = socket.create_connection(server.getsockname()[:2])
    request.addfinalizer(server.close)
    request.addfinalizer(client.close)
    return client, server


def test_the_kernel_and_proc_say_the_same(ends: tuple[socket.socket, socket.socket]) -> None:
    client, server = ends
    local, remote = client.getsockname()[:2], server.getsockname()[:2]
    try:
        found = owner_and_inode(local, remote)
    except OSError as error:
        pytest.skip(f"no answer here: {error}")
    (row,) = [r for r in tcp_rows() if (r.port, r.peer_port) == (local[1], remote[1])]
    assert found == (row.uid, row.inode)
    ours = Path(f"/proc/self/fd/{client.fileno()}").readlink()
    assert str(ours) == f"socket:[{row.inode}]"
    assert owner_and_inode((local[0], 1), remote) is None


@pytest.mark.parametrize("mark", (True, False))
def test_a_child_of_a_run_is_known(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch, *, mark: bool
) -> None:
    client, server = ends
    monkeypatch.setattr(
        "claw_engine.gateway.web.run_child.carries_mark",
        lambda pid, proc: mark and pid == os.getpid(),
    )
    peer, own = client.getsockname()[:2], server.getsockname()[:2]
    assert RunChildren(own_pid=-1).from_a_run(peer, own) is mark
    # Where the kernel answers no such questions, /proc/net does.
    monkeypatch.setattr("claw_engine.gateway.web.run_child.owner_and_inode", _refused)
    assert RunChildren(own_pid=-1).from_a_run(peer, own) is mark


def test_no_address_is_no_answer() -> None:
    with pytest.raises(OSError):
        owner_and_inode(("nowhere", 1), ("nowhere", 2))


def _refused(local: object, remote: object) -> None:
    raise PermissionError("not here")


class Proc:
    """A `/proc` on disk, as far as it is looked at, with one connection of process 50."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.at = 0.0
        (root / "net").mkdir()
        row = f"0: 0100007F:1389 0100007F:4965 01 0:0 0:0 0 {os.geteuid()} 0 777 1"
        (root / "net" / "tcp").write_text(f"head\n{row}\n")
        self.children = RunChildren(own_pid=-1, proc=root, now=lambda: self.at)

    def process(self, pid: int, environ: bytes, parent: int = 1) -> None:
        folder = self.root / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "environ").write_bytes(environ)
        (folder / "stat").write_text(f"{pid} (x) S {parent} 0")
        (folder / "fd" / "3").symlink_to("socket:[777]")

    def asked(self) -> bool:
        return self.children.from_a_run(("127.0.0.1", 0x1389), ("127.0.0.1", 0x4965))


def test_a_process_is_not_settled_before_it_had_time_to_become_what_it_is(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.process(50, b"HOME=/")
    assert not proc.asked()
    proc.at = SETTLED_S / 2
    (tmp_path / "50" / "environ").write_bytes(b"CLAW_RUN_ID=r")  # it called exec
    assert proc.asked()


def test_a_settled_process_is_not_read_again_but_its_id_may_come_back(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.process(50, b"HOME=/")
    assert not proc.asked()
    proc.at = SETTLED_S
    assert not proc.asked()
    (tmp_path / "50" / "environ").unlink()
    (tmp_path / "50" / "environ").write_bytes(b"CLAW_RUN_ID=r")  # which no process can do
    assert not proc.asked()
    (tmp_path / "50").rename(tmp_path / "gone")
    proc.process(50, b"CLAW_RUN_ID=r")
    assert proc.asked()


@pytest.mark.parametrize(("age", "again"), [(SETTLED_S, False), (SETTLED_S - 1, True)])
def test_an_old_process_is_settled_at_the_first_look(
    tmp_path: Path, age: float, again: bool
) -> None:
    proc = Proc(tmp_path)
    proc.process(50, b"HOME=/")
    ticks = 100 * os.sysconf("SC_CLK_TCK")
    (tmp_path / "50" / "stat").write_text(f"50 (x) 7) S 1 {'0 ' * 17}{ticks} 0")
    (tmp_path / "uptime").write_text(f"{100 + age} 1.0")
    assert not proc.asked()
    (tmp_path / "50" / "environ").write_bytes(b"CLAW_RUN_ID=r")
    assert proc.asked() is again


def test_a_child_of_a_settled_process_is_looked_at(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.process(40, b"HOME=/")
    assert not proc.asked()
    proc.at = SETTLED_S
    assert not proc.asked()
    proc.process(50, b"", parent=40)
    assert not proc.asked()
    proc.process(60, b"A=b\0CLAW_RUN_ID=r", parent=40)
    assert proc.asked()
