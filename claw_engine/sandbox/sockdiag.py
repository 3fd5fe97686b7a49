"""TCP ports that something listens on, asked of the kernel (Linux sock_diag netlink)."""

from __future__ import annotations

import socket
import struct

_SOCK_DIAG, _BY_FAMILY = 4, 20
_REQUEST_DUMP = 0x301
_DONE, _ERROR = 3, 2
_TCP, _LISTEN = 6, 1 << 10
_HEADER = struct.Struct("=IHHII")
_TIMEOUT_S = 1.0


def listening_ports() -> frozenset[int]:
    """Of this network namespace, IPv4 and IPv6. Raises OSError where the kernel does not tell."""
    ports: set[int] = set()
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as sock:
            sock.settimeout(_TIMEOUT_S)
            body = struct.pack("=BBBBI48x", family, _TCP, 0, 0, _LISTEN)
            size = _HEADER.size + len(body)
            sock.send(_HEADER.pack(size, _BY_FAMILY, _REQUEST_DUMP, 1, 0) + body)
            while not _take(sock.recv(1 << 16), ports):
                pass
    return frozenset(ports)


def _take(data: bytes, ports: set[int]) -> bool:
    """Read one datagram; True at the end of the answer."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        size, kind, _, _, _ = _HEADER.unpack_from(data, offset)
        if kind == _DONE:
            return True
        if kind == _ERROR or size < _HEADER.size:
            raise OSError("sock_diag refused")
        # family, state, timer and retransmissions, one byte each; then the port in network order.
        ports.add(int.from_bytes(data[offset + 20 : offset + 22], "big"))
        offset += (size + 3) & ~3
    return False
