"""Owner and inode of one TCP socket, asked of the kernel by its two addresses. Linux only.

`/proc/net/tcp` tells the same, but the kernel walks every bucket of its table for it: 10 ms.
Formats: linux/netlink.h, linux/inet_diag.h.
"""

from __future__ import annotations

import errno
import os
import socket
import struct

SOCK_DIAG = 4
"""NETLINK_SOCK_DIAG"""
BY_FAMILY = 20
REQUEST = 1
ERROR = 2
ANY_STATE = 0xFFFFFFFF
NO_COOKIE = 0xFFFFFFFF
WAIT_S = 0.5

_HEADER = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBBI")
_PORTS = struct.Struct("!HH")
_REST = struct.Struct("=III")
_TOLD = struct.Struct("=BBBB48xIIIII")

Address = tuple[str, int]


def owner_and_inode(local: Address, remote: Address) -> tuple[int, str] | None:
    """Of the TCP socket with these ends; None when there is none.

    Raises OSError where the kernel does not answer such questions, ValueError for no address.
    """
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    ends = [socket.inet_pton(family, end[0]).ljust(16, b"\0") for end in (local, remote)]
    asked = (
        _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, ANY_STATE)
        + _PORTS.pack(local[1], remote[1])
        + ends[0] + ends[1]
        + _REST.pack(0, NO_COOKIE, NO_COOKIE)
    )  # fmt: skip
    head = _HEADER.pack(_HEADER.size + len(asked), BY_FAMILY, REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, SOCK_DIAG) as link:
        link.settimeout(WAIT_S)
        link.sendto(head + asked, (0, 0))
        answer = link.recv(4096)
    size, kind, _, _, _ = _HEADER.unpack_from(answer)
    if kind == ERROR:
        (code,) = struct.unpack_from("=i", answer, _HEADER.size)
        if -code == errno.ENOENT:
            return None
        raise OSError(-code, os.strerror(-code))
    if kind != BY_FAMILY or size < _HEADER.size + _TOLD.size:
        raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))
    *_, uid, inode = _TOLD.unpack_from(answer, _HEADER.size)
    return uid, str(inode)
