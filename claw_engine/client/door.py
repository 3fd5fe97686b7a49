"""Finding the engine's local door and proving who we are. Standard library only, and light.

The engine writes where it listens into `gateway.lock`; the proof is an HMAC of its nonce with
`door.key`. Both ends check that the other has the same uid.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Iterable
from os import PathLike

from claw_engine.errors import ClawError, InvalidRequest

CLIENT_VERSION = "0.1.0"
KEY_BYTES = 32
MAX_REQUEST = 25 * 1024 * 1024
"""Bytes of one request: what the engine takes (protocol/frames.py), known here without its cost."""
TWO_ANSWERS = frozenset({"agent", "exec.approval.request"})
"""Methods whose first answer only says `accepted`."""


class NoEngine(ClawError):
    """Nobody answers at the door of this state directory."""

    retryable = True

    def __init__(self, state_dir: str | PathLike[str], why: str) -> None:
        super().__init__(
            f"No engine answers on {state_dir} ({why}).",
            hint=f"Start one: claw gateway run --state-dir {state_dir}",
        )


class RequestTooLarge(InvalidRequest):
    """The engine would close the connection without a word."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is larger than {MAX_REQUEST >> 20} MB.",
            hint="Put the text into a file of the workspace and name the file instead.",
        )


class DoorRefused(ClawError):
    """Somebody answers, but it is not our engine or it does not want us."""


def door_path(state_dir: str | PathLike[str]) -> str:
    """Where the engine listens: as gateway.lock says, else `<state>/claw.sock`."""
    try:
        with open(os.path.join(state_dir, "gateway.lock"), "rb") as file:
            lock = json.loads(file.read() or b"{}")
    except (OSError, ValueError):
        lock = {}
    door = lock.get("door") if isinstance(lock, dict) else None
    return door if isinstance(door, str) and door else os.path.join(state_dir, "claw.sock")


def open_socket(state_dir: str | PathLike[str], timeout: float) -> socket.socket:
    """A blocking socket to this user's engine. Seconds. Raises NoEngine or DoorRefused."""
    path = door_path(state_dir)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout)
    try:
        sock.connect(path)
        check_peer(sock, path)
    except FileNotFoundError:
        sock.close()
        raise NoEngine(state_dir, "there is no socket") from None
    except ConnectionRefusedError:
        sock.close()
        raise NoEngine(state_dir, f"{path} is a left-over") from None
    except OSError as error:
        sock.close()
        raise NoEngine(state_dir, f"{path}: {error.strerror or error}") from None
    except DoorRefused:
        sock.close()
        raise
    return sock


def check_peer(sock: socket.socket, path: str) -> None:
    """Raises DoorRefused unless the engine runs as this user."""
    if not hasattr(socket, "SO_PEERCRED"):
        return
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    if uid != os.geteuid():
        raise DoorRefused(
            f"The process behind {path} runs as uid {uid}, not as you.",
            hint="Run the command as the user the engine runs as.",
        )


def proof(state_dir: str | PathLike[str], nonce: str) -> str:
    """Hex HMAC-SHA256 of the nonce under the door's key. Raises DoorRefused."""
    import hmac  # lazily: only after somebody has answered

    path = os.path.join(state_dir, "door.key")
    try:
        with open(path, "rb") as file:
            key = file.read()
    except OSError as error:
        raise DoorRefused(
            f"Cannot read the door key {path}: {error.strerror}.",
            hint="Use the state directory's own user.",
        ) from None
    if len(key) != KEY_BYTES:
        raise DoorRefused(f"The door key {path} is damaged.", hint="Restart the engine.")
    return hmac.new(key, nonce.encode(), "sha256").hexdigest()


def connect_params(
    proof_hex: str,
    *,
    client_id: str,
    mode: str,
    scopes: Iterable[str],
    caps: Iterable[str],
) -> dict[str, object]:
    """The parameters of the `connect` request."""
    return {
        "minProtocol": 3,
        "maxProtocol": 3,
        "client": {
            "id": client_id,
            "version": CLIENT_VERSION,
            "platform": sys.platform,
            "mode": mode,
        },
        "role": "operator",
        "scopes": list(scopes),
        "caps": list(caps),
        "proof": proof_hex,
    }
