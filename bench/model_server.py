"""A model server in a process of its own that notes when each request arrived."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection


@dataclass(frozen=True, slots=True)
class Server:
    """`received` gives arrival times, ns of the monotonic clock that all processes share."""

    port: int
    pipe: Connection

    def config(self) -> dict[str, object]:
        """Configuration that makes this server the only model."""
        return {
            "models": {
                "providers": {
                    "bench": {
                        "baseUrl": f"http://127.0.0.1:{self.port}/v1",
                        "apiKey": "bench",
                        "api": "openai-completions",
                        "models": [{"id": "plain", "name": "plain"}],
                    }
                }
            },
            "agents": {"defaults": {"model": {"primary": "bench/plain"}}},
        }

    def received(self) -> list[int]:
        self.pipe.send("received")
        times: list[int] = self.pipe.recv()
        return times


@contextlib.contextmanager
def server_process(tokens: int) -> Iterator[Server]:
    """Serve a stream of `tokens` tokens for every request until the block ends."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(there, tokens), daemon=True
    )
    process.start()
    port = here.recv()
    try:
        yield Server(port, here)
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, tokens: int) -> None:
    import threading

    times: list[int] = []
    listener = socket.create_server(("127.0.0.1", 0))
    pipe.send(listener.getsockname()[1])
    body = _stream(tokens)

    def one(connection: socket.socket) -> None:
        with connection:
            buffer = b""
            while True:
                while b"\r\n\r\n" not in buffer:
                    data = connection.recv(65536)
                    if not data:
                        return
                    if not buffer:
                        times.append(time.monotonic_ns())
                    buffer += data
                head, _, rest = buffer.partition(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                while len(rest) < length:
                    rest += connection.recv(65536)
                buffer = rest[length:]
                connection.sendall(body)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    while True:
        pipe.recv()
        pipe.send(times)


def _stream(tokens: int) -> bytes:
    events = [
        {"choices": [{"index": 0, "delta": {"content": f"word{n} "}, "finish_reason": None}]}
        for n in range(tokens)
    ]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events.append({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": tokens}})
    lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    data = lines.encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data
