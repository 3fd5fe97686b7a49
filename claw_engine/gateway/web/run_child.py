"""Whether a TCP peer on this host was started by one of our runs (see confinement.py).

A hint, as there: `/proc` tells which process has the socket, if it is of our user and visible.
"""

from __future__ import annotations

import os
from pathlib import Path

from claw_engine.gateway.confinement import carries_mark, parent_of
from claw_engine.gateway.web.proc_net import PROC, has_socket, processes, tcp_rows

MAX_DEPTH = 64


def from_a_run(peer_port: int, own_port: int, own_pid: int, proc: Path = PROC) -> bool:
    """Whether the process behind the connection `peer_port` → `own_port` belongs to a run.

    Reads two small files of every process of ours: not for the loop.
    """
    us = os.geteuid()
    inodes = {
        row.inode for row in tcp_rows(proc)
        if row.port == peer_port and row.peer_port == own_port and row.uid == us
    }  # fmt: skip
    if not inodes:
        return False
    known: dict[int, bool] = {own_pid: False, 1: False, 0: False}
    # The cheap question first: hardly any process descends from a run.
    return any(
        _descends(int(process.name), proc, known) and has_socket(process, inodes)
        for process in processes(proc)
    )


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
