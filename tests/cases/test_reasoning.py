"""PR-06 through the whole engine: reasoning that arrived on the wire goes back as it must."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import fake_openai as fake
from tests.support.engines import Operator, engine_on
from tests.support.fake_openai import FakeOpenAI, Received, Reply


def calls_of(got: Received) -> list[dict[str, Any]]:
    """The assistant messages with tool calls that a request holds."""
    messages = got.json["messages"]
    assert isinstance(messages, list)
    return [m for m in messages if m["role"] == "assistant" and m.get("tool_calls")]


def strict(wanted: str, streamed: str) -> Callable[[Received], Reply]:
    """A server that thinks before each call, streams it as `streamed`, and refuses a history
    whose calls lack `wanted`."""

    def handler(got: Received) -> Reply:
        messages = got.json["messages"]
        assert isinstance(messages, list)
        for index, message in enumerate(messages):
            if message.get("tool_calls") and not message.get(wanted):
                said = f"Missing `{wanted}` field in the assistant message at index {index}."
                return fake.error(400, said)
        if messages[-1]["role"] == "tool":
            return fake.answer(*fake.text("There it is."))
        number = len(calls_of(got)) + 1
        return fake.answer(
            *fake.reasoning(f"thought {number} ", "about it", name=streamed),
            *fake.tool_call(0, f"c{number}", "read", '{"path": "AGENTS.md"}'),
            finish="tool_calls",
        )

    return handler


def config(server: FakeOpenAI, thinking: str) -> dict[str, object]:
    provider = {
        "baseUrl": server.base_url, "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "one", "name": "one", "reasoning": True}],
    }  # fmt: skip
    defaults = {"model": {"primary": "fake/one"}, "thinkingDefault": thinking}
    return {"models": {"providers": {"fake": provider}}, "agents": {"defaults": defaults}}


@pytest.mark.parametrize("thinking", ["high", "off"])
@pytest.mark.parametrize(
    ("wanted", "streamed"),
    [
        ("reasoning_content", "reasoning_content"),
        ("reasoning_content", "reasoning"),
        ("reasoning", "reasoning"),
        ("reasoning", "reasoning_content"),
    ],
)
async def test_the_models_own_reasoning_goes_back_to_a_server_that_demands_it(
    tmp_path: Path, wanted: str, streamed: str, thinking: str
) -> None:
    """(b) the field is called `reasoning`; (c) thinking is off but the model thinks anyway."""
    async with FakeOpenAI(strict(wanted, streamed)) as server:
        settings = config(server, thinking)
        for words, first in (("look", 1), ("look again", 2)):
            # The second turn is another engine's: what it sends was stored.
            async with (
                engine_on(tmp_path / "state", config=settings) as engine,
                Operator(engine.local_client(strict=True)) as operator,
            ):
                end = await operator.ended(await operator.say(words))
                assert (end["status"], end["text"]) == ("done", "There it is.")
            sent = calls_of(server.requests[-1])
            thoughts = [f"thought {n} about it" for n in range(1, first + 1)]
            assert [message[wanted] for message in sent] == thoughts
            other = {"reasoning", "reasoning_content"} - {wanted}
            assert not any(name in message for message in sent for name in other)
        # One lesson an engine: the refused request, then as it must be.
        assert len(server.requests) == 2 * 3


async def test_a_model_that_thinks_unasked_shows_it_and_the_file_keeps_it(tmp_path: Path) -> None:
    """(c) at a server that forbids the field: it is stored, and not sent."""

    def handler(got: Received) -> Reply:
        messages = got.json["messages"]
        assert isinstance(messages, list)
        if any("reasoning_content" in m or "reasoning" in m for m in messages):
            return fake.error(400, "Unrecognized field: reasoning_content")
        return fake.answer(*fake.reasoning("hm"), *fake.text("Yes."))

    async with FakeOpenAI(handler) as server:
        async with (
            engine_on(tmp_path / "state", config=config(server, "off")) as engine,
            Operator(engine.local_client(strict=True)) as operator,
        ):
            for _ in range(2):
                run = await operator.say("well?")
                assert (await operator.ended(run))["text"] == "Yes."
                assert (await operator.trace(run, "reasoning"))["delta"] == "hm"
            kinds = [b["type"] for m in await operator.history() for b in m["content"]]
            assert kinds.count("thinking") == 2
        assert len(server.requests) == 2
        assert all("reasoning_effort" not in got.json for got in server.requests)
