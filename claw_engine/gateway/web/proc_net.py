"""TCP sockets as /proc tells of them: which there are, and whose. Linux only, never raises."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

PROC = Path("/proc")
LISTEN = "0A"


class TcpRow(Struct, frozen=True):
    """One socket: ports, state (two hex digits), owner and inode."""

    port: int
    peer_port: int
    state: str
    uid: int
    inode: str


def tcp_rows(proc: Path = PROC) -> Iterator[TcpRow]:
    """All TCP sockets of this network namespace."""
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split(None, 10)
            try:
                yield TcpRow(_port(fields[1]), _port(fields[2]), fields[3], int(fields[7]),
                             fields[9])  # fmt: skip
            except (ValueError, IndexError):
                continue


def processes(proc: Path = PROC) -> Iterator[Path]:
    """The folders of all processes that can be seen."""
    with contextlib.suppress(OSError):
        yield from (entry for entry in proc.iterdir() if entry.name.isdecimal())


def has_socket(process: Path, inodes: set[str]) -> bool:
    """Whether a process has one of these sockets open; of another user's it is not known."""
    links = {f"socket:[{inode}]" for inode in inodes}
    with contextlib.suppress(OSError), os.scandir(process / "fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if os.readlink(entry.path) in links:  # noqa: PTH115 - called for every descriptor
                    return True
    return False


def name_of(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip() or "?"
    except OSError:
        return "?"


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
