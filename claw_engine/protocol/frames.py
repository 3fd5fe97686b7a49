"""The three frames of the gateway protocol and its error object (OpenClaw's, protocol 3).

{"type":"req",   "id", "method", "params"?}
{"type":"res",   "id", "ok", "payload"? | "error": {code, message, details?, retryable?}}
{"type":"event", "event", "payload"?, "seq"?}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

PROTOCOL_VERSION = 3
PROTOCOLS = (3, 4)
"""Versions that the engine speaks: OpenClaw 2026.2.26's and 2026.9.6's."""
MAX_PAYLOAD = 25 * 1024 * 1024
"""Bytes of one frame that a peer may send (gateway digest §1.1)."""


class RequestFrame(Struct, frozen=True):
    id: str
    method: str
    params: Mapping[str, object] | None = None

    def to_json(self) -> dict[str, object]:
        out: dict[str, object] = {"type": "req", "id": self.id, "method": self.method}
        if self.params is not None:
            out["params"] = dict(self.params)
        return out


class ErrorShape(Struct, frozen=True):
    """`code`: NOT_LINKED, NOT_PAIRED, AGENT_TIMEOUT, INVALID_REQUEST, UNAVAILABLE; under protocol
    4 also FORBIDDEN and APPROVAL_NOT_FOUND."""

    code: str
    message: str
    details: Mapping[str, object] | None = None
    retryable: bool | None = None
    retry_after_ms: int | None = None

    def to_json(self) -> dict[str, object]:
        out: dict[str, object] = {"code": self.code, "message": self.message}
        if self.details:
            out["details"] = dict(self.details)
        if self.retryable is not None:
            out["retryable"] = self.retryable
        if self.retry_after_ms is not None:
            out["retryAfterMs"] = self.retry_after_ms
        return out


class ResponseFrame(Struct, frozen=True):
    id: str
    ok: bool
    payload: object = None
    error: ErrorShape | None = None

    def to_json(self) -> dict[str, object]:
        out: dict[str, object] = {"type": "res", "id": self.id, "ok": self.ok}
        if self.ok:
            out["payload"] = self.payload
        elif self.error is not None:
            out["error"] = self.error.to_json()
        return out


class EventFrame(Struct, frozen=True):
    """`seq` counts the events of one connection; under protocol 3 targeted ones carry none.

    `state_version` numbers the presence and health that an event tells.
    """

    event: str
    payload: object = None
    seq: int | None = None
    state_version: Mapping[str, int] | None = None

    def to_json(self) -> dict[str, object]:
        out: dict[str, object] = {"type": "event", "event": self.event, "payload": self.payload}
        if self.seq is not None:
            out["seq"] = self.seq
        if self.state_version is not None:
            out["stateVersion"] = dict(self.state_version)
        return out


Frame: TypeAlias = RequestFrame | ResponseFrame | EventFrame


class FrameError(ValueError):
    """A frame that is not one of the three shapes; `frame_id` is its id when it had one."""

    def __init__(self, message: str, frame_id: str = "invalid") -> None:
        super().__init__(message)
        self.frame_id = frame_id


def encode(frame: Frame) -> bytes:
    """One line of newline-delimited JSON."""
    return (
        json.dumps(frame.to_json(), ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )
        + b"\n"
    )


def decode(line: bytes | str) -> Frame:
    """Read one frame. Raises json.JSONDecodeError (not JSON) or FrameError (wrong shape)."""
    return from_json(json.loads(line))


def from_json(raw: object) -> Frame:
    """A frame from parsed JSON. Raises FrameError."""
    if not isinstance(raw, dict):
        raise FrameError("a frame is a JSON object")
    match raw.get("type"):
        case "req":
            id_ = _text(raw, "id")
            method = raw.get("method")
            if not isinstance(method, str) or not method:
                raise FrameError("method must be a non-empty string", id_)
            params = raw.get("params")
            if params is not None and not isinstance(params, dict):
                raise FrameError("params must be an object", id_)
            return RequestFrame(id_, method, params)
        case "res":
            id_ = _text(raw, "id")
            if raw.get("ok") is True:
                return ResponseFrame(id_, True, raw.get("payload"))
            return ResponseFrame(id_, False, None, _error(raw.get("error")))
        case "event":
            seq = raw.get("seq")
            return EventFrame(
                _text(raw, "event"), raw.get("payload"), seq if isinstance(seq, int) else None
            )
        case other:
            raise FrameError(f"unknown frame type {other!r}")


def _text(raw: Mapping[str, object], key: str) -> str:
    value = raw.get(key)
    if not isinstance(value, str) or not value:
        raise FrameError(f"{key} must be a non-empty string")
    return value


def _error(raw: object) -> ErrorShape:
    if not isinstance(raw, dict):
        return ErrorShape("UNAVAILABLE", "the gateway gave no reason")
    details = raw.get("details")
    retryable = raw.get("retryable")
    after = raw.get("retryAfterMs")
    return ErrorShape(
        str(raw.get("code", "UNAVAILABLE")),
        str(raw.get("message", "")),
        details if isinstance(details, dict) else None,
        retryable if isinstance(retryable, bool) else None,
        after if isinstance(after, int) else None,
    )
