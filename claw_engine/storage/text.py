"""JSON text the way the state directory wants it: UTF-8, strict JSON, one line or two spaces.

Python writes `NaN` and lone surrogates where JSON.parse refuses them; these writers never do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_PRETTY = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False)
_LINE_ASCII = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_PRETTY_ASCII = json.JSONEncoder(indent=2, allow_nan=False)


def to_line(value: Mapping[str, object]) -> bytes:
    """One compact JSON line, newline included. Non-finite numbers become null."""
    return _encode(value, _LINE, _LINE_ASCII) + b"\n"


def to_pretty(value: object) -> bytes:
    """JSON with two spaces of indent and no final newline, as JSON.stringify(value, null, 2)."""
    return _encode(value, _PRETTY, _PRETTY_ASCII)


def _encode(value: object, plain: json.JSONEncoder, ascii_only: json.JSONEncoder) -> bytes:
    try:
        text = plain.encode(value)
    except ValueError:  # NaN or Infinity somewhere inside
        value = _finite(value)
        text = plain.encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate: only \uXXXX can carry it
        return ascii_only.encode(value).encode("ascii")


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
