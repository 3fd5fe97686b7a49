"""A request frame out of parsed JSON, and what is wrong with one that is none. Pure.

The sentences are those that OpenClaw's clients know (recorded from 2026.2.26).
"""

from __future__ import annotations

from claw_engine.protocol.frames import FrameError, RequestFrame

_KEYS = frozenset({"type", "id", "method", "params", "traceparent", "expectedProfileId"})
"""Closed; the last two came with protocol 4 and are taken from everyone."""

_OPTIONAL_TEXTS = {"traceparent": 128, "expectedProfileId": 128}
MAX_ID = 512


def request_from(raw: object) -> RequestFrame:
    """Raises FrameError that lists every problem; its `frame_id` is what the answer carries."""
    if not isinstance(raw, dict):
        raise FrameError("must be object")
    problems = [f"must have required property '{key}'" for key in ("type", "id", "method")
                if key not in raw]  # fmt: skip
    problems += [f"at root: unexpected property '{key}'" for key in raw if key not in _KEYS]
    if "type" in raw and raw["type"] != "req":
        problems.append("at /type: must be equal to constant")
    for key in ("id", "method"):
        problems += _text(raw, key)
    for key, longest in _OPTIONAL_TEXTS.items():
        problems += _text(raw, key, longest)
    params = raw.get("params")
    if params is not None and not isinstance(params, dict):
        problems.append("at /params: must be object")
    if problems:
        raise FrameError("; ".join(problems), _echo(raw.get("id")))
    return RequestFrame(raw["id"], raw["method"], params)


def _echo(frame_id: object) -> str:
    return frame_id if isinstance(frame_id, str) and len(frame_id) <= MAX_ID else "invalid"


def _text(raw: dict[str, object], key: str, longest: int = MAX_ID) -> list[str]:
    if key not in raw:
        return []
    value = raw[key]
    if not isinstance(value, str):
        return [f"at /{key}: must be string"]
    if not value:
        return [f"at /{key}: must NOT have fewer than 1 characters"]
    if len(value) > longest:
        return [f"at /{key}: must NOT have more than {longest} characters"]
    return []
