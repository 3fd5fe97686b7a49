"""A client of the port that costs next to nothing: 20 of them must not be what is measured.

Reads WebSocket frames itself and decodes the JSON of answers only; of events it looks at the last
bytes (the number) and at the first (the name), as far as it was told to.
"""

from __future__ import annotations

import asyncio
import json
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any

TOKEN = "bench-token"

_UPGRADE = (
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
_NO_MASK = b"\0\0\0\0"
"""A mask of zeros is a mask: clients must use one, and this one costs nothing."""


class Client(asyncio.Protocol):
    """Use: `await Client.open(port)`, then `call` and `turn`."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self.bytes = 0
        self.events = 0
        self.gaps = 0
        self.last_seq = 0
        self.close_code = 0
        self.on_event: Callable[[bytes], None] = lambda frame: None
        self.gone = asyncio.Event()
        self._upgraded = loop.create_future()
        self._challenged = asyncio.Event()
        self._buffer = bytearray()
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._runs: dict[bytes, asyncio.Future[None]] = {}

    @classmethod
    async def open(
        cls, port: int, *, caps: tuple[str, ...] = (), receive_buffer: int = 0, protocol: int = 4
    ) -> Client:
        """Connected and let in. Raises RuntimeError with the gateway's answer when it is not."""
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(cls, "127.0.0.1", port)
        if receive_buffer:
            import socket

            sock = client.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.transport.write(_UPGRADE.format(port=port).encode())
        await client._upgraded
        await client._challenged.wait()
        who = {"id": "cli", "version": "1", "platform": "linux", "mode": "cli"}
        await client.call("connect", {
            "minProtocol": protocol, "maxProtocol": protocol, "client": who, "caps": list(caps),
            "scopes": ["operator.admin"], "auth": {"token": TOKEN},
        })  # fmt: skip
        return client

    async def call(self, method: str, params: Mapping[str, object] | None = None) -> dict[str, Any]:
        id_ = uuid.uuid4().hex
        future = self._waiting[id_] = asyncio.get_running_loop().create_future()
        frame = {"type": "req", "id": id_, "method": method, "params": params or {}}
        self._send(1, json.dumps(frame).encode())
        answer = await future
        if not answer["ok"]:
            raise RuntimeError(f"{method}: {answer['error']}")
        payload: dict[str, Any] = answer["payload"]
        return payload

    async def turn(self, session: str, message: str) -> None:
        """Say something and wait for the end of the answer."""
        run = uuid.uuid4().hex
        done = self._runs[run.encode()] = asyncio.get_running_loop().create_future()
        await self.call("chat.send", {"sessionKey": session, "message": message,
                                      "idempotencyKey": run})  # fmt: skip
        await done

    async def close(self) -> None:
        self._send(8, struct.pack("!H", 1000))
        await self.gone.wait()

    # ── bytes ───────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        for future in (*self._waiting.values(), *self._runs.values(), self._upgraded):
            if not future.done():
                future.set_exception(ConnectionError(f"closed with {self.close_code}"))
                future.exception()  # seen: not everybody waits for it

    def data_received(self, data: bytes) -> None:
        self.bytes += len(data)
        buffer = self._buffer
        buffer += data
        if not self._upgraded.done():
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if not buffer.startswith(b"HTTP/1.1 101"):
                self._upgraded.set_exception(RuntimeError(bytes(buffer[:end]).decode()))
                return
            del buffer[: end + 4]
            self._upgraded.set_result(None)
        at = 0
        while len(buffer) - at >= 2:
            size, head = buffer[at + 1], 2
            if size == 126:
                head = 4
                if len(buffer) - at < head:
                    break
                size = int.from_bytes(buffer[at + 2 : at + 4], "big")
            elif size == 127:
                head = 10
                if len(buffer) - at < head:
                    break
                size = int.from_bytes(buffer[at + 2 : at + 10], "big")
            if len(buffer) - at < head + size:
                break
            self._frame(buffer[at] & 15, bytes(buffer[at + head : at + head + size]))
            at += head + size
        del buffer[:at]

    def _send(self, opcode: int, body: bytes) -> None:
        size = len(body)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
        self.transport.write(head + _NO_MASK + body)

    def _frame(self, opcode: int, body: bytes) -> None:
        if opcode == 8:
            self.close_code = int.from_bytes(body[:2], "big")
            self.transport.close()
        elif opcode == 1 and body.startswith(b'{"type":"event"'):
            self._event(body)
        elif opcode == 1:
            answer = json.loads(body)
            future = self._waiting.pop(answer["id"], None)
            if future is not None and not future.done():
                future.set_result(answer)

    def _event(self, body: bytes) -> None:
        self.events += 1
        place = body.rfind(b',"seq":', -32)
        if place > 0 and body[place + 7 : -1].isdigit():
            seq = int(body[place + 7 : -1])
            self.gaps += self.last_seq not in (0, seq - 1)
            self.last_seq = seq
        if self._runs and body.startswith(b'{"type":"event","event":"chat"') and b'"final"' in body:
            for run in [run for run in self._runs if run in body]:
                self._runs.pop(run).set_result(None)
        elif not self._challenged.is_set():
            self._challenged.set()
        self.on_event(body)
