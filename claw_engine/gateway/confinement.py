"""Who is at the other end of a Unix socket, and is it one of our own runs' children.

A hint, not a barrier: a process that forks twice and clears its environment evades it.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from msgspec import Struct

RUN_MARK = b"CLAW_RUN_ID="
MAX_ANCESTORS = 64

_UCRED = struct.Struct("3i")


class Credentials(Struct, frozen=True):
    """The peer when it connected; `pid` 0 = unknown (another pid namespace)."""

    pid: int
    uid: int


def peer_credentials(sock: socket.socket) -> Credentials:
    """Of a connected Unix socket. Raises OSError."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, _ = _UCRED.unpack(raw)
    return Credentials(pid, uid)


def descends_from_run(pid: int, own_pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether the process or an ancestor below us carries CLAW_RUN_ID.

    The walk ends at this engine, at the first process, or where /proc does not tell.
    """
    for _ in range(MAX_ANCESTORS):
        if pid <= 1 or pid == own_pid:
            return False
        if carries_mark(pid, proc):
            return True
        parent = parent_of(pid, proc)
        if parent is None:
            return False
        pid = parent
    return True


def carries_mark(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process has CLAW_RUN_ID in its environment."""
    try:
        environment = read_proc(f"{proc}/{pid}/environ")
    except OSError:
        return False
    return environment.startswith(RUN_MARK) or b"\0" + RUN_MARK in environment


def parent_of(pid: int, proc: Path = Path("/proc")) -> int | None:
    """The parent's id; None where /proc does not tell."""
    try:
        # The name in parentheses may hold anything, also ")": what follows the last one is ours.
        fields = read_proc(f"{proc}/{pid}/stat").rpartition(b")")[2].split(None, 2)
        return int(fields[1])
    except (OSError, ValueError, IndexError):
        return None


def read_proc(path: str) -> bytes:
    """A file of /proc. Asked for each process when a client comes: pathlib and a buffer would
    take three times as long."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(handle, 1 << 17):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(handle)
