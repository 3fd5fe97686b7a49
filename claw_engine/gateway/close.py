"""Why a connection ends."""

from __future__ import annotations

from enum import StrEnum


class Close(StrEnum):
    """Why a connection ends, with the WebSocket code that says the same."""

    NORMAL = ""
    TIMEOUT = "handshake timeout"
    INVALID_FRAME = "invalid request frame"
    HANDSHAKE = "invalid handshake"
    PROTOCOL = "protocol mismatch"
    UNAUTHORIZED = "unauthorized"
    TOO_LARGE = "frame too large"
    SLOW = "slow consumer"
    RESTART = "service restart"
    STARTING = "gateway starting"
    REVOKED = "device access revoked"

    @property
    def code(self) -> int:
        match self:
            case Close.NORMAL | Close.TIMEOUT:
                return 1000
            case Close.PROTOCOL:
                return 1002
            case Close.TOO_LARGE:
                return 1009
            case Close.RESTART:
                return 1012
            case Close.STARTING:
                return 1013
            case _:
                return 1008
