"""One way to make an HTTP client: limits, timeouts, user agent, and which proxy may see what.

Importing this module is cheap; `httpx2` is loaded by the first client (0.15 CPU-s), off the loop.
Knows no provider and no channel.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

if TYPE_CHECKING:
    import httpx2

USER_AGENT = "claw-tui"


class HttpTimeouts(Struct, frozen=True):
    """Seconds: to connect, and of silence between two bytes of an answer.

    `read` is long because a local server may load a model before its first byte.
    """

    connect: float = 10.0
    read: float = 300.0


def is_loopback(url: str) -> bool:
    """True when the URL names this machine; such a call must never go through a proxy."""
    host = (urlsplit(url).hostname or "").lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def load_httpx2() -> ModuleType:
    """The `httpx2` module, imported on a thread so that the event loop keeps turning."""
    return await asyncio.to_thread(_import_httpx2)


async def http_client(url: str, timeouts: HttpTimeouts) -> httpx2.AsyncClient:
    """A client for one base URL. The caller closes it.

    Redirects are not followed: a redirected POST would carry the credential to another host.
    Proxy settings of the environment are honoured except for loopback URLs.
    """
    await load_httpx2()
    return await asyncio.to_thread(_build_client, url, timeouts)


def _import_httpx2() -> ModuleType:
    import httpx2  # deferred: costs 0.15 CPU-s, and many starts never call a model

    return httpx2


def _build_client(url: str, timeouts: HttpTimeouts) -> httpx2.AsyncClient:
    import httpx2  # already loaded by load_httpx2

    local = is_loopback(url)
    # Reading the CA bundle takes ~20 ms of CPU that a plain-HTTP loopback server never needs.
    plain = local and urlsplit(url).scheme == "http"
    return httpx2.AsyncClient(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
        headers={"User-Agent": USER_AGENT},
        timeout=httpx2.Timeout(
            connect=timeouts.connect, read=timeouts.read, write=timeouts.read, pool=None
        ),
        limits=httpx2.Limits(
            max_connections=None, max_keepalive_connections=8, keepalive_expiry=60.0
        ),
        follow_redirects=False,
        trust_env=not local,
    )
