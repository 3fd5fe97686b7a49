"""The official `openai` SDK reads the same server, and reads the same as our adapter."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from claw_engine.models.base import UsageSeen
from claw_engine.models.catalog import Models
from tests.models.helpers import SECRET, ask, calls_of, ref, request, text_of, tool
from tests.support import fake_openai as fake
from tests.support.fake_openai import FakeOpenAI
from tests.support.fakes import fake_world

SCRIPTS = {
    "text": fake.answer(*fake.text("He", "llo", " 磁盘 🦞")),
    "two parallel calls": fake.answer(
        *fake.reasoning("hm"),
        *fake.text("I look."),
        *fake.tool_call(0, "c1", "exec", '{"command":', '"ls"}'),
        *fake.tool_call(1, "c2", "read", '{"path":"a"}'),
        finish="tool_calls",
        counted=(120, 30, 100),
    ),
    "cut short by length": fake.answer(*fake.text("too lo"), finish="length"),
}


async def read_with_sdk(server: FakeOpenAI, body: dict[str, Any]) -> dict[str, Any]:
    client = openai.AsyncOpenAI(api_key=SECRET, base_url=server.base_url, max_retries=0)
    text, usage = "", None
    calls: dict[int, list[str]] = {}
    async with client:
        stream = await client.chat.completions.create(**body)
        async for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    known = calls.setdefault(call.index, ["", "", ""])
                    assert call.function is not None
                    known[0] += call.id or ""
                    known[1] += call.function.name or ""
                    known[2] += call.function.arguments or ""
    assert usage is not None and usage.prompt_tokens_details is not None
    return {
        "text": text,
        "calls": [tuple(calls[i]) for i in sorted(calls)],
        "prompt": usage.prompt_tokens,
        "output": usage.completion_tokens,
        "cached": usage.prompt_tokens_details.cached_tokens,
    }


@pytest.mark.parametrize("name", SCRIPTS)
async def test_the_sdk_and_our_adapter_read_the_same(name: str) -> None:
    models = Models(fake_world())
    async with FakeOpenAI() as server:
        server.reply(SCRIPTS[name])
        model = models.model(ref(server.base_url))
        req = request(tools=[tool("exec"), tool("read")], max_tokens=64)
        events = await ask(model, req)
        seen = [e.usage for e in events if isinstance(e, UsageSeen)][-1]
        ours = {
            "text": text_of(events),
            "calls": calls_of(events),
            "prompt": seen.input + seen.cache_read,
            "output": seen.output,
            "cached": seen.cache_read,
        }
        # The SDK sends the very body that we sent: it is a valid request to it, too.
        assert ours == await read_with_sdk(server, json.loads(model.encode(req).body))
        mine, theirs = server.requests
        assert mine.json == theirs.json
        assert mine.path == theirs.path
        assert mine.headers["authorization"] == theirs.headers["authorization"]
    await models.aclose()


async def test_the_sdk_takes_the_fake_servers_errors_for_real() -> None:
    async with FakeOpenAI() as server:
        server.reply(fake.error(401, "Incorrect API key provided", "invalid_api_key"))
        client = openai.AsyncOpenAI(api_key=SECRET, base_url=server.base_url, max_retries=0)
        async with client:
            with pytest.raises(openai.AuthenticationError) as caught:
                await client.chat.completions.create(model="x", messages=[])
        assert caught.value.code == "invalid_api_key"
