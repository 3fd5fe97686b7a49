"""Whether a TLS certificate is the gateway's: by the system's authorities, or by a pin.

A pin is the SHA-256 of the certificate in hex, kept beside the gateway's address.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
from typing import TYPE_CHECKING

from claw_engine.client.gateways import Address
from claw_engine.errors import ClawError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

TIMEOUT_S = 10.0


class TlsUntrusted(ClawError):
    """No authority vouches for the certificate; `pin` is what to trust it by."""

    def __init__(self, where: Address, why: str, pin: str) -> None:
        super().__init__(
            f"The certificate of {where.netloc} is not trusted here: {why}.",
            hint=f"Compare with the gateway's own: sha256 {pin}" if pin else "",
        )
        self.pin = pin


class PinBroken(ClawError):
    """The gateway shows another certificate than the one that was trusted."""

    def __init__(self, where: Address, seen: str) -> None:
        super().__init__(
            f"{where.netloc} shows another certificate than before (sha256 {seen}).",
            hint="If it was renewed on purpose, forget the old one: claw-tui --url … --forget",
        )


def tls_context(*, pinned: bool) -> ssl.SSLContext:
    """A pinned gateway is checked by `verify_pin`, before anything is sent to it."""
    context = ssl.create_default_context()
    if pinned:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def verify_pin(socket: ClientConnection, where: Address, pin: str) -> None:
    """Raises PinBroken, with the connection closed."""
    tls = socket.transport.get_extra_info("ssl_object")
    seen = _digest(tls.getpeercert(binary_form=True) or b"") if tls is not None else ""
    if not hmac.compare_digest(seen, pin):
        socket.transport.abort()
        raise PinBroken(where, seen)


def fingerprint_of(where: Address) -> str:
    """The pin of the certificate shown at an address; blocking; empty when it shows none."""
    try:
        pem = ssl.get_server_certificate((where.host, where.port), timeout=TIMEOUT_S)
        return _digest(ssl.PEM_cert_to_DER_cert(pem))
    except (OSError, ValueError):
        return ""


def _digest(der: bytes) -> str:
    return hashlib.sha256(der).hexdigest()
