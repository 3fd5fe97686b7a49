"""Where the protocols 3 and 4 say the same thing in other words. Pure.

Inside the gateway there is one model; a connection's protocol picks the words at its edge.
"""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.protocol.frames import PROTOCOLS, ErrorShape


def negotiate(lowest: int, highest: int) -> int | None:
    """The newest protocol in a client's range; None when there is none."""
    return next((p for p in sorted(PROTOCOLS, reverse=True) if lowest <= p <= highest), None)


def spoken(raw: Mapping[str, object]) -> int:
    """The protocol that an unchecked `connect` seems to want: in it its faults are told."""
    lowest, highest = raw.get("minProtocol"), raw.get("maxProtocol")
    if isinstance(lowest, int) and isinstance(highest, int):
        return negotiate(lowest, highest) or PROTOCOLS[0]
    return PROTOCOLS[0]


def missing_scope(scope: str, protocol: int) -> ErrorShape:
    """The refusal of a method whose scope the connection lacks."""
    message = f"missing scope: {scope}"
    if protocol < 4:
        return ErrorShape("INVALID_REQUEST", message)
    details = {"code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": [scope]}
    return ErrorShape("FORBIDDEN", message, details)


DEVICE_CODES = {
    "device-nonce-missing": "DEVICE_AUTH_NONCE_REQUIRED",
    "device-nonce-mismatch": "DEVICE_AUTH_NONCE_MISMATCH",
    "device-signature": "DEVICE_AUTH_SIGNATURE_INVALID",
    "device-signature-stale": "DEVICE_AUTH_SIGNATURE_EXPIRED",
    "device-id-mismatch": "DEVICE_AUTH_DEVICE_ID_MISMATCH",
    "device-public-key": "DEVICE_AUTH_PUBLIC_KEY_INVALID",
}
"""`details.code` of a device's bad proof under protocol 4, by reason; under 3 there is one."""


def device_code(reason: str, protocol: int) -> str:
    return DEVICE_CODES[reason] if protocol >= 4 else "DEVICE_AUTH_INVALID"


def token_hint(protocol: int) -> str:
    """How a wrong or missing token is mended, in the words of the protocol's clients."""
    if protocol >= 4:
        return "(use this gateway's gateway.auth.token or pair the device)"
    return "(set gateway.remote.token to match gateway.auth.token)"
