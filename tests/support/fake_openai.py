"""A real HTTP server on loopback that speaks OpenAI's chat-completions stream from a script.

It keeps the exact bytes of every request. Scripts are queued with `reply`, or computed from the
request by `handler` (for strict servers that refuse some histories).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Json: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived. Header names are lower-case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value


@dataclass(frozen=True, slots=True)
class Raw:
    """The data text of one event, as it is."""

    data: str


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes of the body, as they are (to cut events at odd places)."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Hold:
    """Stop here until the event is set or the client goes away."""

    until: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Cut:
    """Drop the connection here, without ending the body."""


Step: TypeAlias = Json | Raw | Bytes | Hold | Cut


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: a status, headers, and the steps of its body (each Json or Raw is one event)."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream"


def delta(finish: str | None = None, **fields: object) -> Json:
    """One chunk with one choice."""
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 1_796_028_000,
        "model": "fake",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def text(*pieces: str) -> list[Json]:
    return [delta(content=piece) for piece in pieces]


def reasoning(*pieces: str, name: str = "reasoning_content") -> list[Json]:
    return [delta(**{name: piece}) for piece in pieces]


def tool_call(index: int, call_id: str, name: str, *arguments: str) -> list[Json]:
    """The deltas of one call: its head, then its arguments piece by piece."""
    head = {
        "index": index,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": ""},
    }
    rest = [{"index": index, "function": {"arguments": piece}} for piece in arguments]
    return [delta(tool_calls=[item]) for item in [head, *rest]]


def usage(prompt: int, completion: int, cached: int = 0) -> Json:
    """The closing chunk that `include_usage` asks for."""
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 1_796_028_000,
        "model": "fake",
        "choices": [],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


DONE = Raw("[DONE]")


def answer(*steps: Step, finish: str = "stop", counted: tuple[int, int, int] = (12, 5, 0)) -> Reply:
    """A whole, well-formed answer: role, steps, finish reason, usage, end mark."""
    return Reply(
        [delta(role="assistant", content=""), *steps, delta(finish), usage(*counted), DONE]
    )


def error(
    status: int, message: str, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """OpenAI's error answer."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return Reply(
        [Bytes(json.dumps(body).encode())],
        status=status,
        headers=headers or {},
        content_type="application/json",
    )


def html(status: int = 200) -> Reply:
    """A login page or a proxy's error page where an answer was expected."""
    page = b"<!doctype html><title>Sign in</title>"
    return Reply([Bytes(page)], status=status, content_type="text/html; charset=utf-8")


class FakeOpenAI:
    """`async with FakeOpenAI() as server:` then use `server.base_url`."""

    def __init__(self, handler: Callable[[Received], Reply] | None = None) -> None:
        self.requests: list[Received] = []
        self.arrived = asyncio.Event()  # a request has arrived in full
        self.gone = asyncio.Event()  # a client went away during an answer
        self.connections = 0
        self._handler = handler
        self._replies: deque[Reply] = deque()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> FakeOpenAI:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def reply(self, *replies: Reply) -> None:
        """Queue answers; the last one is given again when the queue is empty."""
        self._replies.extend(replies)

    def _next(self, request: Received) -> Reply:
        if self._handler is not None:
            return self._handler(request)
        if len(self._replies) > 1:
            return self._replies.popleft()
        return self._replies[0] if self._replies else answer(*text("ok"))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                self.arrived.set()
                await self._send(self._next(request), reader, writer)
        except (ConnectionError, _CutConnection):
            pass
        except asyncio.CancelledError:
            pass  # the server is closing; 3.11's streams complain about a cancelled handler
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _send(
        self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        headers = {
            "Content-Type": reply.content_type,
            "Transfer-Encoding": "chunked",
            **reply.headers,
        }
        head = f"HTTP/1.1 {reply.status} X\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(head.encode("latin-1") + b"\r\n")
        for step in reply.steps:
            match step:
                case Hold(until):
                    await writer.drain()
                    await self._hold(until, reader)
                case Cut():
                    await writer.drain()
                    raise _CutConnection
                case Bytes(data):
                    _chunk(writer, data)
                case Raw(data):
                    _chunk(writer, f"data: {data}\n\n".encode())
                case _:
                    _chunk(writer, f"data: {json.dumps(step, ensure_ascii=False)}\n\n".encode())
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _hold(self, until: asyncio.Event, reader: asyncio.StreamReader) -> None:
        """Wait for the event, but notice at once when the client closes its end."""
        released = asyncio.ensure_future(until.wait())
        left = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({released, left}, return_when=asyncio.FIRST_COMPLETED)
            if left.done():
                self.gone.set()
                raise _CutConnection
        finally:
            for waiter in (released, left):
                waiter.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                    await waiter


class _CutConnection(Exception):
    """The script, or the client, ends this connection."""


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    if data:
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, separator, value in (line.partition(":") for line in lines)
        if separator
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body)
