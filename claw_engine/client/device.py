"""This computer's identity towards gateways: one Ed25519 key, made once, and its signatures.

The file has OpenClaw's format (`identity/device.json`, wire facts §2 and §4): PEM keys and the id,
the SHA-256 of the raw public key in hex. Knows no socket.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from claw_engine.errors import ClawError


class DeviceError(ClawError):
    """The key file cannot be read or made."""


class Device(Struct, frozen=True):
    """`pem` is the private key and never prints; `public` is the raw key as base64url."""

    id: str
    public: str
    pem: str

    def __repr__(self) -> str:
        return f"Device({self.id[:12]}…)"

    def prove(
        self,
        client: Mapping[str, str],
        scopes: Sequence[str],
        token: str,
        nonce: str,
        at_ms: int,
    ) -> dict[str, object]:
        """The `device` object of `connect`: the v3 text, signed (wire facts §2)."""
        fields = [
            "v3", self.id, client["id"], client["mode"], "operator", ",".join(scopes), str(at_ms),
            token, nonce, client["platform"].lower(), client.get("deviceFamily", "").lower(),
        ]  # fmt: skip
        signature = _sign(self.pem, "|".join(fields).encode())
        return {
            "id": self.id,
            "publicKey": self.public,
            "signature": _b64(signature),
            "signedAt": at_ms,
            "nonce": nonce,
        }


def load_device(path: Path) -> Device:
    """The key of `path`, made (0600, its folder 0700) when there is none. Raises DeviceError."""
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DeviceError(
            f"The device key {path} cannot be used: {error}.",
            hint="Restore it, or remove it: gateways will then see a new device to be paired.",
        ) from None
    try:
        return _make(path)
    except OSError as error:
        raise DeviceError(f"No device key can be written to {path}: {error.strerror}.") from None


def _read(path: Path) -> Device:
    from cryptography.hazmat.primitives import serialization  # lazily: only remote gateways
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    stored = json.loads(path.read_bytes())
    pem = str(stored["privateKeyPem"])
    key = serialization.load_pem_private_key(pem.encode(), None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("it is no Ed25519 key")
    raw = key.public_key().public_bytes_raw()
    return Device(hashlib.sha256(raw).hexdigest(), _b64(raw), pem)


def _make(path: Path) -> Device:
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()).decode()
    public = key.public_key()
    public_pem = public.public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo).decode()
    raw = public.public_bytes_raw()
    device = Device(hashlib.sha256(raw).hexdigest(), _b64(raw), pem)
    stored = {
        "version": 1,
        "deviceId": device.id,
        "publicKeyPem": public_pem,
        "privateKeyPem": pem,
        "createdAtMs": int(time.time() * 1000),
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(stored, out, indent=2)
        out.flush()
        os.fsync(out.fileno())
    try:
        os.link(temporary, path)  # another process may have made one meanwhile: theirs counts
    except FileExistsError:
        return _read(path)
    finally:
        temporary.unlink()
    return device


def _sign(pem: str, text: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = serialization.load_pem_private_key(pem.encode(), None)
    assert isinstance(key, Ed25519PrivateKey)
    return key.sign(text)


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
