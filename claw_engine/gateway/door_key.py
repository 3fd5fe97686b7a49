"""The door's key: 32 random bytes that only this user can read, and the proof made with it."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from pathlib import Path

from claw_engine.gateway.door_path import DoorError

KEY_BYTES = 32


def load_or_create(path: Path) -> bytes:
    """The key; made (0600) if it is absent or was never finished. Only the lock holder calls this.

    Raises DoorError for a key that others could know, or that cannot be read or written.
    """
    key = _load(path)
    if key is not None and len(key) == KEY_BYTES:
        return key
    key = os.urandom(KEY_BYTES)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise DoorError(f"Cannot write the door key {path}: {error.strerror}.") from error
    return key


def proves(key: bytes, nonce: str, proof: str) -> bool:
    """Whether `proof` is hex HMAC-SHA256 of the nonce under the key."""
    expected = hmac.new(key, nonce.encode(), hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), proof.encode("utf-8", "replace"))


def _load(path: Path) -> bytes | None:
    mend = f"Delete {path}; the next start makes a new one."
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            found = os.fstat(fd)
            key = os.read(fd, KEY_BYTES + 1)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DoorError(f"Cannot read the door key {path}: {error.strerror}.", hint=mend) from error
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise DoorError(f"The door key {path} can be read by others.", hint=mend)
    return key
