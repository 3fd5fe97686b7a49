"""Settings of model providers. Which model is used is decided elsewhere; this is data."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from claw_engine.config.sections.base import Count, Names, Number, Section

Api = Literal[
    "openai-completions",
    "openai-responses",
    "openai-codex-responses",
    "anthropic-messages",
    "google-generative-ai",
    "github-copilot",
    "bedrock-converse-stream",
    "ollama",
]


class Cost(Section, frozen=True):
    """Price per million tokens."""

    input: Number = 0
    output: Number = 0
    cache_read: Number = 0
    cache_write: Number = 0

    def prices(self) -> dict[str, float]:
        """Those that are known, by name: the ones that were given, or all if what was is free."""
        all_four = {
            "input": self.input,
            "output": self.output,
            "cache_read": self.cache_read,
            "cache_write": self.cache_write,
        }
        given = {name: all_four[name] for name in all_four if name in self.stated}
        return all_four if given and not any(given.values()) else given


class ProviderModel(Section, frozen=True, kw_only=True):
    """One model of a provider; `max_tokens` None means min(8192, context window)."""

    id: Annotated[str, Meta(min_length=1)]
    name: str | None = None
    api: Api | None = None
    reasoning: bool = False
    input: Names = ("text",)
    cost: Cost | None = None
    context_window: Count = 200_000
    max_tokens: Count | None = None
    headers: dict[str, str] = field(default_factory=dict)
    compat: dict[str, Any] = field(default_factory=dict)  # free-form by the file format


class ProviderSettings(Section, frozen=True):
    """`models.providers.<name>`.

    `unusable` is set by the loader when something the provider needs could not be resolved
    (an environment variable that is not set); it says why, and the provider must not be called.
    """

    base_url: str | None = None
    api_key: str | None = None
    api: Api | None = None
    auth: Literal["api-key", "aws-sdk", "oauth", "token"] = "api-key"
    headers: dict[str, str] = field(default_factory=dict)
    auth_header: bool = False
    models: tuple[ProviderModel, ...] = ()
    # A name in brackets is not read from a file: only the loader sets this field.
    unusable: str | None = field(default=None, name="(unusable)")


class ModelsSettings(Section, frozen=True):
    mode: Literal["merge", "replace"] = "merge"
    providers: dict[str, ProviderSettings] = field(default_factory=dict)
