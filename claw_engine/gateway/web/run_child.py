"""Whether a TCP peer on this host was started by one of our runs (see confinement.py).

A hint, as there: `/proc` tells which process has the socket, if it is of our user and visible.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from claw_engine.gateway.confinement import carries_mark, parent_of, read_proc
from claw_engine.gateway.web.proc_net import PROC, has_socket, tcp_rows
from claw_engine.gateway.web.sock_diag import Address, owner_and_inode

MAX_DEPTH = 64
SETTLED_S = 5.0
"""A process between fork and exec does not carry the mark yet: only one that is this old, or was
looked at twice with this long in between, is not looked at again."""
_TICKS = os.sysconf("SC_CLK_TCK")
"""A second, as `/proc/<pid>/stat` counts."""


class _Seen(Struct):
    """A process that belongs to no run. `inode` is of its directory in `/proc`, made for this
    process and never again: an id that is used anew has another one."""

    inode: int
    since: float
    settled: bool = False


class RunChildren:
    """Use: `from_a_run(peer, own)`, in a thread. Remembers the processes that belong to no run:
    to read about each of a hundred takes 5 ms, and every handshake asks."""

    def __init__(
        self,
        own_pid: int,
        proc: Path = PROC,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._own_pid = own_pid
        self._proc = proc
        self._now = now
        self._seen: dict[int, _Seen] = {}

    def from_a_run(self, peer: Address, own: Address) -> bool:
        """Whether the process behind the connection `peer` → `own` belongs to a run.

        Reads two small files of every process that it does not know: not for the loop.
        """
        proc = self._proc
        inodes = _inodes(peer, own, os.geteuid(), proc)
        if not inodes:
            return False
        try:
            pids = [int(name) for name in os.listdir(proc) if name.isdecimal()]  # noqa: PTH208 - each counts
        except OSError:
            return False
        known: dict[int, bool] = {self._own_pid: False, 1: False, 0: False}
        # The cheap question first: hardly any process descends from a run.
        uptime = _uptime(proc)
        suspects = [pid for pid in pids if self._suspect(pid, known, uptime)]
        there = set(pids)
        self._seen = {pid: seen for pid, seen in self._seen.items() if pid in there}
        return any(has_socket(proc / str(pid), inodes) for pid in suspects)

    def _suspect(self, pid: int, known: dict[int, bool], uptime: float) -> bool:
        """Whether a process descends from a run, as far as one can see."""
        try:
            inode = os.stat(f"{self._proc}/{pid}").st_ino  # noqa: PTH116 - each counts
        except OSError:
            return False
        seen, now = self._seen.get(pid), self._now()
        if seen is not None and seen.inode == inode:
            if seen.settled:
                known[pid] = False
                return False
        else:
            seen = _Seen(inode, now)
        if _descends(pid, self._proc, known):
            self._seen.pop(pid, None)
            return True
        seen.settled = (
            now - seen.since >= SETTLED_S or uptime - _started(pid, self._proc) >= SETTLED_S
        )
        self._seen[pid] = seen
        return False


def _uptime(proc: Path) -> float:
    """Seconds since the machine started; 0 where nobody tells."""
    try:
        return float(read_proc(f"{proc}/uptime").split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0


def _started(pid: int, proc: Path) -> float:
    """Seconds from the machine's start to the process's; endless where `/proc` does not tell.

    Field 22 of proc(5); the name in parentheses may hold anything, also ")".
    """
    try:
        return int(read_proc(f"{proc}/{pid}/stat").rpartition(b")")[2].split()[19]) / _TICKS
    except (OSError, ValueError, IndexError):
        return math.inf


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
