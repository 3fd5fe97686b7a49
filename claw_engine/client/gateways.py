"""Gateways elsewhere: how they are addressed, and which credential belongs to which address.

A credential is kept under the address it was given for and is sent to no other. Knows no socket.
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from claw_engine.errors import ClawError

DEFAULT_PORT = 18789
_SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


class AddressError(ClawError):
    """A text that names no gateway."""


class Address(Struct, frozen=True):
    """Where a gateway listens. `path` starts with a slash."""

    scheme: str
    host: str
    port: int
    path: str = "/"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.path}"

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def key(self) -> str:
        """What a credential is kept under: scheme, host and port."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def in_the_clear(self) -> bool:
        """Whether others on the way could read the token."""
        return self.scheme == "ws" and not self.loopback


def parse_address(text: str) -> Address:
    """`ws://nas:18789`, `https://nas`, `nas`, `nas:18790`. Raises AddressError."""
    raw = text.strip()
    if "://" not in raw:
        raw = f"ws://{raw}"
    try:
        parts = urlsplit(raw)
        port = parts.port
    except ValueError as error:
        raise _not(text, str(error)) from None
    scheme = _SCHEMES.get(parts.scheme.lower())
    if scheme is None:
        raise _not(text, f"{parts.scheme}:// is not spoken by gateways")
    if not parts.hostname:
        raise _not(text, "it names no host")
    if parts.username or parts.password:
        raise _not(text, "a secret does not belong into an address; use --token")
    if parts.query or parts.fragment:
        raise _not(text, "an address has no ? and no #")
    if port is None:
        port = 443 if scheme == "wss" and "://" in text else DEFAULT_PORT
    return Address(scheme, parts.hostname.lower(), port, parts.path or "/")


def _not(text: str, why: str) -> AddressError:
    return AddressError(
        f"{text!r} is no gateway address: {why}.", hint="Write it like ws://nas:18789."
    )


def client_dir(env: Mapping[str, str]) -> Path:
    """Where this user's console keeps its key and its gateways (XDG base directories)."""
    base = env.get("XDG_CONFIG_HOME") or ""
    if not base.startswith("/"):
        base = str(Path(env.get("HOME") or "~").expanduser() / ".config")
    return Path(base) / "claw-tui"


class Gateways:
    """`gateways.json`, 0600: what each known gateway gave this device."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def known(self, address: Address) -> bool:
        return address.key in self._read()

    def device_token(self, address: Address) -> str:
        return self._value(address, "deviceToken")

    def pin(self, address: Address) -> str:
        """The SHA-256 of the certificate that the operator trusts; empty: the authorities do."""
        return self._value(address, "tlsPin")

    def remember(self, address: Address, device_token: str) -> None:
        """Keep what `hello-ok` gave; an empty token only says that the gateway is known."""
        self._put(address, "deviceToken", device_token)

    def trust(self, address: Address, pin: str) -> None:
        self._put(address, "tlsPin", pin)

    def forget_token(self, address: Address) -> None:
        """The gateway no longer takes it."""
        self._put(address, "deviceToken", "")

    def forget(self, address: Address) -> bool:
        """Token and pin; False when the address was not known."""
        stored = self._read()
        found = stored.pop(address.key, None) is not None
        if found:
            self._write(stored)
        return found

    def _value(self, address: Address, name: str) -> str:
        entry = self._read().get(address.key)
        value = entry.get(name) if isinstance(entry, dict) else None
        return value if isinstance(value, str) else ""

    def _put(self, address: Address, name: str, value: str) -> None:
        stored = self._read()
        old = stored.get(address.key)
        entry: dict[str, object] = dict(old) if isinstance(old, dict) else {}
        entry.pop(name, None)
        if value:
            entry[name] = value
        if old != entry:
            stored[address.key] = entry
            self._write(stored)

    def _read(self) -> dict[str, object]:
        try:
            raw = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ClawError(
                f"{self._path} cannot be read: {error}.",
                hint="Remove it: tokens will be asked for again.",
            ) from None
        return raw if isinstance(raw, dict) else {}

    def _write(self, stored: Mapping[str, object]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w") as out:
            json.dump(stored, out, indent=2)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(self._path)
