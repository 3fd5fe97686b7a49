"""The checks of a `connect` request that need no secret: shape, protocol, role. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.close import Close
from claw_engine.gateway.validate import ConnectParams, check
from claw_engine.protocol.frames import MAX_PAYLOAD, PROTOCOL_VERSION, ErrorShape, RequestFrame
from claw_engine.protocol.names import Scope

MAX_BUFFERED = 8 * 1024 * 1024
TICK_INTERVAL_MS = 30_000


class Refusal(Exception):
    """A handshake that fails: the answer and how the connection ends."""

    def __init__(
        self, close: Close, message: str, details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.close = close
        self.shape = ErrorShape("INVALID_REQUEST", message, details)


def check_connect(frame: RequestFrame) -> ConnectParams:
    """The parameters of a first request. Raises Refusal."""
    if frame.method != "connect":
        message = "invalid handshake: first request must be connect"
        raise Refusal(Close.HANDSHAKE, message)
    try:
        params = check("connect", ConnectParams, frame.params or {})
    except InvalidRequest as error:
        raise Refusal(Close.HANDSHAKE, error.title) from None
    if not params.min_protocol <= PROTOCOL_VERSION <= params.max_protocol:
        raise Refusal(Close.PROTOCOL, "protocol mismatch", {"expectedProtocol": PROTOCOL_VERSION})
    if params.role != "operator":
        raise Refusal(Close.HANDSHAKE, "invalid role")
    return params


def granted(requested: tuple[str, ...]) -> frozenset[Scope]:
    """The scopes a client asked for that exist here."""
    known = {scope.value: scope for scope in Scope}
    return frozenset(known[name] for name in requested if name in known)


def hello(
    conn_id: str,
    version: str,
    features: Mapping[str, object],
    snapshot: Mapping[str, object],
    uptime_ms: int,
) -> dict[str, object]:
    """The payload of hello-ok (digest §1.3)."""
    return {
        "type": "hello-ok",
        "protocol": PROTOCOL_VERSION,
        "server": {"version": version, "connId": conn_id},
        "features": dict(features),
        "snapshot": {**snapshot, "uptimeMs": uptime_ms},
        "policy": {
            "maxPayload": MAX_PAYLOAD,
            "maxBufferedBytes": MAX_BUFFERED,
            "tickIntervalMs": TICK_INTERVAL_MS,
        },
    }
