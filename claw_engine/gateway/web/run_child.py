"""Whether a TCP peer on this host was started by one of our runs (see confinement.py).

A hint, as there: `/proc` tells which process has the socket, if it is of our user and visible.
"""

from __future__ import annotations

import os
from pathlib import Path

from claw_engine.gateway.confinement import carries_mark, parent_of
from claw_engine.gateway.web.proc_net import PROC, has_socket, tcp_rows
from claw_engine.gateway.web.sock_diag import Address, owner_and_inode

MAX_DEPTH = 64


def from_a_run(peer: Address, own: Address, own_pid: int, proc: Path = PROC) -> bool:
    """Whether the process behind the connection `peer` → `own` belongs to a run.

    Reads two small files of every process of ours: not for the loop.
    """
    us = os.geteuid()
    inodes = _inodes(peer, own, us, proc)
    if not inodes:
        return False
    known: dict[int, bool] = {own_pid: False, 1: False, 0: False}
    try:
        pids = [int(name) for name in os.listdir(proc) if name.isdecimal()]  # noqa: PTH208 - each counts
    except OSError:
        return False
    # The cheap question first: hardly any process descends from a run.
    return any(_descends(pid, proc, known) and has_socket(proc / str(pid), inodes) for pid in pids)


def _inodes(peer: Address, own: Address, uid: int, proc: Path) -> set[str]:
    """Of the peer's socket, if it is this user's."""
    try:
        found = owner_and_inode(peer, own) if proc == PROC else None
    except (OSError, ValueError):
        found = None  # no such question here (a sandbox, an old kernel): the long way
    if found is not None:
        return {found[1]} if found[0] == uid else set()
    return {
        row.inode for row in tcp_rows(proc)
        if row.port == peer[1] and row.peer_port == own[1] and row.uid == uid
    }  # fmt: skip


def _descends(pid: int, proc: Path, known: dict[int, bool]) -> bool:
    """Whether the process or an ancestor below us carries the mark; `known` answers are kept."""
    path: list[int] = []
    answer = False
    while len(path) < MAX_DEPTH:
        if pid in known:
            answer = known[pid]
            break
        path.append(pid)
        if carries_mark(pid, proc):
            answer = True
            break
        parent = parent_of(pid, proc)
        if parent is None:
            break
        pid = parent
    known.update(dict.fromkeys(path, answer))
    return answer
