"""A device's proof: its Ed25519 signature over the handshake (gateway digest §1.5). Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib

from claw_engine.gateway.validate import ConnectParams, DeviceProof

MAX_SKEW_MS = 120_000
KEY_BYTES = 32

MESSAGES = {
    "device-id-mismatch": "device identity mismatch",
    "device-signature-stale": "device signature expired",
    "device-nonce-missing": "device nonce required",
    "device-nonce-mismatch": "device nonce mismatch",
    "device-signature": "device signature invalid",
    "device-public-key": "device public key invalid",
}
"""What each reason says."""


def fault(params: ConnectParams, device: DeviceProof, nonce: str, now_ms: int) -> str:
    """Why the proof does not hold, a key of MESSAGES; empty when it does."""
    key = raw_key(device.public_key)
    if key is None:
        return "device-public-key"
    if hashlib.sha256(key).hexdigest() != device.id:
        return "device-id-mismatch"
    if abs(now_ms - device.signed_at) > MAX_SKEW_MS:
        return "device-signature-stale"
    if not device.nonce:
        return "device-nonce-missing"
    if device.nonce != nonce:
        return "device-nonce-mismatch"
    texts = (payload(params, device, "v3"), payload(params, device, "v2"))
    return "" if _signed(key, device.signature, texts) else "device-signature"


def payload(params: ConnectParams, device: DeviceProof, version: str) -> str:
    """The text that is signed; `version` v3 or v2."""
    auth, client = params.auth, params.client
    token = (auth.token or auth.device_token or "") if auth is not None else ""
    fields = [
        version, device.id, client.id, client.mode, params.role, ",".join(params.scopes),
        str(device.signed_at), token, device.nonce or "",
    ]  # fmt: skip
    if version == "v3":
        fields += [_plain(client.platform), _plain(client.device_family or "")]
    return "|".join(fields)


def raw_key(text: str) -> bytes | None:
    """The 32 bytes of a key as base64url (or PEM); None for anything else."""
    if "BEGIN" in text:
        return _from_pem(text)
    key = _decoded(text)
    return key if key is not None and len(key) == KEY_BYTES else None


def _from_pem(text: str) -> bytes | None:
    # Lazily: no client of the last years sends PEM.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = serialization.load_pem_public_key(text.encode())
    except (ValueError, TypeError):
        return None
    return key.public_bytes_raw() if isinstance(key, Ed25519PublicKey) else None


def _signed(key: bytes, signature: str, texts: tuple[str, ...]) -> bool:
    # Lazily: 22 ms and 6 MB that a start does not need.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = _decoded(signature)
    if raw is None:
        return False
    try:
        public = Ed25519PublicKey.from_public_bytes(key)
    except ValueError:
        return False
    for text in texts:
        try:
            public.verify(raw, text.encode("utf-8", "replace"))
        except InvalidSignature:
            continue
        return True
    return False


def _decoded(text: str) -> bytes | None:
    plain = text.strip().rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None


def _plain(text: str) -> str:
    return text.strip().lower() if text.isascii() else text.strip()
