"""Where the port listens, and who has it when we cannot. Light: nothing of HTTP is imported."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from pathlib import Path

from claw_engine.config.sections.gateway import GatewaySettings
from claw_engine.errors import ClawError
from claw_engine.gateway.auth.secrets import Secrets
from claw_engine.gateway.web.proc_net import LISTEN, PROC, has_socket, name_of, processes, tcp_rows

BACKLOG = 128

PORT_ENV = "OPENCLAW_GATEWAY_PORT"

ANOTHER = f"gateway.port, {PORT_ENV}, or --port of `claw gateway run`"
"""Where the port is named: the console takes no --port."""


class PortError(ClawError):
    """The port cannot be opened as configured."""


class PortTaken(PortError):
    """Another process listens there."""


def wanted_port(settings: GatewaySettings, env: Mapping[str, str], named: int | None) -> int:
    """`--port`, else OPENCLAW_GATEWAY_PORT, else gateway.port; 0 lets the system choose.

    Raises PortError for a variable that is no port.
    """
    if named is not None:
        return named
    text = env.get(PORT_ENV, "").strip()
    if not text:
        return settings.port
    if not (text.isascii() and text.isdecimal() and int(text) <= 65535):
        raise PortError(f"{PORT_ENV}={text!r} is no port.", hint="A number from 0 to 65535.")
    return int(text)


def addresses(settings: GatewaySettings, secrets: Secrets) -> tuple[str, ...]:
    """The addresses to listen on. Raises PortError for one that must not be opened.

    Without a secret of the operator's nothing but loopback is opened, whatever the family of the
    address (case SE-09).
    """
    if settings.bind in ("loopback", "auto"):
        return ("127.0.0.1", "::1")
    import ipaddress  # most gateways stay on loopback, and start without it

    found = _named(settings)
    open_to_all = [ip for ip in found if not ipaddress.ip_address(ip).is_loopback]
    if open_to_all and secrets.mode != "trusted-proxy" and not secrets.shared:
        raise PortError(
            f"gateway.bind is {settings.bind} ({open_to_all[0]}), and no secret protects it.",
            hint="Set gateway.auth.token or gateway.auth.password, or leave gateway.bind loopback.",
        )
    return found


def _named(settings: GatewaySettings) -> tuple[str, ...]:
    import ipaddress  # see above

    match settings.bind:
        case "lan":
            return ("0.0.0.0", "::")
        case "custom":
            host = (settings.custom_bind_host or "").strip()
            try:
                return (str(ipaddress.ip_address(host)),)
            except ValueError:
                raise PortError(
                    f"gateway.customBindHost {host!r} is no address.",
                    hint="Name the address of an interface, such as 192.0.2.7.",
                ) from None
        case _:
            raise PortError(
                "gateway.bind tailnet is not supported.",
                hint="Use gateway.bind custom with the address that the tailnet gave this host.",
            )


def listen(hosts: tuple[str, ...], port: int) -> list[socket.socket]:
    """Bound and listening sockets, one for each address that this host has.

    An address family that the host does not have is left out, the first address is needed. Raises
    PortTaken or PortError.
    """
    sockets: list[socket.socket] = []
    try:
        for host in hosts:
            made = _one(host, port, needed=not sockets)
            if made is None:
                continue
            sockets.append(made)
            port = made.getsockname()[1]  # with 0 the others take the number of the first
    except BaseException:
        for made in sockets:
            made.close()
        raise
    return sockets


def _one(host: str, port: int, *, needed: bool) -> socket.socket | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    except OSError:
        if needed:
            raise
        return None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise _taken(host, port) from error
        if not needed and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return None
        raise PortError(
            f"Cannot listen on {host} port {port}: {error.strerror}.",
            hint=f"Choose another with {ANOTHER}.",
        ) from error
    return made


def _taken(host: str, port: int) -> PortTaken:
    who = holder(port)
    by = f" by {who[1]} (pid {who[0]})" if who else ""
    details: dict[str, object] = {"port": port}
    if who:
        details |= {"pid": who[0], "name": who[1]}
    return PortTaken(
        f"Port {port} on {host} is taken{by}.",
        hint=f"Stop that process, or choose another with {ANOTHER}.",
        details=details,
    )


def holder(port: int, proc: Path = PROC) -> tuple[int, str] | None:
    """Pid and name of a process that listens on a port; None when /proc does not tell."""
    rows = tcp_rows(proc)
    inodes = {row.inode for row in rows if row.port == port and row.state == LISTEN}
    found = (p for p in processes(proc) if has_socket(p, inodes)) if inodes else iter(())
    process = next(found, None)
    return None if process is None else (int(process.name), name_of(process))
