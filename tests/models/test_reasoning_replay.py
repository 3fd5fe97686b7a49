"""PR-06: providers that demand, or refuse, the reasoning of past messages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from claw_engine.models.base import Model, ModelError, ModelErrorKind, Request
from claw_engine.models.catalog import Models
from claw_engine.models.codecs.openai_chat import REASONING_PLACEHOLDER
from claw_engine.models.openai import OpenAIChatModel
from claw_engine.models.rules import ReasoningReplay, RuleBook, default_rules, next_replay
from claw_engine.models.transport import Transport
from tests.models.helpers import ask, assistant, ref, request, result, text_of, user
from tests.support import fake_openai as fake
from tests.support.fake_openai import FakeOpenAI, Received, Reply
from tests.support.fakes import START_MS, FakeClock, fake_world

MUST = "The reasoning_content in the thinking mode must be passed back to the API."
MUST_NOT = "body.messages.2.assistant.reasoning_content: Extra inputs are not permitted"


def assistants(got: Received) -> list[dict[str, object]]:
    messages = got.json["messages"]
    assert isinstance(messages, list)
    return [m for m in messages if m["role"] == "assistant"]


def demands(got: Received) -> Reply:
    ok = all(m.get("reasoning_content") for m in assistants(got) if m.get("tool_calls"))
    return fake.answer(*fake.text("ok")) if ok else fake.error(400, MUST)


def demands_everywhere(got: Received) -> Reply:
    ok = all(m.get("reasoning_content") for m in assistants(got))
    return fake.answer(*fake.text("ok")) if ok else fake.error(400, MUST)


def refuses(got: Received) -> Reply:
    bad = any("reasoning_content" in m for m in assistants(got))
    return fake.error(400, MUST_NOT) if bad else fake.answer(*fake.text("ok"))


def history() -> Request:
    return request(
        user("x"),
        assistant(calls=[("c1", "exec", "{}")], id_="a1"),  # saved without its reasoning
        result("c1", "1"),
        assistant("so", reasoning="kept", calls=[("c2", "exec", "{}")], id_="a2"),
        result("c2", "2"),
        assistant("done", id_="a3"),
        user("and now?", "u2"),
        thinking="off",
    )


@pytest.fixture
async def models() -> AsyncIterator[Models]:
    made = Models(fake_world())
    yield made
    await made.aclose()


async def ask_with_retries(model: Model, req: Request, limit: int = 3) -> tuple[str, int]:
    """What the agent does: encode anew and try again while the error says retryable."""
    for attempt in range(1, limit + 1):
        try:
            return text_of(await ask(model, req)), attempt
        except ModelError as error:
            assert error.kind is ModelErrorKind.BAD_REQUEST
            if not error.retryable:
                raise
            assert error.retry_after_ms == 0
            assert "trying again with" in error.title == str(error)
    raise AssertionError("never answered")


async def test_a_demand_is_learned_with_one_retry(models: Models) -> None:
    async with FakeOpenAI(demands) as server:
        model = models.model(ref(server.base_url))
        assert await ask_with_retries(model, history()) == ("ok", 2)
        sent = [m.get("reasoning_content") for m in assistants(server.requests[-1])]
        assert sent == [REASONING_PLACEHOLDER, "kept", None]
        # From now on the first attempt is right, for a new model object too.
        assert await ask_with_retries(models.model(ref(server.base_url)), history()) == ("ok", 1)
        (rule,) = models.learned_rules()
        assert (rule.provider, rule.model) == ("fake", "fake-1")
        assert (rule.replay, rule.evidence, rule.at_ms) == (
            ReasoningReplay.TOOL_CALLS,
            MUST,
            START_MS,
        )


async def test_a_stricter_demand_takes_a_second_lesson(models: Models) -> None:
    async with FakeOpenAI(demands_everywhere) as server:
        model = models.model(ref(server.base_url))
        assert await ask_with_retries(model, history()) == ("ok", 3)
        assert [r.replay for r in models.learned_rules()] == [ReasoningReplay.ALWAYS]


async def test_contradicting_lessons_end_in_an_error_not_in_a_loop(models: Models) -> None:
    strict = iter([demands, refuses])

    def moody(got: Received) -> Reply:
        return next(strict)(got)

    async with FakeOpenAI(moody) as server:
        model = models.model(ref(server.base_url))
        with pytest.raises(ModelError):
            await ask_with_retries(model, history())
        assert len(server.requests) == 2


async def test_a_provider_that_refuses_the_field_stops_getting_it() -> None:
    # DeepSeek's rule by host name, reached through a loopback address.
    deepseek = ref("https://api.deepseek.com")
    rules = RuleBook()
    async with FakeOpenAI(refuses) as server:
        transport = Transport(FakeClock())
        model = OpenAIChatModel(deepseek, fake_world(), transport, rules)
        plain = model.encode(history())
        local = replace(plain, url=f"{server.base_url}/chat/completions")
        with pytest.raises(ModelError) as caught:
            await ask(model, history(), local)
        assert caught.value.retryable
        assert rules.rules(deepseek).replay is ReasoningReplay.NEVER
        again = replace(model.encode(history()), url=local.url)
        assert text_of(await ask(model, history(), again)) == "ok"
        await transport.aclose()


async def test_a_body_encoded_before_the_lesson_is_not_sent_again(models: Models) -> None:
    async with FakeOpenAI(demands) as server:
        model, req = models.model(ref(server.base_url)), history()
        encoded = model.encode(req)
        with pytest.raises(ModelError):
            await ask(model, req, encoded)
        assert text_of(await ask(model, req, encoded)) == "ok"


async def test_an_ordinary_400_teaches_nothing(models: Models) -> None:
    async with FakeOpenAI(lambda _: fake.error(400, "temperature is required")) as server:
        with pytest.raises(ModelError) as caught:
            await ask(models.model(ref(server.base_url)), history())
        assert not caught.value.retryable
        assert models.learned_rules() == ()


N, T, A = ReasoningReplay.NEVER, ReasoningReplay.TOOL_CALLS, ReasoningReplay.ALWAYS


@pytest.mark.parametrize(
    ("current", "evidence", "expected"),
    [
        (N, MUST, T),
        (T, MUST, A),
        (A, MUST, None),
        (N, "Missing `reasoning_content` field in the assistant message at message index 2.", T),
        (T, MUST_NOT, N),
        (A, "Unrecognized field: reasoning_content", N),
        (N, MUST_NOT, None),
        (N, "Unsupported value for reasoning_effort: it is required to be low", None),
        (N, "model is required", None),
        (T, "unknown field temperature", None),
    ],
)
def test_what_a_refusal_teaches(
    current: ReasoningReplay, evidence: str, expected: ReasoningReplay | None
) -> None:
    assert next_replay(current, evidence) is expected


@pytest.mark.parametrize(
    ("base", "replay", "limit_field"),
    [
        ("https://api.deepseek.com", T, "max_tokens"),
        ("https://api.openai.com/v1", N, "max_completion_tokens"),
        ("https://me.openai.azure.com/openai/v1", N, "max_completion_tokens"),
        ("https://api.moonshot.ai/v1", T, "max_tokens"),
        ("http://127.0.0.1:11434/v1", N, "max_tokens"),
        ("https://evil-api.deepseek.com.example/v1", N, "max_tokens"),
    ],
)
def test_default_rules_by_host(base: str, replay: ReasoningReplay, limit_field: str) -> None:
    rules = default_rules(ref(base))
    assert (rules.replay, rules.max_tokens_field) == (replay, limit_field)
