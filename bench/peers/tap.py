"""A wire-tap: hands frames of a WebSocket on unchanged, and writes them down without secrets."""

from __future__ import annotations

import asyncio
import contextlib
import http
import json
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.http11 import Request, Response

BIG = 64 << 20
LONGEST = 600
"""Characters kept of one string in the log."""
HIDDEN = {"token", "password", "deviceToken", "signature", "publicKey", "nonce", "instanceId"}


@contextlib.asynccontextmanager
async def tap(port: int, upstream: str, log: Path) -> AsyncIterator[str]:
    """Listens on `port` of loopback and passes everything to `upstream`; yields its own URL."""
    opened: dict[str, ClientConnection] = {}
    numbers = iter(range(1, 1 << 30))
    began = time.monotonic()

    def note(link: int, way: str, text: str | bytes) -> None:
        frame = _clean(json.loads(text))
        row = {"s": round(time.monotonic() - began, 2), "link": link, "dir": way, "frame": frame}
        with log.open("a") as out:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")

    async def first(near: ServerConnection, request: Request) -> Response | None:
        try:
            opened[str(near.id)] = await connect(
                upstream, compression=None, max_size=BIG, proxy=None, ping_interval=None,
                origin=request.headers.get("Origin"),  # a page says where it comes from
            )  # fmt: skip
        except (OSError, WebSocketException):
            return near.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "nobody behind the tap\n")
        return None

    async def carry(near: ServerConnection) -> None:
        far, link = opened.pop(str(near.id)), next(numbers)

        async def one_way(source: Connection, sink: Connection, way: str) -> None:
            try:
                while True:
                    text = await source.recv()
                    note(link, way, text)
                    await sink.send(text)
            except ConnectionClosed:
                code = source.close_code or 1006
                gone = {"close": code, "reason": source.close_reason or ""}
                note(link, way, json.dumps(gone))
                # 1006 cannot be sent: the line is cut as it was cut over there.
                if code == 1006:
                    sink.transport.abort()
                else:
                    await sink.close(code if code != 1005 else 1000, source.close_reason or "")

        await asyncio.gather(one_way(near, far, "client"), one_way(far, near, "gateway"))

    async with serve(
        carry, "127.0.0.1", port, process_request=first, compression=None, max_size=BIG,
        ping_interval=None,
    ):  # fmt: skip
        yield f"ws://127.0.0.1:{port}"


def _clean(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            name: "…" if name in HIDDEN and isinstance(inner, str) else _clean(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_clean(inner) for inner in value[:40]]
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}… ({len(value)} characters)"
    return value


def count(log: Path) -> dict[str, int]:
    """How often each kind of frame went which way, for a report."""
    out: dict[str, int] = {}
    for line in log.read_text().splitlines():
        row = json.loads(line)
        frame = row["frame"]
        name = frame.get("method") or frame.get("event") or ("close" if "close" in frame else "res")
        if name == "res":
            name = "res ok" if frame.get("ok") else "res error"
        key = f"{row['dir']} {name}"
        out[key] = out.get(key, 0) + 1
    return out
