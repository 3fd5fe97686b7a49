"""Where a connection really comes from, and which web page sent it. Pure.

A reverse proxy on this host makes everybody look local (case SE-01): whoever brings forwarding
headers is only believed when the peer is a proxy the operator named, and is otherwise remote.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

PROXY_HEADERS = (
    "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "forwarded",
    "x-real-ip", "via", "cf-connecting-ip", "true-client-ip", "tailscale-user-login",
)  # fmt: skip

UNKNOWN = "unknown"
"""The address of a client that an untrusted or silent proxy hides."""


class Arrival(Struct, frozen=True):
    """What the socket and the request head say. Header names are lower case."""

    peer_ip: str
    headers: Mapping[str, str]

    @property
    def host(self) -> str:
        return self.headers.get("host", "")

    @property
    def origin(self) -> str | None:
        return self.headers.get("origin")


class Place(Struct, frozen=True):
    """`ip` is the client's address as far as it can be believed.

    `local`: it is a program on this host that spoke to us without a stranger in between.
    `hidden`: forwarding headers came from a peer that is no trusted proxy.
    """

    ip: str
    local: bool
    hidden: bool = False


def locate(arrival: Arrival, trusted: Iterable[str], *, real_ip: bool = False) -> Place:
    """Whom we talk to, given `gateway.trustedProxies` and `gateway.allowRealIpFallback`."""
    networks = _networks(trusted)
    near = is_loopback(arrival.peer_ip) and is_local_name(arrival.host)
    if not any(name in arrival.headers for name in PROXY_HEADERS):
        return Place(arrival.peer_ip, near)
    if not _inside(arrival.peer_ip, networks):
        return Place(arrival.peer_ip, local=False, hidden=True)
    chain = _chain(arrival.headers)
    if not chain and real_ip and (told := _address(arrival.headers.get("x-real-ip", ""))):
        chain = [told]
    if not chain:
        return Place(UNKNOWN, local=False)
    client = next((ip for ip in reversed(chain) if not _inside(ip, networks)), chain[0])
    return Place(client, near and is_loopback(client))


def is_loopback(ip: str) -> bool:
    address = _parsed(ip)
    return address is not None and address.is_loopback


def is_local_name(host: str) -> bool:
    """Whether a Host header (or the host of an origin) names this machine itself."""
    name = host_name(host)
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)


def host_name(host: str) -> str:
    """The name in `name:port`, lower case, without brackets; empty when it cannot be read."""
    try:
        return (urlsplit(f"//{host.strip()}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def origin_allowed(
    arrival: Arrival, allowed: Iterable[str], *, needed: bool, host_fallback: bool = False
) -> bool:
    """Whether the web page that opened the connection may. `needed`: the client is a web page.

    Allowed are the configured origins, and pages of this host on this host.
    """
    origin = arrival.origin
    if origin is None:
        return not needed
    if origin in {entry.rstrip("/") for entry in allowed}:
        return True
    try:
        parts = urlsplit(origin)
        name = (parts.hostname or "").rstrip(".")
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not name:
        return False
    if host_fallback and parts.netloc.lower() == arrival.host.strip().lower():
        return True
    return (
        is_local_name(parts.netloc)
        and is_local_name(arrival.host)
        and (is_loopback(arrival.peer_ip))
    )


def _chain(headers: Mapping[str, str]) -> list[str]:
    """Addresses from the client to us, as the proxies tell; an unreadable one ends the tale."""
    if "x-forwarded-for" in headers:
        entries = headers["x-forwarded-for"].split(",")
    else:
        entries = re.findall(r'for="?([^";,\s]+)"?', headers.get("forwarded", ""), re.IGNORECASE)
    found = [_address(entry) for entry in entries if entry.strip()]
    return [ip or UNKNOWN for ip in found]


def _address(text: str) -> str:
    """An address out of `203.0.113.9`, `203.0.113.9:80`, `[::1]:80`; empty for anything else."""
    text = text.strip().strip('"')
    if _parsed(text) is not None:
        return text
    name = host_name(text)
    return name if _parsed(name) is not None else ""


def _parsed(ip: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(ip.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped if mapped is not None else address


def _networks(entries: Iterable[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    found = []
    for entry in entries:
        try:
            found.append(ipaddress.ip_network(entry.strip(), strict=False))
        except ValueError:
            continue  # the configuration names what it cannot read
    return found


def _inside(ip: str, networks: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    address = _parsed(ip)
    return address is not None and any(address in network for network in networks)
