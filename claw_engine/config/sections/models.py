"""Settings of model providers. Which model is used is decided elsewhere; this is data."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

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


class Cost(Section):
    """Price per million tokens."""

    input: Number = 0
    output: Number = 0
    cache_read: Number = 0
    cache_write: Number = 0


class ProviderModel(Section):
    """One model of a provider; `max_tokens` None means min(8192, context window)."""

    id: Annotated[str, Field(min_length=1)]
    name: str | None = None
    api: Api | None = None
    reasoning: bool = False
    input: Names = ("text",)
    cost: Cost | None = None
    context_window: Count = 200_000
    max_tokens: Count | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    compat: dict[str, Any] = Field(default_factory=dict)  # free-form by the file format


class ProviderSettings(Section):
    """`models.providers.<name>`.

    `unusable` is set by the loader when something the provider needs could not be resolved
    (an environment variable that is not set); it says why, and the provider must not be called.
    """

    base_url: str | None = None
    api_key: str | None = Field(default=None, repr=False)
    api: Api | None = None
    auth: Literal["api-key", "aws-sdk", "oauth", "token"] = "api-key"
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    auth_header: bool = False
    models: tuple[ProviderModel, ...] = ()
    # The alias can be written in no sensible file: only the loader sets this field.
    unusable: str | None = Field(default=None, exclude=True, alias="\0unusable")


class ModelsSettings(Section):
    mode: Literal["merge", "replace"] = "merge"
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
