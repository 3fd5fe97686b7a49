"""The OpenAI model against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from claw_engine.messages import Usage
from claw_engine.models.base import (
    Finished,
    Model,
    ModelConfigError,
    ModelError,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
    decode_span,
)
from claw_engine.models.base import ModelErrorKind as Kind
from claw_engine.models.catalog import Models
from claw_engine.net.http import HttpTimeouts
from tests.models.helpers import SECRET, ask, calls_of, ref, request, text_of, tool, user
from tests.support import fake_openai as fake
from tests.support.fake_openai import FakeOpenAI
from tests.support.fakes import fake_world


@pytest.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    async with FakeOpenAI() as running:
        yield running


@pytest.fixture
async def models() -> AsyncIterator[Models]:
    made = Models(fake_world(), timeouts=HttpTimeouts(connect=2.0, read=0.3))
    yield made
    await made.aclose()


def model_of(models: Models, server: FakeOpenAI, **changes: object) -> Model:
    return models.model(ref(server.base_url, **changes))


async def failure(models: Models, server: FakeOpenAI) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model_of(models, server), request())
    return caught.value


async def test_text_reasoning_two_calls_and_usage(models: Models, server: FakeOpenAI) -> None:
    server.reply(
        fake.answer(
            *fake.reasoning("The disk ", "is full?"),
            *fake.text("I will ", "look: 磁盘 🦞"),
            *fake.tool_call(0, "c1", "exec", '{"comm', 'and":"du -sh *"}'),
            *fake.tool_call(1, "c2", "exec", '{"command":"df"}'),
            finish="tool_calls",
            counted=(120, 30, 100),
        )
    )
    events = await ask(model_of(models, server), request(tools=[tool("exec")]))
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "The disk is full?"
    assert text_of(events) == "I will look: 磁盘 🦞"
    assert calls_of(events) == [
        ("c1", "exec", '{"command":"du -sh *"}'),
        ("c2", "exec", '{"command":"df"}'),
    ]
    assert [e.usage for e in events if isinstance(e, UsageSeen)] == [
        Usage(input=20, output=30, cache_read=100, total=150)
    ]
    assert events[-1] == Finished("toolUse")


async def test_spans_equal_the_bytes_that_the_server_received(
    models: Models, server: FakeOpenAI
) -> None:
    model = model_of(models, server)
    req = request(user('mein "Datenträger"\n是否满了 🦞'), tools=[tool("exec"), tool("read")])
    encoded = model.encode(req)
    await ask(model, req, encoded)
    received = server.requests[0].body
    assert b"".join(received[span.start : span.end] for span in encoded.spans) == received
    texts = {s.part_id: decode_span(received, s) for s in encoded.spans if s.part_id}
    assert texts == {
        "s0": "You are a test.",
        "u1": 'mein "Datenträger"\n是否满了 🦞',
        "tool:exec": req.tools[0].part.text,
        "tool:read": req.tools[1].part.text,
    }


async def test_the_request_on_the_wire(models: Models, server: FakeOpenAI) -> None:
    await ask(model_of(models, server, headers={"X-Title": "claw"}), request())
    got = server.requests[0]
    assert (got.method, got.path) == ("POST", "/v1/chat/completions")
    assert got.headers["authorization"] == f"Bearer {SECRET}"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["x-title"] == "claw"
    assert got.headers["user-agent"].startswith("claw-tui")


async def test_no_key_sends_no_credential(models: Models, server: FakeOpenAI) -> None:
    await ask(model_of(models, server, api_key=None), request())
    assert "authorization" not in server.requests[0].headers


async def test_the_first_text_arrives_while_the_answer_is_still_going(
    models: Models, server: FakeOpenAI
) -> None:
    hold = fake.Hold()
    server.reply(fake.answer(*fake.text("early"), hold, *fake.text(" late")))
    model, req = model_of(models, server), request()
    stream = aiter(model.stream(model.encode(req), req))
    assert await anext(stream) == TextDelta("early")
    hold.until.set()
    assert await anext(stream) == TextDelta(" late")
    assert [e async for e in stream][-1] == Finished("stop")


async def test_one_connection_serves_several_calls(models: Models, server: FakeOpenAI) -> None:
    for _ in range(3):
        await ask(model_of(models, server), request())
    assert len(server.requests) == 3
    assert server.connections == 1


@pytest.mark.parametrize("size", [1, 3, 50])
async def test_events_cut_at_odd_bytes(models: Models, server: FakeOpenAI, size: int) -> None:
    body = (
        ': ping\r\n\r\nevent: x\r\ndata: {"choices":[{"delta":{"content":"磁盘"}}]}\r\n\r\n'
        'data:{"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    ).encode()
    pieces = [fake.Bytes(body[i : i + size]) for i in range(0, len(body), size)]
    server.reply(fake.Reply(pieces))
    assert text_of(await ask(model_of(models, server), request())) == "磁盘"


async def test_a_server_that_does_not_stream(models: Models, server: FakeOpenAI) -> None:
    body = (
        b'{\n "choices": [{"message": {"role": "assistant", "content": "all at once"},'
        b' "finish_reason": "stop"}],\n "usage": {"prompt_tokens": 3, "completion_tokens": 4}\n}'
    )
    server.reply(fake.Reply([fake.Bytes(body)], content_type="application/json"))
    events = await ask(model_of(models, server), request())
    assert text_of(events) == "all at once"
    assert events[-1] == Finished("stop")


async def test_an_error_object_with_status_200(models: Models, server: FakeOpenAI) -> None:
    body = b'{"error": {"message": "no such model", "code": 404}}'
    server.reply(fake.Reply([fake.Bytes(body)], content_type="application/json"))
    assert (await failure(models, server)).kind is Kind.NOT_FOUND


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (401, Kind.AUTH, False),
        (404, Kind.NOT_FOUND, False),
        (400, Kind.BAD_REQUEST, False),
        (307, Kind.NOT_FOUND, False),
        (429, Kind.RATE_LIMIT, True),
        (500, Kind.SERVER, True),
        (503, Kind.OVERLOADED, True),
    ],
)
async def test_refusals(
    models: Models, server: FakeOpenAI, status: int, kind: Kind, retryable: bool
) -> None:
    server.reply(fake.error(status, f"No: Bearer {SECRET}", headers={"Location": "http://x/"}))
    error = await failure(models, server)
    assert (error.kind, error.status, error.retryable) == (kind, status, retryable)
    assert SECRET not in error.sentence()


@pytest.mark.parametrize(
    ("value", "expected"), [("7", 7000), ("Mon, 30 Nov 2026 08:40:30 GMT", 30_000)]
)
async def test_retry_after(models: Models, server: FakeOpenAI, value: str, expected: int) -> None:
    server.reply(fake.error(429, "slow down", headers={"Retry-After": value}))
    assert (await failure(models, server)).retry_after_ms == expected


async def test_overflow_by_code_and_co03_never_by_the_conversation(
    models: Models, server: FakeOpenAI
) -> None:
    words = 'why do I see "Context overflow: prompt too large, context_length_exceeded"?'
    server.reply(
        fake.error(400, "too long", "context_length_exceeded"),
        fake.error(500, "internal error"),
        fake.answer(*fake.text("400 context_length_exceeded: maximum context length")),
    )
    kinds = []
    for _ in range(2):
        with pytest.raises(ModelError) as caught:
            await ask(model_of(models, server), request(user(words)))
        kinds.append(caught.value.kind)
    assert kinds == [Kind.CONTEXT_OVERFLOW, Kind.SERVER]
    events = await ask(model_of(models, server), request(user(words)))
    assert events[-1] == Finished("stop")


@pytest.mark.parametrize(("status", "kind"), [(200, Kind.NOT_FOUND), (502, Kind.SERVER)])
async def test_a_web_page_instead_of_an_answer(
    models: Models, server: FakeOpenAI, status: int, kind: Kind
) -> None:
    server.reply(fake.html(status))
    error = await failure(models, server)
    assert error.kind is kind
    assert "<" not in error.sentence()


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([fake.Cut()], id="connection dropped"),
        pytest.param([], id="body ended without an end mark"),
        pytest.param([fake.Bytes(b'data: {"choi')], id="ended inside an event"),
    ],
)
async def test_a_stream_that_breaks_off(
    models: Models, server: FakeOpenAI, steps: list[fake.Step]
) -> None:
    server.reply(fake.Reply([*fake.text("Half an"), *steps]))
    error = await failure(models, server)
    assert (error.kind, error.retryable) == (Kind.CUT, True)


async def test_a_cut_after_the_finish_reason_costs_nothing(
    models: Models, server: FakeOpenAI
) -> None:
    server.reply(fake.Reply([*fake.text("whole"), fake.delta("stop"), fake.Cut()]))
    events = await ask(model_of(models, server), request())
    assert (text_of(events), events[-1]) == ("whole", Finished("stop"))


async def test_a_server_that_stays_open_after_its_end_mark(
    models: Models, server: FakeOpenAI
) -> None:
    server.reply(fake.Reply([*fake.text("whole"), fake.delta("stop"), fake.DONE, fake.Hold()]))
    events = await ask(model_of(models, server), request())
    assert (text_of(events), events[-1]) == ("whole", Finished("stop"))


async def test_silence_is_a_timeout(models: Models, server: FakeOpenAI) -> None:
    server.reply(fake.Reply([*fake.text("Half"), fake.Hold()]))
    error = await failure(models, server)
    assert (error.kind, error.retryable) == (Kind.TIMEOUT, True)


async def test_nobody_listens(models: Models) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    model = models.model(ref(f"http://127.0.0.1:{port}/v1"))
    with pytest.raises(ModelError) as caught:
        await ask(model, request(model=model.ref))
    assert (caught.value.kind, caught.value.retryable) == (Kind.NETWORK, True)
    assert f"127.0.0.1:{port}" in caught.value.title


@pytest.mark.parametrize(
    "base", ["ftp://host/v1", "http://exa mple/v1", "host/v1", "http://[::1/v1"]
)
async def test_an_address_that_is_none(models: Models, base: str) -> None:
    with pytest.raises(ModelConfigError):
        models.model(ref(base))


async def test_cancelling_closes_the_socket_at_once() -> None:
    models = Models(fake_world(), timeouts=HttpTimeouts(read=60.0))
    async with FakeOpenAI() as server:
        server.reply(fake.Reply([*fake.text("Half"), fake.Hold()]))
        model, req = model_of(models, server), request()
        started = asyncio.Event()

        async def consume() -> None:
            async for _ in model.stream(model.encode(req), req):
                started.set()

        task = asyncio.create_task(consume())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), 5)
    await models.aclose()


async def test_cancelling_before_the_first_byte_closes_the_socket() -> None:
    models = Models(fake_world(), timeouts=HttpTimeouts(read=60.0))
    async with FakeOpenAI() as server:
        server.reply(fake.Reply([fake.Hold()]))
        task = asyncio.create_task(ask(model_of(models, server), request()))
        await server.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), 5)
    await models.aclose()


async def test_a_proxy_of_the_environment_never_sees_a_loopback_call(
    models: Models, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeOpenAI() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await ask(model_of(models, server), request())
        assert len(server.requests) == 1
        assert proxy.requests == []


@pytest.mark.parametrize(
    ("seconds", "words"), [("90", "90 s"), ("600", "10 min"), ("86400", "24 h")]
)
async def test_a_long_retry_after_is_told(
    models: Models, server: FakeOpenAI, seconds: str, words: str
) -> None:
    server.reply(fake.error(429, "slow down", headers={"Retry-After": seconds}))
    assert f"It asks to wait {words}." in (await failure(models, server)).hint


async def test_a_redirect_is_named(models: Models, server: FakeOpenAI) -> None:
    place = f"https://u:p@other.example/v1/x?key={SECRET}"
    bad = fake.error(302, "moved", headers={"Location": "https://[::bad/"})
    server.reply(fake.error(308, "moved", headers={"Location": place}), bad)
    error = await failure(models, server)
    assert error.title == "fake redirects the call to https://other.example/v1/x (HTTP 308)."
    assert (error.status, error.retryable) == (308, False)
    assert SECRET not in error.sentence()
    assert (await failure(models, server)).title == "fake redirects the call (HTTP 302)."


async def test_tls_to_a_plain_server_says_http(models: Models) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(ModelError) as caught:
            await ask(models.model(ref(f"https://127.0.0.1:{port}/v1")), request())
    assert "does not speak TLS" in caught.value.title
    assert "http:// instead of https://" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    ["http://a..b/v1", f"http://{'x' * 64}.example/v1", "http://h:99999/v1", "http://[::1/v1",
     "http://exa mple/v1", "http://*/v1"],
)  # fmt: skip
async def test_a_base_url_that_can_never_work_is_a_config_error(models: Models, url: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        await ask(models.model(ref(url)), request())
    assert not caught.value.retryable
