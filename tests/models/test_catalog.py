from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from claw_engine.config.sections.agents import AgentsSettings
from claw_engine.config.sections.models import ModelsSettings
from claw_engine.config.settings import Settings
from claw_engine.models.base import ModelConfigError, ModelRef
from claw_engine.models.catalog import Models
from claw_engine.models.rehearsal import REHEARSAL
from claw_engine.shapes import read
from tests.support.fakes import fake_world

KEY = "sk-test-0123456789abcdef"


def settings(
    primary: str | None = None,
    providers: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    **agent_defaults: Any,
) -> Settings:
    if primary is not None:
        agent_defaults["model"] = {"primary": primary}
    raw: dict[str, Any] = {}
    if agent_defaults:
        raw["agents"] = {"defaults": agent_defaults}
    if providers is not None:
        raw["models"] = {"providers": providers}
    return Settings(
        agents=read(AgentsSettings, raw.get("agents", {})),
        models=read(ModelsSettings, raw.get("models", {})),
        raw=raw,
        resolved=raw,
        env=env or {},
    )


def resolve(*args: Any, **kwargs: Any) -> ModelRef:
    return Models(fake_world()).resolve(settings(*args, **kwargs))


def refusal(*args: Any, **kwargs: Any) -> ModelConfigError:
    with pytest.raises(ModelConfigError) as caught:
        resolve(*args, **kwargs)
    assert caught.value.hint
    return caught.value


LOCAL: dict[str, Any] = {
    "baseUrl": "http://127.0.0.1:8000/v1",
    "models": [{"id": "qwen3", "contextWindow": 40_000, "maxTokens": 4096, "reasoning": True}],
}


@pytest.mark.parametrize("env", [{}, {"PATH": "/bin", "OPENAI_API_KEY": "  "}])
def test_rehearsal_is_the_default_only_when_nothing_is_named(env: dict[str, str]) -> None:
    assert resolve(env=env) == REHEARSAL


@pytest.mark.parametrize(
    ("env", "name", "base_url", "key"),
    [
        ({"OPENAI_API_KEY": KEY}, "openai/gpt-5.2", "https://api.openai.com/v1", KEY),
        ({"OPENAI_API_KEY": KEY, "OPENAI_MODEL": "gpt-5-mini"}, "openai/gpt-5-mini",
         "https://api.openai.com/v1", KEY),
        ({"OPENAI_BASE_URL": "http://box:8000/v1/", "OPENAI_MODEL": "m"}, "openai/m",
         "http://box:8000/v1", None),
        ({"OPENROUTER_API_KEY": KEY}, "openrouter/openrouter/auto",
         "https://openrouter.ai/api/v1", KEY),
        ({"DEEPSEEK_API_KEY": KEY}, "deepseek/deepseek-v4-flash", "https://api.deepseek.com", KEY),
        ({"ARK_API_KEY": KEY, "ARK_MODEL": "ep-1"}, "volcengine/ep-1",
         "https://ark.cn-beijing.volces.com/api/v3", KEY),
        ({"OLLAMA_HOST": "0.0.0.0", "OLLAMA_MODEL": "qwen3"}, "ollama/qwen3",
         "http://127.0.0.1:11434/v1", None),
        ({"OLLAMA_HOST": "nas:9000", "OLLAMA_MODEL": "qwen3"}, "ollama/qwen3",
         "http://nas:9000/v1", None),
        ({"OLLAMA_HOST": "https://ai.example/v1", "OLLAMA_MODEL": "q"}, "ollama/q",
         "https://ai.example/v1", None),
        ({"VLLM_BASE_URL": "http://gpu:8000", "VLLM_MODEL": "a/b"}, "vllm/a/b",
         "http://gpu:8000/v1", None),
        ({"CLAW_MODEL": "deepseek/deepseek-v4-pro", "DEEPSEEK_API_KEY": KEY},
         "deepseek/deepseek-v4-pro", "https://api.deepseek.com", KEY),
    ],
)  # fmt: skip
def test_from_the_environment(
    env: dict[str, str], name: str, base_url: str, key: str | None
) -> None:
    found = resolve(env=env)
    assert (found.name, found.base_url, found.api_key) == (name, base_url, key)
    assert found.is_ai


def test_rehearsal_can_be_chosen() -> None:
    assert resolve("rehearsal/stage", env={"OPENAI_API_KEY": KEY}) == REHEARSAL
    assert resolve(env={"CLAW_MODEL": "rehearsal/stage", "OPENAI_API_KEY": KEY}) == REHEARSAL
    assert "rehearsal/stage" in refusal("rehearsal/other").hint


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"OPENAI_BASE_URL": "http://box:8000/v1"}, "OPENAI_MODEL"),
        ({"ARK_API_KEY": KEY}, "ARK_MODEL"),
        ({"OLLAMA_HOST": "127.0.0.1"}, "OLLAMA_MODEL"),
        ({"OPENAI_MODEL": "gpt-5.2"}, "OPENAI_API_KEY"),
        ({"ANTHROPIC_API_KEY": KEY}, "anthropic-messages"),
        ({"GROQ_API_KEY": KEY}, "GROQ_MODEL"),
        ({"OPENAI_BASE_URL": "not a url", "OPENAI_MODEL": "m"}, "not a web address"),
        ({"OPENAI_BASE_URL": "ftp://x/", "OPENAI_MODEL": "m"}, "not a web address"),
        ({"CLAW_MODEL": "nobody/x"}, "not configured"),
    ],
)
def test_a_named_model_that_cannot_be_used_is_an_error_never_rehearsal(
    env: dict[str, str], says: str
) -> None:
    assert says in refusal(env=env).sentence()


def test_from_the_configuration() -> None:
    found = resolve("box/qwen3", {"box": {**LOCAL, "apiKey": KEY, "headers": {"X-A": "1"}}})
    assert (found.name, found.api, found.base_url) == (
        "box/qwen3",
        "openai-completions",
        "http://127.0.0.1:8000/v1",
    )
    assert (found.context_window, found.max_tokens, found.reasoning) == (40_000, 4096, True)
    assert (found.api_key, dict(found.headers)) == (KEY, {"X-A": "1"})
    assert KEY not in repr(found)


def test_configuration_wins_over_the_environment() -> None:
    env = {"OPENAI_API_KEY": KEY, "CLAW_MODEL": "rehearsal/stage"}
    assert resolve("box/qwen3", {"box": LOCAL}, env).name == "box/qwen3"
    assert resolve(None, {"box": LOCAL}, env).name == "box/qwen3"


def test_a_known_provider_needs_only_a_key() -> None:
    found = resolve("deepseek/deepseek-v4-pro", env={"DEEPSEEK_API_KEY": KEY})
    assert (found.base_url, found.context_window) == ("https://api.deepseek.com", 1_000_000)
    assert found.reasoning


def test_aliases() -> None:
    assert resolve("ark/ep-1", env={"ARK_API_KEY": KEY}).name == "volcengine/ep-1"
    assert resolve("Quick", {"box": LOCAL}, models={"box/qwen3": {"alias": "quick"}}).id == "qwen3"
    assert resolve("qwen3", {"box": LOCAL}).name == "box/qwen3"


def test_the_key_may_be_the_name_of_a_variable() -> None:
    provider = {**LOCAL, "apiKey": "BOX_API_KEY"}
    assert resolve("box/qwen3", {"box": provider}, {"BOX_API_KEY": KEY}).api_key == KEY
    assert "BOX_API_KEY" in refusal("box/qwen3", {"box": provider}).title


def test_the_context_window_is_capped() -> None:
    assert resolve("box/qwen3", {"box": LOCAL}, contextTokens=20_000).context_window == 20_000
    assert resolve("box/other", {"box": LOCAL}).context_window == 200_000


@pytest.mark.parametrize(
    ("primary", "providers", "says"),
    [
        ("openai/gpt-5.2", None, "OPENAI_API_KEY"),
        ("nobody/x", None, "models.providers.nobody"),
        ("qwen3", None, "provider/model"),
        ("box/", {"box": LOCAL}, "no model"),
        ("box/m", {"box": {}}, "no base URL"),
        ("box/m", {"box": {**LOCAL, "api": "anthropic-messages"}}, "anthropic-messages"),
        ("box/m", {"box": {**LOCAL, "api": "ollama"}}, "openai-completions"),
        ("box/m", {"box": {**LOCAL, "apiKey": "${BOX}"}}, "${BOX}"),
        ("box/m", {"box": {**LOCAL, "baseUrl": "http://${HOST}/v1"}}, "${HOST}"),
        ("box/m", {"box": {**LOCAL, "headers": {"X-K": "${BOX}"}}}, "${BOX}"),
        ("box/${MODEL}", {"box": LOCAL}, "${MODEL}"),
        ("box/m", {"box": {**LOCAL, "baseUrl": "localhost"}}, ""),
        (None, {"box": {"baseUrl": "http://127.0.0.1:1/v1"}}, "no model is named"),
    ],
)
def test_configured_models_that_cannot_be_used(
    primary: str | None, providers: dict[str, Any] | None, says: str
) -> None:
    if not says:
        assert resolve(primary, providers).base_url == "http://localhost"
        return
    assert says in refusal(primary, providers).sentence()


def test_a_provider_that_lost_a_variable_is_not_called() -> None:
    found = settings("box/qwen3", {"box": LOCAL})
    broken = replace(found.models.providers["box"], unusable="apiKey: BOX is not set")
    models = replace(found.models, providers={"box": broken})
    with pytest.raises(ModelConfigError) as caught:
        Models(fake_world()).resolve(Settings(agents=found.agents, models=models))
    assert "BOX is not set" in caught.value.title


@pytest.mark.parametrize(
    "raw",
    [
        {"agents": {"defaults": {"model": 7}}},
        {"models": {"providers": {"box": {"baseUrl": 7}}}},
    ],
)
def test_a_section_that_could_not_be_read_is_no_reason_to_rehearse(raw: dict[str, Any]) -> None:
    with pytest.raises(ModelConfigError):
        Models(fake_world()).resolve(Settings(raw=raw, resolved=raw))


def test_the_list_holds_each_usable_model_once() -> None:
    found = settings(
        "box/qwen3",
        {"box": LOCAL, "bad": {**LOCAL, "api": "anthropic-messages"}},
    )
    names = [ref.name for ref in Models(fake_world()).list(found)]
    assert names == ["box/qwen3", "rehearsal/stage"]


def test_a_list_survives_an_unusable_default() -> None:
    names = [ref.name for ref in Models(fake_world()).list(settings("nobody/x"))]
    assert names == ["rehearsal/stage"]


def test_an_api_that_is_not_spoken_gets_no_model() -> None:
    with pytest.raises(ModelConfigError):
        Models(fake_world()).model(ModelRef("x", "y", "bedrock-converse-stream"))


@pytest.mark.parametrize(
    ("args", "env", "place"),
    [
        (("box/m", {"box": {**LOCAL, "apiKey": "sk-ключ"}}), {}, "models.providers.box.apiKey"),
        (("box/m", {"box": {**LOCAL, "apiKey": "BOX_KEY"}}), {"BOX_KEY": "sk\u200b1"}, "BOX_KEY"),
        (("openai/m",), {"OPENAI_API_KEY": "sk-\u201cx\u201d"}, "OPENAI_API_KEY"),
        (("box/m", {"box": {**LOCAL, "headers": {"X-A": "é"}}}), {}, "headers.X-A"),
    ],
)
def test_a_key_that_http_cannot_carry(
    args: tuple[Any, ...], env: dict[str, str], place: str
) -> None:
    error = refusal(*args, env=env)
    assert place in error.title
    assert "cannot carry" in error.title
    assert error.title.isascii()
