"""Settings of agents: model choice, workspace, prompt budgets, concurrency."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from claw_engine.config.sections.base import Count, Names, Section, defaults

Thinking = Literal["off", "minimal", "low", "medium", "high", "xhigh"]


class ModelChoice(Section):
    """`primary` is `provider/model`; None when the file names none."""

    primary: str | None = None
    fallbacks: Names = ()


def _model_choice(value: object) -> object:
    return {"primary": value} if isinstance(value, str) else value


Choice = Annotated[ModelChoice, BeforeValidator(_model_choice)]


class ModelEntry(Section):
    """One entry of `agents.defaults.models`: an alias and request parameters."""

    alias: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)  # free-form by the file format


class SubagentDefaults(Section):
    max_concurrent: Count = 8


class AgentDefaults(Section):
    """`agents.defaults`. Times in seconds, budgets in characters."""

    model: Choice = defaults(ModelChoice)
    models: dict[str, ModelEntry] = Field(default_factory=dict)
    workspace: str | None = None
    skip_bootstrap: bool = False
    bootstrap_max_chars: Count = 20_000
    bootstrap_total_max_chars: Count = 150_000
    user_timezone: str | None = None
    context_tokens: Count | None = None
    thinking_default: Thinking | None = None
    timeout_seconds: Count = 600
    max_concurrent: Count = 4
    subagents: SubagentDefaults = defaults(SubagentDefaults)


class AgentIdentity(Section):
    name: str | None = None
    theme: str | None = None
    emoji: str | None = None


class AgentSubagents(Section):
    """`allow_agents` None means: only the agent itself; `*` in it means any."""

    allow_agents: Names | None = None


class AgentEntry(Section):
    """One item of `agents.list`; None means: as in the defaults."""

    id: Annotated[str, Field(min_length=1)]
    default: bool = False
    name: str | None = None
    workspace: str | None = None
    agent_dir: str | None = None
    model: Choice | None = None
    skills: Names | None = None
    subagents: AgentSubagents = defaults(AgentSubagents)
    identity: AgentIdentity = defaults(AgentIdentity)


class AgentsSettings(Section):
    defaults: AgentDefaults = defaults(AgentDefaults)
    list: tuple[AgentEntry, ...] = ()
