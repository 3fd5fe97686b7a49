"""Model services we know by name: where they are, which variables configure them, what to ask for.

Data and its look-up, no settings and no network. Addresses and variable names are the providers'
own documentation's; `api` names follow OpenClaw's configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

OPENAI_COMPLETIONS = "openai-completions"


class Provider(Struct, frozen=True):
    """A known service.

    `default_model` is None where any choice would be a guess (a local server, an account whose
    models must be enabled first). `adds_v1` marks servers whose bare address lacks the `/v1`.
    """

    name: str
    base_url: str | None
    api: str = OPENAI_COMPLETIONS
    key_vars: tuple[str, ...] = ()
    url_vars: tuple[str, ...] = ()
    model_vars: tuple[str, ...] = ()
    default_model: str | None = None
    needs_key: bool = True
    adds_v1: bool = False
    context_windows: Mapping[str, int] | None = None
    reasoning_models: tuple[str, ...] = ()


# In order of preference when the environment names several.
_KNOWN: tuple[Provider, ...] = (
    Provider(
        "openai",
        "https://api.openai.com/v1",
        key_vars=("OPENAI_API_KEY",),
        url_vars=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        model_vars=("OPENAI_MODEL",),
        default_model="gpt-5.2",
        context_windows={"gpt-5.2": 400_000, "gpt-5-mini": 400_000},
        reasoning_models=("gpt-5", "o1", "o3", "o4"),
    ),
    Provider(
        "openrouter",
        "https://openrouter.ai/api/v1",
        key_vars=("OPENROUTER_API_KEY",),
        url_vars=("OPENROUTER_BASE_URL",),
        model_vars=("OPENROUTER_MODEL",),
        default_model="openrouter/auto",
    ),
    Provider(
        "deepseek",
        "https://api.deepseek.com",
        key_vars=("DEEPSEEK_API_KEY",),
        url_vars=("DEEPSEEK_BASE_URL",),
        model_vars=("DEEPSEEK_MODEL",),
        default_model="deepseek-v4-flash",
        context_windows={"deepseek-v4-flash": 1_000_000, "deepseek-v4-pro": 1_000_000},
        reasoning_models=("deepseek-v4", "deepseek-reasoner"),
    ),
    Provider(
        "volcengine",
        "https://ark.cn-beijing.volces.com/api/v3",
        key_vars=("ARK_API_KEY", "VOLCANO_ENGINE_API_KEY"),
        url_vars=("ARK_BASE_URL",),
        model_vars=("ARK_MODEL",),
    ),
    Provider(
        "ollama",
        "http://127.0.0.1:11434/v1",
        key_vars=("OLLAMA_API_KEY",),
        url_vars=("OLLAMA_HOST", "OLLAMA_BASE_URL"),
        model_vars=("OLLAMA_MODEL",),
        needs_key=False,
        adds_v1=True,
    ),
    Provider(
        "vllm",
        "http://127.0.0.1:8000/v1",
        key_vars=("VLLM_API_KEY",),
        url_vars=("VLLM_BASE_URL",),
        model_vars=("VLLM_MODEL",),
        needs_key=False,
        adds_v1=True,
    ),
    Provider(
        "lmstudio",
        "http://127.0.0.1:1234/v1",
        model_vars=("LMSTUDIO_MODEL",),
        url_vars=("LMSTUDIO_BASE_URL",),
        needs_key=False,
        adds_v1=True,
    ),
    Provider(
        "groq",
        "https://api.groq.com/openai/v1",
        key_vars=("GROQ_API_KEY",),
        model_vars=("GROQ_MODEL",),
    ),
    Provider(
        "mistral",
        "https://api.mistral.ai/v1",
        key_vars=("MISTRAL_API_KEY",),
        model_vars=("MISTRAL_MODEL",),
    ),
    Provider(
        "moonshot",
        "https://api.moonshot.ai/v1",
        key_vars=("MOONSHOT_API_KEY",),
        model_vars=("MOONSHOT_MODEL",),
    ),
    Provider("xai", "https://api.x.ai/v1", key_vars=("XAI_API_KEY",), model_vars=("XAI_MODEL",)),
    Provider(
        "zai", "https://api.z.ai/api/paas/v4", key_vars=("ZAI_API_KEY",), model_vars=("ZAI_MODEL",)
    ),
    Provider(
        "together",
        "https://api.together.xyz/v1",
        key_vars=("TOGETHER_API_KEY",),
        model_vars=("TOGETHER_MODEL",),
    ),
    # Known, but their own protocols are not spoken yet.
    Provider(
        "anthropic",
        None,
        api="anthropic-messages",
        key_vars=("ANTHROPIC_API_KEY",),
        url_vars=("ANTHROPIC_BASE_URL",),
        model_vars=("ANTHROPIC_MODEL",),
        default_model="claude-opus-4-6",
    ),
    Provider(
        "google",
        None,
        api="google-generative-ai",
        key_vars=("GEMINI_API_KEY",),
        model_vars=("GEMINI_MODEL",),
        default_model="gemini-3-pro-preview",
    ),
)

# Other names of the same provider (OpenClaw's aliases and common spellings).
_ALIASES = {
    "ark": "volcengine",
    "bytedance": "volcengine",
    "doubao": "volcengine",
    "z.ai": "zai",
    "z-ai": "zai",
    "gemini": "google",
}


def canonical(name: str) -> str:
    """A provider's one name, lower-cased, aliases resolved."""
    lowered = name.strip().lower()
    return _ALIASES.get(lowered, lowered)


def known(name: str) -> Provider | None:
    """The service of that name or alias."""
    wanted = canonical(name)
    return next((provider for provider in _KNOWN if provider.name == wanted), None)


def in_environment(env: Mapping[str, str]) -> Provider | None:
    """The first service for which the environment holds a key, an address or a model."""
    return next(
        (
            provider
            for provider in _KNOWN
            if first_set(env, provider.key_vars + provider.url_vars + provider.model_vars)
        ),
        None,
    )


def first_set(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """The first non-empty variable's value."""
    return next((value for name in names if (value := env.get(name, "").strip())), None)


def normal_base_url(url: str, provider: Provider | None) -> str:
    """A full URL from what people write: `host`, `host:port`, `0.0.0.0`, a missing `/v1`.

    Only servers known to serve under `/v1` get it added; other addresses stay as given.
    """
    text = url.strip().rstrip("/")
    if "://" not in text:
        text = f"http://{text}"
    parts = urlsplit(text)
    host = parts.netloc
    if provider is not None and provider.adds_v1:
        # A server's listen address (OLLAMA_HOST=0.0.0.0) is not one to connect to.
        host = host.replace("0.0.0.0", "127.0.0.1")
        if provider.name == "ollama" and parts.scheme == "http" and parts.port is None:
            host = f"{host}:11434"
    path = "/v1" if not parts.path and provider is not None and provider.adds_v1 else parts.path
    return urlunsplit((parts.scheme, host, path, parts.query, ""))
