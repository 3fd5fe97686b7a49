"""The checks of a `connect` request that need no secret, and the answer to a good one. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.close import Close
from claw_engine.gateway.dialect import negotiate, spoken
from claw_engine.gateway.peer import Identity
from claw_engine.gateway.validate import ConnectParams, check
from claw_engine.protocol.frames import MAX_PAYLOAD, PROTOCOLS, ErrorShape, RequestFrame
from claw_engine.protocol.names import Scope

TICK_INTERVAL_MS = 30_000
ATTACHMENTS = {"maxBytes": 19_464_192, "maxImageBytes": 6_291_456}
"""What protocol 4 tells about attachments: what fits a frame as base64."""


class Refusal(Exception):
    """A handshake that fails: the answer and how the connection ends."""

    def __init__(
        self,
        close: Close,
        message: str,
        details: Mapping[str, object] | None = None,
        *,
        code: str = "INVALID_REQUEST",
        retry_after_ms: int | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.close = close
        self.reason = reason or message
        """What the close frame says."""
        retryable = True if retry_after_ms is not None else None
        self.shape = ErrorShape(code, message, details, retryable, retry_after_ms)


def check_connect(frame: RequestFrame) -> tuple[ConnectParams, int]:
    """The parameters of a first request and the protocol to speak. Raises Refusal."""
    if frame.method != "connect":
        message = "invalid handshake: first request must be connect"
        raise Refusal(Close.HANDSHAKE, message)
    raw = frame.params or {}
    try:
        params = check("connect", ConnectParams, raw, protocol=spoken(raw))
    except InvalidRequest as error:
        raise Refusal(Close.HANDSHAKE, error.title) from None
    protocol = negotiate(params.min_protocol, params.max_protocol)
    if protocol is None:
        raise Refusal(Close.PROTOCOL, "protocol mismatch", {
            "code": "PROTOCOL_MISMATCH",
            "expectedProtocol": PROTOCOLS[-1] if params.min_protocol > 3 else PROTOCOLS[0],
            "minimumProbeProtocol": PROTOCOLS[0],
            "clientMinProtocol": params.min_protocol,
            "clientMaxProtocol": params.max_protocol,
        })  # fmt: skip
    if params.role != "operator":
        raise Refusal(Close.HANDSHAKE, "invalid role")
    return params, protocol


def identity_of(
    params: ConnectParams, protocol: int, scopes: frozenset[Scope], *, confined: bool = False
) -> Identity:
    """What a client says of itself, with what it was granted."""
    client = params.client
    return Identity(
        client.id,
        client.mode,
        client.version,
        scopes,
        frozenset(params.caps),
        confined,
        protocol,
        params.role,
        tuple(dict.fromkeys(name for name in params.scopes if name in {s.value for s in scopes})),
        display_name=client.display_name or "",
        platform=client.platform,
        device_family=client.device_family or "",
        model_identifier=client.model_identifier or "",
        instance_id=client.instance_id or "",
    )


def granted(requested: tuple[str, ...]) -> frozenset[Scope]:
    """The scopes a client asked for that exist here."""
    known = {scope.value: scope for scope in Scope}
    return frozenset(known[name] for name in requested if name in known)


def hello(
    conn_id: str,
    identity: Identity,
    version: str,
    features: Mapping[str, object],
    snapshot: Mapping[str, object],
    uptime_ms: int,
    max_buffered: int,
) -> dict[str, object]:
    """The payload of hello-ok (gateway digest §1.3, protocol digest §1.4).

    `max_buffered` is how many bytes may wait for this client.
    """
    four = identity.protocol >= 4
    policy: dict[str, object] = {
        "maxPayload": MAX_PAYLOAD,
        "maxBufferedBytes": max_buffered,
        "tickIntervalMs": TICK_INTERVAL_MS,
    }
    out: dict[str, object] = {
        "type": "hello-ok",
        "protocol": identity.protocol,
        "server": {"version": version, "connId": conn_id},
        "features": dict(features),
        "snapshot": {**snapshot, "uptimeMs": uptime_ms},
        "policy": policy,
    }
    if four:
        out["features"] = {**features, "capabilities": []}
        out["snapshot"] = {"suspension": {"phase": "accepting"}, **snapshot, "uptimeMs": uptime_ms}
        policy["attachments"] = ATTACHMENTS
    if four or identity.device_id:
        out["auth"] = _auth(identity)
    return out


def _auth(identity: Identity) -> dict[str, object]:
    """Scopes in the order asked for under protocol 4, sorted under 3 (as recorded)."""
    names = list(identity.scope_names)
    out: dict[str, object] = {"role": identity.role}
    if identity.protocol >= 4:
        out = {"method": identity.method, "role": identity.role, "scopes": names}
    else:
        out["scopes"] = sorted(names)
    if identity.device_token:
        out["deviceToken"] = identity.device_token
        out["issuedAtMs"] = identity.token_issued_ms
    return out
