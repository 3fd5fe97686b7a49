"""Responses as JSON lines without holding the loop: a long one is written in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from claw_engine.gateway.wire_events import json_bytes
from claw_engine.protocol.frames import ResponseFrame

SLICE = 64 * 1024
"""Bytes made before other tasks get a turn (architecture rule 5)."""

_DEPTH = 3
"""Containers opened piece by piece: frame, payload, list."""
_TOGETHER = 16
"""Rows or messages that make one piece: a message may have 128 KiB, a row has one or two."""


async def response_line(frame: ResponseFrame) -> bytes:
    """One line. Raises ValueError or TypeError for what JSON cannot hold."""
    pieces: list[bytes] = []
    size = 0
    for piece in _pieces(frame.to_json(), _DEPTH):
        pieces.append(piece)
        size += len(piece)
        if size >= SLICE:
            size = 0
            await asyncio.sleep(0)
    pieces.append(b"\n")
    return b"".join(pieces)


def _pieces(value: object, depth: int) -> Iterator[bytes]:
    if depth and isinstance(value, Mapping):
        before = b"{"
        for key, item in value.items():
            yield before + json_bytes(str(key)) + b":"
            yield from _pieces(item, depth - 1)
            before = b","
        yield b"}" if before == b"," else b"{}"
    elif depth and isinstance(value, list | tuple):
        before = b"["
        for start in range(0, len(value), _TOGETHER):
            yield before + json_bytes(value[start : start + _TOGETHER])[1:-1]
            before = b","
        yield b"]" if before == b"," else b"[]"
    else:
        yield json_bytes(value)
