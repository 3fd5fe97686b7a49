"""A socket's owner, asked of the kernel: the same as /proc says of our own connections."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from claw_engine.gateway.web.proc_net import tcp_rows
from claw_engine.gateway.web.run_child import from_a_run
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
    assert from_a_run(peer, own, own_pid=-1) is mark
    # Where the kernel answers no such questions, /proc/net does.
    monkeypatch.setattr("claw_engine.gateway.web.run_child.owner_and_inode", _refused)
    assert from_a_run(peer, own, own_pid=-1) is mark


def test_no_address_is_no_answer() -> None:
    with pytest.raises(OSError):
        owner_and_inode(("nowhere", 1), ("nowhere", 2))


def _refused(local: object, remote: object) -> None:
    raise PermissionError("not here")
